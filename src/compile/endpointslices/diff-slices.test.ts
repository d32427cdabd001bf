/** Differences between computed slices and those of the input, the choice between them, and their printing. */
import { describe, expect, test } from 'vitest'
import {
  clusterOf,
  endpointOf,
  nodeOf,
  podOf,
  portOf,
  serviceOf,
  sliceOf,
  slicePortOf,
} from '../../../test/golden/objects'
import { buildEndpointSlices } from './build-endpoint-slices'
import { diffSlices } from './diff-slices'
import { printEndpointSlice } from './print-endpoint-slice'
import { selectSlices } from './select-slices'

const slice = (...endpoints: ReturnType<typeof endpointOf>[]) =>
  sliceOf('shop/web-1', 'web', { ports: [slicePortOf(8080)], endpoints })

describe('diffSlices', () => {
  test('finds nothing between the same endpoints in other slices', () => {
    const [a, b] = [endpointOf('10.244.1.1'), endpointOf('10.244.1.2')]
    const two = [sliceOf('shop/x', 'web', { ports: [slicePortOf(8080)], endpoints: [b] }), slice(a)]
    expect(diffSlices([slice(a, b)], two)).toEqual([])
  })

  test('tells missing and extra endpoints with their ports', () => {
    expect(diffSlices([slice(endpointOf('10.244.1.1'))], [slice(endpointOf('10.244.1.2'))])).toMatchObject([
      { kind: 'missing', address: '10.244.1.1', ports: '8080/TCP', service: { namespace: 'shop', name: 'web' } },
      { kind: 'extra', address: '10.244.1.2', ports: '8080/TCP', slice: 'web-1' },
    ])
  })

  test('tells a changed condition, port and hint each', () => {
    const input = sliceOf('shop/web-1', 'web', {
      ports: [slicePortOf(9090)],
      endpoints: [endpointOf('10.244.1.1', { conditions: { ready: false, serving: true }, forZones: ['a'] })],
    })
    expect(diffSlices([slice(endpointOf('10.244.1.1'))], [input])).toMatchObject([
      { kind: 'changed', field: 'ports', computed: '8080/TCP', input: '9090/TCP' },
      { kind: 'changed', field: 'ready', computed: 'true', input: 'false' },
      { kind: 'changed', field: 'forZones', computed: '', input: 'a' },
    ])
  })

  test('an absent condition is no difference from what it means', () => {
    expect(
      diffSlices([slice(endpointOf('10.244.1.1'))], [slice(endpointOf('10.244.1.1', { conditions: {} }))]),
    ).toEqual([])
  })
})

test('selectSlices takes the slices of the input as they are, or computes them', () => {
  const cluster = clusterOf({ services: [serviceOf('shop/web', { selector: { app: 'web' } })], slices: [slice()] })
  expect(selectSlices(cluster, 'input').value).toEqual([slice()])
  expect(selectSlices(cluster, 'computed').value).toEqual(buildEndpointSlices(cluster).value)
})

test('selectSlices tells that the input holds no slices, where a Service could have some', () => {
  const services = [serviceOf('shop/api', { ports: [portOf(80)] }), serviceOf('shop/web', { selector: { app: 'web' } })]
  const name = serviceOf('shop/name', { type: 'ExternalName' })
  expect(selectSlices(clusterOf({ services }), 'input').findings).toMatchObject([
    {
      code: 'endpointslices.no-slices-read',
      severity: 'warning',
      message:
        'the input holds no EndpointSlices at all, so 2 Services have no endpoints, and rules refuse traffic (REJECT) for that reason alone',
    },
  ])
  expect(selectSlices(clusterOf({ services: [name] }), 'input').findings).toEqual([])
  expect(selectSlices(clusterOf({ services, slices: [slice()] }), 'input').findings).toEqual([])
})

test('a slice prints as the discovery.k8s.io/v1 object', () => {
  const cluster = clusterOf({
    services: [
      serviceOf('shop/web', {
        selector: { app: 'web' },
        ports: [portOf(80, { name: 'http', targetPort: 8080 })],
        trafficDistribution: 'PreferClose',
        meta: { uid: 'u1' },
      }),
    ],
    pods: [podOf('shop/web-0', { meta: { uid: 'p1' } })],
    nodes: [nodeOf('node-a', { meta: { labels: { 'topology.kubernetes.io/zone': 'b' } } })],
  })
  const [built] = buildEndpointSlices(cluster).value
  if (built === undefined) throw new Error('no slice')
  expect(printEndpointSlice(built)).toEqual({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: built.meta.name,
      generateName: 'web-',
      namespace: 'shop',
      labels: {
        'kubernetes.io/service-name': 'web',
        'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io',
      },
      ownerReferences: [
        { apiVersion: 'v1', blockOwnerDeletion: true, controller: true, kind: 'Service', name: 'web', uid: 'u1' },
      ],
    },
    addressType: 'IPv4',
    endpoints: [
      {
        addresses: ['10.244.1.9'],
        conditions: { ready: true, serving: true, terminating: false },
        nodeName: 'node-a',
        targetRef: { kind: 'Pod', namespace: 'shop', name: 'web-0', uid: 'p1' },
        zone: 'b',
        hints: { forZones: [{ name: 'b' }] },
      },
    ],
    ports: [{ name: 'http', protocol: 'TCP', port: 8080 }],
  })
})

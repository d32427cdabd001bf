/** Slices of a Service: the cases E1 to E16 and E20 to E25 of the facts about the EndpointSlice controller. */
import { describe, expect, test } from 'vitest'
import type { EndpointSlice, Endpoints } from '#model/endpoint-slice'
import type { Pod } from '#model/pod'
import {
  type ClusterObjects,
  clusterOf,
  metaOf,
  nodeOf,
  podOf,
  portOf,
  serviceOf,
  sliceOf,
  slicePortOf,
} from '../../../test/golden/objects'
import { buildEndpointSlices } from './build-endpoint-slices'
import { controllerName } from './label-slices'
import { mirrorName } from './mirror-endpoints'

const selector = { app: 'web' }
const web = serviceOf('shop/web', { selector, ports: [portOf(80, { targetPort: 8080 })] })

function build(objects: ClusterObjects): readonly EndpointSlice[] {
  return buildEndpointSlices(clusterOf({ services: [web], nodes: [nodeOf('node-a')], ...objects })).value
}

/** The one endpoint of the one slice that a pod makes. */
function endpointOfPod(pod: Pod, service = web): EndpointSlice['endpoints'][number] | undefined {
  return build({ services: [service], pods: [pod] })[0]?.endpoints[0]
}

function pods(count: number, from = 0): Pod[] {
  return Array.from({ length: count }, (_, at) => {
    const number = from + at
    return podOf(`shop/web-${String(number).padStart(4, '0')}`, { podIPs: [`10.244.${number >> 8}.${number & 255}`] })
  })
}

/** A slice that the controller wrote earlier for these pods. */
function written(name: string, from: readonly Pod[]): EndpointSlice {
  return sliceOf(`shop/${name}`, 'web', {
    meta: {
      labels: { 'endpointslice.kubernetes.io/managed-by': controllerName },
      ownerReferences: [{ kind: 'Service', name: 'web', controller: true }],
    },
    ports: [slicePortOf(8080)],
    endpoints: build({ pods: from })[0]?.endpoints ?? [],
  })
}

const sizes = (slices: readonly EndpointSlice[]): number[] => slices.map(({ endpoints }) => endpoints.length)
const sizesByName = (slices: readonly EndpointSlice[]): Record<string, number> =>
  Object.fromEntries(slices.map(({ meta, endpoints }) => [meta.name, endpoints.length]))

describe('which pods', () => {
  test('E1: 250 pods fill slices of 100', () => {
    expect(sizes(build({ pods: pods(250) }))).toEqual([100, 100, 50])
  })

  test('E2: a selector that matches nothing leaves one empty slice', () => {
    const [slice, ...more] = build({})
    expect(more).toEqual([])
    expect(slice).toMatchObject({ endpoints: [], ports: [], addressType: 'IPv4' })
  })

  test('that is told for each Service, or once where the input has no pods', () => {
    const services = [web, serviceOf('shop/api', { selector })]
    const codes = (objects: ClusterObjects): string[] =>
      buildEndpointSlices(clusterOf({ services, ...objects })).findings.map(({ code }) => code)
    expect(codes({})).toEqual(['endpointslices.no-pods-read'])
    expect(codes({ pods: [podOf('bank/web')] })).toEqual(['endpointslices.no-pods', 'endpointslices.no-pods'])
  })

  test('E3: finished pods and pods without an address are not included', () => {
    const excluded = [
      podOf('shop/a', { phase: 'Succeeded' }),
      podOf('shop/b', { phase: 'Failed' }),
      podOf('shop/c', { phase: 'Pending', podIPs: [] }),
    ]
    expect(build({ pods: excluded })[0]?.endpoints).toEqual([])
  })

  test('pods of another namespace or with other labels are not included', () => {
    const others = [podOf('bank/web'), podOf('shop/api', { meta: { labels: { app: 'api' } } })]
    expect(build({ pods: others })[0]?.endpoints).toEqual([])
  })

  test('E15: a pod whose Node does not exist is left out and told', () => {
    const pod = podOf('shop/web-0', { nodeName: 'gone' })
    const { value, findings } = buildEndpointSlices(
      clusterOf({ services: [web], nodes: [nodeOf('node-a')], pods: [pod] }),
    )
    expect(value[0]?.endpoints).toEqual([])
    expect(findings.map(({ code }) => code)).toEqual(['endpointslices.node-missing'])
  })

  test('E15: with publishNotReadyAddresses it is included, without a zone', () => {
    const endpoint = endpointOfPod(podOf('shop/web-0', { nodeName: 'gone' }), {
      ...web,
      publishNotReadyAddresses: true,
    })
    expect(endpoint).toMatchObject({ addresses: ['10.244.1.9'], nodeName: 'gone' })
    expect(endpoint).not.toHaveProperty('zone')
  })

  test('an input without any Node tells nothing about nodes, so its pods stay', () => {
    const { value, findings } = buildEndpointSlices(clusterOf({ services: [web], pods: [podOf('shop/web-0')] }))
    expect(value[0]?.endpoints).toHaveLength(1)
    expect(findings.map(({ code }) => code)).toEqual(['endpointslices.node-unknown'])
  })

  test('E16: a node without the zone label gives no zone, one with it does', () => {
    expect(endpointOfPod(podOf('shop/web-0'))).not.toHaveProperty('zone')
    const zoned = nodeOf('node-a', { meta: { labels: { 'topology.kubernetes.io/zone': 'b' } } })
    expect(build({ pods: [podOf('shop/web-0')], nodes: [zoned] })[0]?.endpoints[0]?.zone).toBe('b')
  })
})

describe('conditions', () => {
  const deleted = { deletionTimestamp: '2026-01-01T00:00:00Z' }
  const publishing = { ...web, publishNotReadyAddresses: true }

  test('E4: pending with an address', () => {
    const endpoint = endpointOfPod(podOf('shop/web-0', { phase: 'Pending', isReady: false }))
    expect(endpoint?.conditions).toEqual({ ready: false, serving: false, terminating: false })
  })

  test('E5: ready and being deleted', () => {
    expect(endpointOfPod(podOf('shop/web-0', { meta: deleted }))?.conditions).toEqual({
      ready: false,
      serving: true,
      terminating: true,
    })
  })

  test('E6: publishNotReadyAddresses raises ready and not serving', () => {
    const endpoint = endpointOfPod(podOf('shop/web-0', { isReady: false }), publishing)
    expect(endpoint?.conditions).toEqual({ ready: true, serving: false, terminating: false })
  })

  test('E7: publishNotReadyAddresses keeps a terminating pod ready', () => {
    const endpoint = endpointOfPod(podOf('shop/web-0', { meta: deleted }), publishing)
    expect(endpoint?.conditions).toEqual({ ready: true, serving: true, terminating: true })
  })
})

describe('ports', () => {
  const named = { ...web, ports: [portOf(80, { name: 'web', targetPort: 'http' })] }
  const withPort = (name: string, containerPort: number, protocol: 'TCP' | 'UDP' = 'TCP') => [
    { name: 'main', ports: [{ name, containerPort, protocol }] },
  ]

  test('E8: pods with different numbers for one name are in different slices', () => {
    const a = podOf('shop/a', { containers: withPort('http', 8080), podIPs: ['10.244.1.1'] })
    const b = podOf('shop/b', { containers: withPort('http', 9090), podIPs: ['10.244.1.2'] })
    const slices = build({ services: [named], pods: [a, b] })
    expect(slices.map(({ ports, endpoints }) => [ports[0]?.port, endpoints[0]?.addresses[0]])).toEqual([
      [8080, '10.244.1.1'],
      [9090, '10.244.1.2'],
    ])
  })

  test('E9: a name with another protocol is no port, and the pod is in a slice without it', () => {
    const dns = { ...web, ports: [portOf(53, { name: 'dns', protocol: 'UDP', targetPort: 'dns' })] }
    const pod = podOf('shop/dns-0', { containers: withPort('dns', 53, 'TCP') })
    const { value, findings } = buildEndpointSlices(
      clusterOf({ services: [dns], nodes: [nodeOf('node-a')], pods: [pod] }),
    )
    expect(value).toMatchObject([{ ports: [], endpoints: [{ addresses: ['10.244.1.9'] }] }])
    expect(findings[0]?.message).toBe('port 53/UDP: its port "dns" is TCP and the Service wants UDP (dns-0)')
  })

  test('E10: a sidecar init container has ports, an ordinary init container has none', () => {
    const init = { name: 'side', ports: [{ name: 'http', containerPort: 8080, protocol: 'TCP' as const }] }
    const sidecar = podOf('shop/a', { initContainers: [{ ...init, restartPolicy: 'Always' }] })
    expect(build({ services: [named], pods: [sidecar] })[0]?.ports).toEqual([
      { name: 'web', protocol: 'TCP', port: 8080 },
    ])
    expect(build({ services: [named], pods: [podOf('shop/a', { initContainers: [init] })] })[0]?.ports).toEqual([])
  })

  test('E25: a headless Service without ports has endpoints without ports', () => {
    const headless = serviceOf('shop/web', { selector, clusterIPs: ['None'] })
    expect(build({ services: [headless], pods: pods(2) })).toMatchObject([{ ports: [], endpoints: [{}, {}] }])
  })

  test('appProtocol goes into the slice', () => {
    const service = { ...web, ports: [portOf(80, { appProtocol: 'kubernetes.io/h2c' })] }
    expect(build({ services: [service], pods: pods(1) })[0]?.ports[0]?.appProtocol).toBe('kubernetes.io/h2c')
  })
})

describe('families, labels, names', () => {
  test('E11: dual stack makes one slice a family', () => {
    const dual = serviceOf('shop/web', { selector, clusterIPs: ['10.96.0.9', 'fd00::9'], ports: [portOf(80)] })
    const slices = build({ services: [dual], pods: [podOf('shop/a', { podIPs: ['10.244.1.9', 'fd00:10:244:1::9'] })] })
    expect(
      slices.map(({ addressType, endpoints }) => [addressType, endpoints.map(({ addresses }) => addresses)]),
    ).toEqual([
      ['IPv4', [['10.244.1.9']]],
      ['IPv6', [['fd00:10:244:1::9']]],
    ])
  })

  test('E12: labels of a headless Service', () => {
    const headless = serviceOf('shop/db', { selector, clusterIPs: ['None'], meta: { labels: { app: 'x' }, uid: 'u1' } })
    expect(build({ services: [headless] })[0]?.meta).toMatchObject({
      labels: {
        app: 'x',
        'kubernetes.io/service-name': 'db',
        'endpointslice.kubernetes.io/managed-by': controllerName,
        'service.kubernetes.io/headless': '',
      },
      ownerReferences: [{ kind: 'Service', name: 'db', uid: 'u1', controller: true }],
      generateName: 'db-',
    })
  })

  test('E13: a reserved label on the Service is ignored', () => {
    const labels = { 'endpointslice.kubernetes.io/managed-by': 'me' }
    const { value, findings } = buildEndpointSlices(
      clusterOf({ services: [{ ...web, meta: { ...web.meta, labels } }] }),
    )
    expect(value[0]?.meta.labels['endpointslice.kubernetes.io/managed-by']).toBe(controllerName)
    expect(findings.map(({ code }) => code)).toContain('endpointslices.reserved-label')
  })

  test('E14: the hostname is told to the Service that is the subdomain, and to no other', () => {
    const pod = podOf('shop/db-0', { hostname: 'db-0', subdomain: 'db' })
    expect(endpointOfPod(pod, serviceOf('shop/db', { selector }))?.hostname).toBe('db-0')
    expect(endpointOfPod(pod, serviceOf('shop/other', { selector }))).not.toHaveProperty('hostname')
  })

  test('new names look generated, differ, and are the same every time', () => {
    const names = build({ pods: pods(250) }).map(({ meta }) => meta.name)
    expect(new Set(names).size).toBe(3)
    for (const name of names) expect(name).toMatch(/^web-[bcdfghjklmnpqrstvwxz2-9]{5}$/)
    expect(build({ pods: pods(250).reverse() }).map(({ meta }) => meta.name)).toEqual(names)
  })

  test('assumptions about pods, nodes and Services are told on the slice', () => {
    const assuming = { ...web, meta: { ...web.meta, assumed: ['spec.clusterIPs'] } }
    const [a, b] = pods(2)
    if (a === undefined || b === undefined) throw new Error('no pods')
    const guessed = [{ ...a, meta: { ...a.meta, assumed: ['status.podIPs', 'spec.nodeName'] } }, b]
    const implied = nodeOf('node-a', { meta: { assumed: ['*'] } })
    expect(build({ services: [assuming], pods: guessed, nodes: [implied] })[0]?.meta.assumed).toEqual([
      'addressType',
      'endpoints[0].addresses',
      'endpoints[0].nodeName',
      'endpoints[*].zone',
    ])
  })
})

describe('slices that are there already', () => {
  test('nothing to do leaves them as they are', () => {
    const existing = [written('web-aaaaa', pods(80)), written('web-bbbbb', pods(20, 80))]
    expect(build({ pods: pods(100), slices: existing })).toEqual(existing)
  })

  test('E20: a rest goes whole into the fullest slice that can take it', () => {
    const existing = [written('web-aaaaa', pods(80)), written('web-bbbbb', pods(90, 80))]
    expect(sizesByName(build({ pods: pods(185), slices: existing }))).toEqual({ 'web-aaaaa': 95, 'web-bbbbb': 90 })
  })

  test('E21: a rest that no slice can take whole gets a new one', () => {
    const existing = [written('web-aaaaa', pods(80)), written('web-bbbbb', pods(90, 80))]
    const slices = build({ pods: pods(200), slices: existing })
    expect(sizes(slices).sort()).toEqual([30, 80, 90])
    expect(sizesByName(slices)).toMatchObject({ 'web-aaaaa': 80, 'web-bbbbb': 90 })
  })

  test('E22: a slice that is written anyway is filled first', () => {
    const existing = [written('web-aaaaa', pods(62)), written('web-bbbbb', pods(61, 62))]
    const changed = pods(163).map((pod, at) => (at === 0 ? { ...pod, isReady: false } : pod))
    expect(sizesByName(build({ pods: changed, slices: existing }))).toEqual({ 'web-aaaaa': 100, 'web-bbbbb': 63 })
  })

  test('the empty slice of a Service without endpoints stays, and is written over by the first endpoints', () => {
    const [empty] = build({})
    if (empty === undefined) throw new Error('no slice')
    expect(build({ slices: [empty] })).toEqual([empty])
    expect(sizesByName(build({ slices: [empty], pods: pods(1) }))).toEqual({ [empty.meta.name]: 1 })
  })

  test('slices of another manager and of Services without a selector stay', () => {
    const custom = sliceOf('shop/mine', 'web', { meta: { labels: { 'endpointslice.kubernetes.io/managed-by': 'me' } } })
    const byHand = sliceOf('shop/ext-1', 'ext')
    const slices = build({ services: [web, serviceOf('shop/ext')], slices: [custom, byHand] })
    expect(slices.map(({ meta }) => meta.name)).toEqual([slices[0]?.meta.name, 'mine', 'ext-1'])
  })

  test('a Service that is being deleted gets no new slices', () => {
    const leaving = { ...web, meta: { ...web.meta, deletionTimestamp: '2026-01-01T00:00:00Z' } }
    expect(build({ services: [leaving], pods: pods(3) })).toEqual([])
  })

  test('an ExternalName Service gets none', () => {
    expect(build({ services: [{ ...web, type: 'ExternalName' }], pods: pods(3) })).toEqual([])
  })
})

describe('mirrored Endpoints', () => {
  const ext = serviceOf('shop/ext', { ports: [portOf(5432)] })
  const endpoints = (labels = {}): Endpoints => ({
    meta: metaOf('Endpoints', 'shop/ext', { labels }),
    subsets: [
      {
        addresses: [{ ip: '192.0.2.1', hostname: 'one' }, { ip: '192.0.2.2' }],
        notReadyAddresses: [{ ip: '192.0.2.3' }],
        ports: [{ protocol: 'TCP', port: 5432 }],
      },
    ],
  })

  test('E23: a slice with the ready condition alone', () => {
    const [slice, ...more] = build({ services: [ext], endpoints: [endpoints()] })
    expect(more).toEqual([])
    expect(slice?.meta.labels).toMatchObject({ 'endpointslice.kubernetes.io/managed-by': mirrorName })
    expect(slice?.ports).toEqual([{ name: '', protocol: 'TCP', port: 5432 }])
    expect(slice?.endpoints).toEqual([
      { addresses: ['192.0.2.1'], conditions: { ready: true }, hostname: 'one' },
      { addresses: ['192.0.2.2'], conditions: { ready: true } },
      { addresses: ['192.0.2.3'], conditions: { ready: false } },
    ])
  })

  test('E24: none when the Endpoints ask to be skipped, or the Service has a selector', () => {
    const skipped = endpoints({ 'endpointslice.kubernetes.io/skip-mirror': 'true' })
    expect(build({ services: [ext], endpoints: [skipped] })).toEqual([])
    const selecting = build({ services: [{ ...ext, selector }], endpoints: [endpoints()] })
    expect(selecting.map(({ endpoints: list }) => list)).toEqual([[]])
    expect(build({ services: [], endpoints: [endpoints()] })).toEqual([])
  })
})

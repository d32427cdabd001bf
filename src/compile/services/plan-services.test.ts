/** The plan of a node: order, names, addresses, skips, and what is told about Services that get fewer rules than they seem. */
import { describe, expect, test } from 'vitest'
import type { EndpointSlice } from '#model/endpoint-slice'
import type { Service } from '#model/service'
import { clusterOf, endpointOf, nodeOf, portOf, serviceOf, sliceOf, slicePortOf } from '../../../test/golden/objects'
import { planServices, proxyNodeOf } from './plan-services'
import type { ProxyNode } from './service-plan'

const nodeA: ProxyNode = { name: 'node-a', ips: ['192.168.50.11', 'fd00::11'], labels: {}, podCIDRs: [] }

function plan(
  services: readonly Service[],
  slices: readonly EndpointSlice[] = [],
  node: ProxyNode | undefined = nodeA,
) {
  return planServices(clusterOf({ services }), slices, { family: 'ipv4', ...(node !== undefined && { node }) })
}

describe('planServices', () => {
  test('goes by namespace and name, then by the order of ports', () => {
    const ports = [portOf(443, { name: 'https' }), portOf(80, { name: 'http' })]
    const services = [
      serviceOf('b/web', { ports }),
      serviceOf('a-b/web', { ports: [portOf(80)] }),
      serviceOf('a/web', { ports }),
    ]
    expect(plan(services).value.ports.map(({ name }) => name)).toEqual([
      'a/web:https',
      'a/web:http',
      'a-b/web',
      'b/web:https',
      'b/web:http',
    ])
  })

  test('of two ports with one name and protocol the later counts, and that is told', () => {
    const ports = [portOf(80, { name: 'a' }), portOf(81, { name: 'a', protocol: 'UDP' }), portOf(82, { name: 'a' })]
    const twice = plan([serviceOf('shop/web', { ports })])
    expect(twice.value.ports.map(({ port, protocol }) => `${port}/${protocol}`)).toEqual(['81/udp', '82/tcp'])
    expect(twice.findings).toMatchObject([
      {
        code: 'services.port-replaced',
        path: 'spec.ports[0].name',
        message: 'port 80/TCP is named "a", as is the later port 82/TCP: kube-proxy keeps that one alone',
      },
    ])
    const unnamed = plan([serviceOf('shop/web', { ports: [portOf(80), portOf(443)] })])
    expect(unnamed.value.ports.map(({ port }) => port)).toEqual([443])
    expect(unnamed.findings[0]?.message).toContain('port 80/TCP is unnamed, as is the later port 443/TCP')
  })

  test('filters every address by family', () => {
    const service = serviceOf('shop/web', {
      type: 'LoadBalancer',
      clusterIPs: ['10.96.0.9', 'fd00::9'],
      ports: [portOf(80)],
      externalIPs: ['2001:db8::1', '203.0.113.1'],
      loadBalancerIngress: [
        { ip: '198.51.100.1', ipMode: 'VIP' },
        { ip: '2001:db8::2', ipMode: 'VIP' },
      ],
      loadBalancerSourceRanges: ['192.168.0.0/16', '2001:db8::/32'],
    })
    expect(plan([service]).value.ports[0]).toMatchObject({
      clusterIP: '10.96.0.9',
      externalIPs: ['203.0.113.1'],
      loadBalancerVIPs: ['198.51.100.1'],
      loadBalancerSourceRanges: ['192.168.0.0/16'],
      allowsNode: true,
    })
  })

  test('without families the cluster IP tells them', () => {
    const service = { ...serviceOf('shop/web', { clusterIPs: ['fd00::9'], ports: [portOf(80)] }), ipFamilies: [] }
    expect(plan([service]).value).toMatchObject({ ports: [], skipped: [{ why: 'no-cluster-ip-in-family' }] })
  })

  test('externalTrafficPolicy counts only where traffic can come from outside', () => {
    const base = serviceOf('shop/web', { externalTrafficPolicy: 'Local', ports: [portOf(80)] })
    const isExternalLocal = (service: Service): boolean | undefined => plan([service]).value.ports[0]?.isExternalLocal
    expect(isExternalLocal(base)).toBe(false)
    expect(isExternalLocal({ ...base, externalIPs: ['203.0.113.1'] })).toBe(true)
    expect(isExternalLocal({ ...base, type: 'NodePort' })).toBe(true)
  })

  test('counts endpoints of all ports, usable or not', () => {
    const service = serviceOf('shop/web', { ports: [portOf(80, { name: 'a' }), portOf(81, { name: 'b' })] })
    const slices = [
      sliceOf('shop/1', 'web', {
        ports: [slicePortOf(8080, { name: 'a' }), slicePortOf(8081, { name: 'b' })],
        endpoints: [endpointOf('10.0.0.1'), endpointOf('10.0.0.2', { conditions: { ready: false, serving: false } })],
      }),
    ]
    expect(plan([service], slices).value.endpointCount).toBe(4)
  })

  test('of the same address in two slices the local one stays', () => {
    const at = (nodeName: string) =>
      sliceOf(`shop/${nodeName}`, 'web', {
        ports: [slicePortOf(8080)],
        endpoints: [endpointOf('10.0.0.1', { nodeName })],
      })
    const isLocal = (...nodes: readonly string[]) =>
      plan([serviceOf('shop/web', { ports: [portOf(80)] })], nodes.map(at)).value.ports[0]?.endpoints.map(
        (one) => one.isLocal,
      )
    expect(isLocal('node-a', 'node-b')).toEqual([true])
    expect(isLocal('node-b', 'node-a')).toEqual([true])
  })

  test('an absent serving counts as true and an absent ready too', () => {
    const slices = [
      sliceOf('shop/1', 'web', {
        ports: [slicePortOf(8080)],
        endpoints: [
          endpointOf('10.0.0.1', { conditions: {} }),
          endpointOf('10.0.0.2', { conditions: { ready: false, terminating: true } }),
        ],
      }),
    ]
    expect(plan([serviceOf('shop/web', { ports: [portOf(80)] })], slices).value.ports[0]?.endpoints).toMatchObject([
      { isReady: true, isServing: true, isTerminating: false },
      { isReady: false, isServing: true, isTerminating: true },
    ])
  })
})

describe('what is told', () => {
  const codes = (services: readonly Service[], slices: readonly EndpointSlice[] = [], node?: ProxyNode) =>
    plan(services, slices, node ?? nodeA).findings.map(({ code }) => code)

  test('a label that hides a Service with a cluster IP, and one that gives it to another proxy', () => {
    expect(codes([serviceOf('a/b', { meta: { labels: { 'service.kubernetes.io/headless': '' } } })])).toEqual([
      'services.headless-label',
    ])
    expect(
      codes([serviceOf('a/b', { meta: { labels: { 'service.kubernetes.io/service-proxy-name': 'x' } } })]),
    ).toEqual(['services.other-proxy'])
  })

  test('a headless Service with an external address; a plain one is nothing to tell', () => {
    expect(codes([serviceOf('a/b', { clusterIPs: ['None'], externalIPs: ['203.0.113.1'] })])).toEqual([
      'services.headless-exposed',
    ])
    expect(codes([serviceOf('a/b', { clusterIPs: ['None'] })])).toEqual([])
  })

  test('a Service without a cluster IP, and an address of a family that it has not', () => {
    expect(codes([serviceOf('a/b', { clusterIPs: [] })])).toEqual(['services.no-cluster-ip'])
    expect(codes([serviceOf('a/b', { externalIPs: ['2001:db8::1'] })])).toEqual(['services.address-without-family'])
  })

  test('a load balancer with policy Local and no health check port', () => {
    expect(codes([serviceOf('a/b', { type: 'LoadBalancer', externalTrafficPolicy: 'Local' })])).toEqual([
      'services.no-health-check-port',
    ])
  })

  test('policy Local without a node', () => {
    const service = serviceOf('a/b', { internalTrafficPolicy: 'Local', ports: [portOf(80)] })
    expect(
      planServices(clusterOf({ services: [service] }), [], { family: 'ipv4' }).findings.map(({ code }) => code),
    ).toEqual(['services.no-node'])
  })

  test('hints that one endpoint without them spoils', () => {
    const node = { ...nodeA, labels: { 'topology.kubernetes.io/zone': 'a' } }
    const endpoints = [endpointOf('10.0.0.1', { forZones: ['a'] }), endpointOf('10.0.0.2')]
    const slices = [sliceOf('a/1', 'b', { ports: [slicePortOf(80)], endpoints })]
    expect(codes([serviceOf('a/b', { ports: [portOf(80)] })], slices, node)).toEqual(['services.hints-ignored'])
  })

  test('node port addresses that are none of the node', () => {
    const service = serviceOf('a/b', { type: 'NodePort', ports: [portOf(80, { nodePort: 30000 })] })
    const settings = { nodePortAddresses: ['172.16.0.0/12'] }
    const { findings } = planServices(clusterOf({ services: [service] }), [], { family: 'ipv4', node: nodeA, settings })
    expect(findings.map(({ code }) => code)).toEqual(['services.node-port-addresses-unmatched'])
  })

  test('an address that is not of the family of its slice', () => {
    const slices = [sliceOf('a/1', 'b', { ports: [slicePortOf(80)], endpoints: [endpointOf('fd00::1')] })]
    expect(codes([serviceOf('a/b', { ports: [portOf(80)] })], slices)).toEqual(['services.endpoint-of-other-family'])
  })
})

test('proxyNodeOf reads addresses, labels and pod ranges of a Node, and takes a name that has none', () => {
  const labels = { 'topology.kubernetes.io/zone': 'a' }
  const addresses = [
    { type: 'Hostname', address: 'node-a' },
    { type: 'ExternalIP', address: '203.0.113.9' },
    { type: 'InternalIP', address: '192.168.50.11' },
  ]
  const cluster = clusterOf({ nodes: [nodeOf('node-a', { meta: { labels }, addresses, podCIDRs: ['10.244.1.0/24'] })] })
  expect(proxyNodeOf(cluster, 'node-a')).toEqual({
    name: 'node-a',
    ips: ['192.168.50.11', '203.0.113.9'],
    labels,
    podCIDRs: ['10.244.1.0/24'],
  })
  expect(proxyNodeOf(cluster, 'gone')).toEqual({ name: 'gone', ips: [], labels: {}, podCIDRs: [] })
})

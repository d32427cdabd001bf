/** What kube-proxy's nftables table holds for a Service on a node: the cases N5 to N10, and the rules behind them. */
import { describe, expect, test } from 'vitest'
import { planServices } from '#compile/services/plan-services'
import type { ProxySettings } from '#compile/services/proxy-settings'
import type { ProxyNode } from '#compile/services/service-plan'
import type { Endpoint, EndpointSlice } from '#model/endpoint-slice'
import type { Service } from '#model/service'
import { clusterOf, endpointOf, portOf, serviceOf, sliceOf, slicePortOf } from '../../../test/golden/objects'
import { printElement } from './print-expression'
import { printList } from './print-list'
import { printScript } from './print-script'
import { elementTypes, setLines } from './print-set'
import { printRule } from './print-statement'
import { type RenderOptions, renderNftables } from './render-nftables'
import { rulesetOf } from './ruleset'

const nodeA: ProxyNode = { name: 'node-a', ips: ['192.168.50.11'], labels: {}, podCIDRs: ['10.244.1.0/24'] }
const byCidr: Partial<ProxySettings> = { detectLocal: { kind: 'ClusterCIDR', cidrs: ['10.244.0.0/16'] } }

type Given = RenderOptions & {
  readonly services?: readonly Service[]
  readonly slices?: readonly EndpointSlice[]
  readonly settings?: Partial<ProxySettings>
  readonly node?: ProxyNode
}

function render({ services = [], slices = [], settings = byCidr, node = nodeA, ...options }: Given) {
  const plan = planServices(clusterOf({ services }), slices, { family: 'ipv4', node, settings })
  const { value: table, findings } = renderNftables(plan.value, options)
  return {
    table,
    codes: findings.map(({ code }) => code),
    rules: (chain: string): readonly string[] | undefined =>
      table.chains
        .get(chain)
        ?.rules.map((rule) => printRule(rule, { family: table.family, indent: '', isScript: false })),
    elements: (name: string): readonly string[] | undefined => {
      const set = table.sets.get(name)
      return set?.elements.map((element) => printElement(element, elementTypes(set)))
    },
  }
}

const local = endpointOf('10.244.1.9', { nodeName: 'node-a' })
const remote = endpointOf('10.244.2.3', { nodeName: 'node-b' })

/** The slice of Service shop/web with these endpoints at port 8080. */
function slice(...endpoints: readonly Endpoint[]): EndpointSlice {
  return sliceOf('shop/web-1', 'web', { ports: [slicePortOf(8080)], endpoints })
}

const web = serviceOf('shop/web', { clusterIPs: ['10.96.0.7'], ports: [portOf(80)] })
const base = '452DNVGS-shop/web/tcp/'
const chains = { svc: `service-${base}`, local: `local-${base}`, ext: `external-${base}`, firewall: `firewall-${base}` }
const localChain = 'endpoint-32Y5RKSM-shop/web/tcp/__10.244.1.9/8080'
const remoteChain = 'endpoint-7P53GEKF-shop/web/tcp/__10.244.2.3/8080'

const balanced: Service = {
  ...web,
  type: 'LoadBalancer',
  ports: [portOf(80, { nodePort: 31080 })],
  externalIPs: ['203.0.113.77'],
  loadBalancerIngress: [{ ip: '198.51.100.20', ipMode: 'VIP' }],
}
const balancedLocal: Service = { ...balanced, externalTrafficPolicy: 'Local', healthCheckNodePort: 32111 }
const ranged: Service = { ...balanced, loadBalancerSourceRanges: ['203.0.113.0/25'] }

describe('what is there whatever Services exist', () => {
  test('sets and maps, in the order in which they are made', () => {
    const { table } = render({})
    expect([...table.sets.keys()]).toEqual([
      'cluster-ips',
      'nodeport-ips',
      'no-endpoint-services',
      'no-endpoint-nodeports',
      'firewall-ips',
      'service-ips',
      'service-nodeports',
    ])
    expect([...render({ layout: '1.36' }).table.sets.keys()][0]).toBe('hairpin-connections')
  })

  test('chains, in the order in which they are made', () => {
    expect([...render({}).table.chains.keys()]).toEqual([
      'filter-prerouting-pre-dnat',
      'filter-output-pre-dnat',
      'filter-input',
      'filter-forward',
      'filter-output',
      'nat-prerouting',
      'nat-output',
      'nat-postrouting',
      'nodeport-endpoints-check',
      'service-endpoints-check',
      'firewall-check',
      'services',
      'masquerading',
      'cluster-ips-check',
      'mark-for-masquerade',
      'reject-chain',
    ])
  })

  test('before 1.34 all filter chains come before DNAT', () => {
    const base = [...render({ layout: '1.31' }).table.chains.values()].flatMap((chain) => chain.base ?? [])
    expect(base.map(({ hook, priority }) => `${hook} ${priority}`)).toEqual([
      'prerouting -110',
      'input -110',
      'forward -110',
      'output -110',
      'output -90',
      'prerouting -100',
      'output -100',
      'postrouting 100',
    ])
  })

  test('from 1.36 on the mark is written at once, and hairpins are a set', () => {
    const { rules, table } = render({ layout: '1.36' })
    expect(table.chains.has('mark-for-masquerade')).toBe(false)
    expect(rules('masquerading')).toEqual([
      'meta mark & 0x00004000 != 0x00000000 meta mark set meta mark ^ 0x00004000 masquerade fully-random',
      'ct status dnat ip saddr . ip daddr . meta l4proto . th dport @hairpin-connections masquerade fully-random',
    ])
    expect(rules('services')?.[0]).toBe(
      'ip daddr @cluster-ips ip saddr != 10.244.0.0/16 meta mark set meta mark | 0x00004000 comment "masquerade clusterIP traffic from outside cluster"',
    )
  })

  test('the mark of another bit', () => {
    const { rules } = render({ settings: { masqueradeBit: 31 } })
    expect(rules('mark-for-masquerade')).toEqual(['meta mark set meta mark | 0x80000000'])
    expect(rules('masquerading')?.[0]).toBe('meta mark 0x00000000/1 return')
  })

  test('without ranges of cluster IPs there is no rule for unallocated ones', () => {
    expect(render({}).rules('cluster-ips-check')).toEqual([
      'ip daddr @cluster-ips reject comment "Reject traffic to invalid ports of ClusterIPs"',
    ])
  })

  test('N5: neighbouring ranges of cluster IPs are one, those of the other family do not count', () => {
    const { rules, table } = render({ serviceCidrs: ['10.96.0.0/16', '10.97.0.0/16', 'fd00:10:96::/112'] })
    expect(rules('cluster-ips-check')?.[1]).toBe(
      'ip daddr { 10.96.0.0/15 } drop comment "Drop traffic to unallocated ClusterIPs"',
    )
    expect(printScript(rulesetOf([table]))).toContain('ip daddr { 10.96.0.0/15, 10.96.0.0/15 } drop')
  })
})

describe('node ports', () => {
  test('the primary address takes them, unless told otherwise', () => {
    const node = { ...nodeA, ips: ['192.168.50.11', '10.0.0.5', 'fd00::1'] }
    expect(render({ node }).elements('nodeport-ips')).toEqual(['192.168.50.11'])
    const settings = { ...byCidr, nodePortAddresses: ['192.168.0.0/16', '10.0.0.0/8', '127.0.0.0/8'] }
    expect(render({ node, settings }).elements('nodeport-ips')).toEqual(['10.0.0.5', '192.168.50.11'])
  })

  test('N7: every address', () => {
    const { table, rules } = render({ settings: { ...byCidr, nodePortAddresses: ['0.0.0.0/0'] } })
    expect(table.sets.has('nodeport-ips')).toBe(false)
    expect(rules('services')?.[1]).toBe(
      'fib daddr type local ip daddr != 127.0.0.0/8 meta l4proto . th dport vmap @service-nodeports',
    )
    expect(rules('nodeport-endpoints-check')).toEqual([
      'ip daddr != 127.0.0.0/8 meta l4proto . th dport vmap @no-endpoint-nodeports',
    ])
  })

  test('with no known address they answer nowhere, and that is told', () => {
    const { elements, codes } = render({ services: [balanced], node: { ...nodeA, ips: [] } })
    expect(elements('nodeport-ips')).toEqual([])
    expect(codes).toEqual(['nftables.no-node-port-address'])
    expect(render({ services: [balanced] }).codes).toEqual([])
  })

  test('N4: entries stand in the order in which the kernel lists them', () => {
    const ports = [257, 2, 1].map((nodePort) => portOf(nodePort, { name: `p${nodePort}`, nodePort }))
    const slicePorts = ports.map(({ name }) => slicePortOf(8080, { name }))
    const service: Service = { ...web, type: 'NodePort', ports }
    const { elements } = render({
      services: [service],
      slices: [sliceOf('shop/web-1', 'web', { ports: slicePorts, endpoints: [local] })],
    })
    expect(elements('service-nodeports')?.map((text) => text.split(' : ')[0])).toEqual([
      'tcp . 1',
      'tcp . 257',
      'tcp . 2',
    ])
  })
})

describe('a Service with endpoints', () => {
  const given = { services: [web], slices: [slice(local, remote)] }

  test('the map leads to its chain, that to an endpoint, and that to DNAT', () => {
    const { rules, elements } = render(given)
    expect(elements('cluster-ips')).toEqual(['10.96.0.7'])
    expect(elements('service-ips')).toEqual([`10.96.0.7 . tcp . 80 : goto ${chains.svc}`])
    expect(rules(chains.svc)).toEqual([
      'ip daddr 10.96.0.7 ip saddr != 10.244.0.0/16 jump mark-for-masquerade',
      `numgen random mod 2 vmap { 0 : goto ${localChain}, 1 : goto ${remoteChain} }`,
    ])
    expect(rules(localChain)).toEqual([
      'ip saddr 10.244.1.9 jump mark-for-masquerade',
      'meta l4proto tcp dnat to 10.244.1.9:8080',
    ])
  })

  test('before 1.34 the mark rule names the port', () => {
    expect(render({ ...given, layout: '1.31' }).rules(chains.svc)?.[0]).toBe(
      'ip daddr 10.96.0.7 tcp dport 80 ip saddr != 10.244.0.0/16 jump mark-for-masquerade',
    )
  })

  test('from 1.36 on no endpoint has a chain, and only those of this node can be hairpins', () => {
    const { rules, elements, table } = render({ ...given, layout: '1.36' })
    expect(rules(chains.svc)).toEqual([
      'meta l4proto tcp dnat ip to numgen random mod 2 map { 0 : 10.244.1.9 . 8080, 1 : 10.244.2.3 . 8080 }',
    ])
    expect(elements('hairpin-connections')).toEqual(['10.244.1.9 . 10.244.1.9 . tcp . 8080'])
    expect([...table.chains.keys()].filter((name) => name.startsWith('endpoint-'))).toEqual([])
    expect(printScript(rulesetOf([table]))).toContain('dnat ip addr . port to numgen')
  })

  test.each([
    ['1.34', 'ip daddr 10.96.0.7 jump mark-for-masquerade', chains.svc],
    ['1.36', 'ip daddr @cluster-ips meta mark set meta mark | 0x00004000', 'services'],
  ] as const)('masqueradeAll in %s', (layout, rule, chain) => {
    const { rules } = render({ ...given, layout, settings: { ...byCidr, masqueradeAll: true } })
    expect(rules(chain)?.[0]).toBe(rule)
  })

  test('without a way to tell local traffic nothing is marked', () => {
    const { rules } = render({ ...given, settings: {} })
    expect(rules(chains.svc)).toHaveLength(1)
    expect(render({ ...given, settings: {}, layout: '1.36' }).rules('services')).toHaveLength(2)
  })

  test.each([
    [{ kind: 'BridgeInterface', name: 'cbr0' }, 'iifname != "cbr0"'],
    [{ kind: 'InterfaceNamePrefix', prefix: 'cali' }, 'iifname != "cali*"'],
    [{ kind: 'NodeCIDR' }, 'ip saddr != 10.244.1.0/24'],
  ] as const)('local traffic by %j', (detectLocal, test) => {
    expect(render({ ...given, settings: { detectLocal } }).rules(chains.svc)?.[0]).toBe(
      `ip daddr 10.96.0.7 ${test} jump mark-for-masquerade`,
    )
  })

  test('N8: affinity', () => {
    const { rules, table } = render({ ...given, services: [{ ...web, affinitySeconds: 10800 }] })
    const set = localChain.replace('endpoint-', 'affinity-')
    const named = table.sets.get(set)
    expect(named && setLines(named)).toEqual(['type ipv4_addr', 'size 65535', 'flags dynamic,timeout', 'timeout 3h'])
    expect(rules(chains.svc)).toEqual([
      'ip daddr 10.96.0.7 ip saddr != 10.244.0.0/16 jump mark-for-masquerade',
      `ip saddr @${set} goto ${localChain}`,
      `ip saddr @${remoteChain.replace('endpoint-', 'affinity-')} goto ${remoteChain}`,
      `numgen random mod 2 vmap { 0 : goto ${localChain}, 1 : goto ${remoteChain} }`,
    ])
    expect(rules(localChain)?.[1]).toBe(`update @${set} { ip saddr }`)
  })

  test('from 1.36 on only affinity needs chains of endpoints', () => {
    const { rules } = render({ ...given, services: [{ ...web, affinitySeconds: 600 }], layout: '1.36' })
    expect(rules(localChain)).toEqual([
      `update @${localChain.replace('endpoint-', 'affinity-')} { ip saddr }`,
      'meta l4proto tcp dnat to 10.244.1.9:8080',
    ])
  })

  test('internal policy Local uses the chain of local endpoints', () => {
    const { rules, elements, table } = render({ ...given, services: [{ ...web, internalTrafficPolicy: 'Local' }] })
    expect(elements('service-ips')).toEqual([`10.96.0.7 . tcp . 80 : goto ${chains.local}`])
    expect(rules(chains.local)).toHaveLength(2)
    expect(table.chains.has(chains.svc)).toBe(false)
  })
})

describe('traffic from outside', () => {
  test('policy Cluster masquerades', () => {
    const { rules, elements } = render({ services: [balanced], slices: [slice(local)] })
    expect(rules(chains.ext)).toEqual(['jump mark-for-masquerade', `goto ${chains.svc}`])
    expect(elements('service-nodeports')).toEqual([`tcp . 31080 : goto ${chains.ext}`])
    expect(elements('service-ips')?.filter((text) => text.endsWith(chains.ext))).toHaveLength(2)
    const later = render({ services: [balanced], slices: [slice(local)], layout: '1.36' })
    expect(later.rules(chains.ext)).toEqual(['meta mark set meta mark | 0x00004000', `goto ${chains.svc}`])
  })

  test('policy Local lets pods and the node itself go anywhere', () => {
    const { rules } = render({ services: [balancedLocal], slices: [slice(local, remote)] })
    expect(rules(chains.ext)).toEqual([
      `ip saddr 10.244.0.0/16 goto ${chains.svc} comment "short-circuit pod traffic"`,
      'fib saddr type local jump mark-for-masquerade comment "masquerade local traffic"',
      `fib saddr type local goto ${chains.svc} comment "short-circuit local traffic"`,
      `goto ${chains.local}`,
    ])
    expect(rules(chains.local)).toEqual([`numgen random mod 1 vmap { 0 : goto ${localChain} }`])
  })

  test('N10: policy Local with endpoints elsewhere only', () => {
    const { rules, elements, table } = render({ services: [balancedLocal], slices: [slice(remote)] })
    expect(elements('service-ips')).toEqual([
      `10.96.0.7 . tcp . 80 : goto ${chains.svc}`,
      `198.51.100.20 . tcp . 80 : goto ${chains.ext}`,
      `203.0.113.77 . tcp . 80 : goto ${chains.ext}`,
    ])
    expect(elements('no-endpoint-services')).toEqual([
      '198.51.100.20 . tcp . 80 comment "shop/web" : drop',
      '203.0.113.77 . tcp . 80 comment "shop/web" : drop',
    ])
    expect(elements('no-endpoint-nodeports')).toEqual(['tcp . 31080 comment "shop/web" : drop'])
    expect(rules(chains.ext)).toHaveLength(3)
    expect(table.chains.has(chains.local)).toBe(false)
  })

  test('N6: source ranges', () => {
    const one = render({ services: [ranged], slices: [slice(local)] })
    expect(one.rules(chains.firewall)).toEqual(['ip saddr != 203.0.113.0/25 drop'])
    expect(one.elements('firewall-ips')).toEqual([`198.51.100.20 . tcp . 80 : goto ${chains.firewall}`])
    const service = { ...ranged, loadBalancerSourceRanges: ['203.0.113.0/25', '192.168.50.0/24'] }
    expect(render({ services: [service], slices: [slice(local)] }).rules(chains.firewall)).toEqual([
      'ip saddr != { 192.168.50.0/24, 198.51.100.20, 203.0.113.0/25 } drop',
    ])
  })

  test('N9: without endpoints the firewall is there all the same', () => {
    const { rules, elements, table } = render({ services: [ranged] })
    expect(elements('firewall-ips')).toEqual([`198.51.100.20 . tcp . 80 : goto ${chains.firewall}`])
    expect(rules(chains.firewall)).toHaveLength(1)
    expect(table.chains.has(chains.ext)).toBe(false)
    expect(elements('cluster-ips')).toEqual(['10.96.0.7'])
    expect(elements('service-ips')).toEqual([])
    expect(elements('no-endpoint-services')).toEqual([
      '10.96.0.7 . tcp . 80 comment "shop/web" : goto reject-chain',
      '198.51.100.20 . tcp . 80 comment "shop/web" : goto reject-chain',
      '203.0.113.77 . tcp . 80 comment "shop/web" : goto reject-chain',
    ])
  })

  test('two Services with one address: the later one has the entry, and that is told', () => {
    const { externalIPs, loadBalancerIngress } = balanced
    const other = serviceOf('shop/zoo', {
      type: 'LoadBalancer',
      clusterIPs: ['10.96.0.8'],
      ports: [portOf(80)],
      externalIPs,
      loadBalancerIngress,
    })
    const endpoints = sliceOf('shop/zoo-1', 'zoo', { ports: [slicePortOf(8080)], endpoints: [local] })
    const { elements, codes } = render({ services: [balanced, other], slices: [slice(local), endpoints] })
    expect(codes).toEqual(['nftables.address-shared', 'nftables.address-shared'])
    expect(elements('service-ips')?.filter((text) => text.startsWith('203.0.113.77'))).toEqual([
      expect.stringContaining('shop/zoo/tcp/'),
    ])
  })
})

test('a list shows no handles unless it is asked for them', () => {
  const { table } = render({})
  const numbered = rulesetOf([{ ...table, handle: 7 }])
  expect(printList(numbered)).toMatch(/^table ip kube-proxy \{\n/)
  expect(printList(numbered, { hasHandles: true })).toMatch(/^table ip kube-proxy \{ # handle 7\n/)
})

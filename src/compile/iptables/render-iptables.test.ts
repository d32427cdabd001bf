/** What kube-proxy writes for a Service on a node: the cases R3 to R35. */
import { describe, expect, test } from 'vitest'
import { planServices } from '#compile/services/plan-services'
import type { ProxySettings } from '#compile/services/proxy-settings'
import type { ProxyNode } from '#compile/services/service-plan'
import type { Endpoint, EndpointSlice } from '#model/endpoint-slice'
import type { Service } from '#model/service'
import { clusterOf, endpointOf, portOf, serviceOf, sliceOf, slicePortOf } from '../../../test/golden/objects'
import { printRestore } from './print-restore'
import { printSave } from './print-save'
import { type RenderOptions, renderIptables, savedRuleset } from './render-iptables'

const nodeA: ProxyNode = { name: 'node-a', ips: ['192.168.50.11'], labels: {}, podCIDRs: ['10.244.1.0/24'] }
const byCidr: Partial<ProxySettings> = {
  detectLocal: { kind: 'ClusterCIDR', cidrs: ['10.244.0.0/16', 'fd00:10:244::/56'] },
}

type Given = RenderOptions & {
  readonly services: readonly Service[]
  readonly slices?: readonly EndpointSlice[]
  readonly family?: 'ipv4' | 'ipv6'
  readonly settings?: Partial<ProxySettings>
  readonly node?: ProxyNode
}

function render({ services, slices = [], family = 'ipv4', settings = byCidr, node = nodeA, ...options }: Given) {
  const plan = planServices(clusterOf({ services }), slices, { family, node, settings })
  const sync = renderIptables(plan.value, options)
  return {
    restore: printRestore(sync.tables).split('\n'),
    save: printSave(savedRuleset(sync), { date: 'now' }).split('\n'),
    codes: plan.findings.map(({ code }) => code),
  }
}

const having = (lines: readonly string[], text: string): string[] => lines.filter((line) => line.includes(text))

const local = endpointOf('10.244.1.9', { nodeName: 'node-a' })
const remote = endpointOf('10.244.2.3', { nodeName: 'node-b' })
const draining = { ready: false, serving: true, terminating: true }

/** The slice of Service shop/web with these endpoints at port 8080. */
function slice(...endpoints: readonly Endpoint[]): EndpointSlice {
  return sliceOf('shop/web-1', 'web', { ports: [slicePortOf(8080)], endpoints })
}

const web = serviceOf('shop/web', { clusterIPs: ['10.96.0.7'], ports: [portOf(80)] })
const chain = { svc: 'KUBE-SVC-E3PXEPMWAWIUT6ZV', svl: 'KUBE-SVL-E3PXEPMWAWIUT6ZV', ext: 'KUBE-EXT-E3PXEPMWAWIUT6ZV' }
const firewall = 'KUBE-FW-E3PXEPMWAWIUT6ZV'

const balanced: Service = {
  ...web,
  type: 'LoadBalancer',
  ports: [portOf(80, { nodePort: 31080 })],
  externalIPs: ['203.0.113.77'],
  loadBalancerIngress: [{ ip: '198.51.100.20', ipMode: 'VIP' }],
}
const balancedLocal: Service = { ...balanced, externalTrafficPolicy: 'Local', healthCheckNodePort: 32111 }

test('two ports of one name make one chain, and no rule in it is doubled', () => {
  const ports = [portOf(80, { name: 'a' }), portOf(81, { name: 'a' })]
  const slices = [
    sliceOf('shop/web-1', 'web', { ports: [slicePortOf(8080, { name: 'a' })], endpoints: [local, remote] }),
  ]
  const { restore, codes } = render({ services: [{ ...web, ports }], slices })
  expect(codes).toEqual(['services.port-replaced'])
  expect(having(restore, '--dport 80 ')).toEqual([])
  const rules = restore.filter((line) => /^-A KUBE-S(?:EP|VC)-/.test(line))
  expect(new Set(rules).size).toBe(rules.length)
  expect(having(restore, '--dport 81 ')).toHaveLength(2)
})

describe('Services without rules', () => {
  test.each([
    ['ExternalName', { ...web, type: 'ExternalName' as const }],
    ['clusterIP None', { ...web, clusterIPs: ['None'], externalIPs: ['203.0.113.77'] }],
    ['no cluster IP', { ...web, clusterIPs: [] }],
    [
      'another proxy',
      serviceOf('shop/web', { ...web, meta: { labels: { 'service.kubernetes.io/service-proxy-name': '' } } }),
    ],
    [
      'the headless label',
      serviceOf('shop/web', { ...web, meta: { labels: { 'service.kubernetes.io/headless': '' } } }),
    ],
  ])('R3: %s', (_, service) => {
    expect(having(render({ services: [service], slices: [slice(local)] }).restore, 'shop/web')).toEqual([])
  })

  test('R4: a slice with the headless label does not count', () => {
    const hidden = sliceOf('shop/web-1', 'web', {
      meta: { labels: { 'service.kubernetes.io/headless': '' } },
      ports: [slicePortOf(8080)],
      endpoints: [local],
    })
    const { restore, codes } = render({ services: [web], slices: [hidden] })
    expect(having(restore, 'shop/web')).toEqual([
      '-A KUBE-SERVICES -m comment --comment "shop/web has no endpoints" -m tcp -p tcp -d 10.96.0.7 --dport 80 -j REJECT',
    ])
    expect(codes).toEqual(['services.hidden-slice'])
  })
})

describe('masquerading of traffic to the cluster IP', () => {
  const given = { services: [web], slices: [slice(local)] }
  const marks = (settings: Partial<ProxySettings>): string[] =>
    having(render({ ...given, settings }).restore, `-A ${chain.svc} `).filter((line) => line.includes('cluster IP'))

  test('R5: masqueradeAll', () => {
    expect(marks({ ...byCidr, masqueradeAll: true })).toEqual([
      `-A ${chain.svc} -m comment --comment "shop/web cluster IP" -m tcp -p tcp -d 10.96.0.7 --dport 80 -j KUBE-MARK-MASQ`,
    ])
  })

  test('R6: without a way to tell local traffic there is no mark and no rule for pods', () => {
    expect(marks({})).toEqual([])
    expect(
      having(render({ services: [balancedLocal], slices: [slice(local)], settings: {} }).restore, 'pod traffic'),
    ).toEqual([])
  })

  test('R7: bridge interface', () => {
    const settings: Partial<ProxySettings> = { detectLocal: { kind: 'BridgeInterface', name: 'cbr0' } }
    expect(marks(settings)[0]).toMatch(/--dport 80 ! -i cbr0 -j KUBE-MARK-MASQ$/)
    expect(render({ ...given, settings }).save).toContain(
      `-A ${chain.svc} -d 10.96.0.7/32 ! -i cbr0 -p tcp -m comment --comment "shop/web cluster IP" -m tcp --dport 80 -j KUBE-MARK-MASQ`,
    )
  })

  test('R8: interface prefix, also for pod traffic', () => {
    const settings: Partial<ProxySettings> = { detectLocal: { kind: 'InterfaceNamePrefix', prefix: 'veth' } }
    expect(marks(settings)[0]).toContain('! -i veth+ -j')
    const { restore } = render({ services: [balancedLocal], slices: [slice(local)], settings })
    expect(having(restore, 'pod traffic')[0]).toContain(`-i veth+ -j ${chain.svc}`)
  })

  test('NodeCIDR takes the pod range of the node', () => {
    expect(marks({ detectLocal: { kind: 'NodeCIDR' } })[0]).toContain('! -s 10.244.1.0/24 -j')
  })
})

describe('traffic policy Local', () => {
  test('R9: no local endpoint: dropped from outside, served from the node', () => {
    const { restore } = render({ services: [balancedLocal], slices: [slice(remote)] })
    expect(having(restore, `-A ${chain.ext} `)).toEqual([
      `-A ${chain.ext} -m comment --comment "pod traffic for shop/web external destinations" -s 10.244.0.0/16 -j ${chain.svc}`,
      `-A ${chain.ext} -m comment --comment "masquerade LOCAL traffic for shop/web external destinations" -m addrtype --src-type LOCAL -j KUBE-MARK-MASQ`,
      `-A ${chain.ext} -m comment --comment "route LOCAL traffic for shop/web external destinations" -m addrtype --src-type LOCAL -j ${chain.svc}`,
    ])
    expect(having(restore, 'has no local endpoints')).toEqual([
      '-A KUBE-EXTERNAL-SERVICES -m comment --comment "shop/web has no local endpoints" -m tcp -p tcp -d 203.0.113.77 --dport 80 -j DROP',
      '-A KUBE-EXTERNAL-SERVICES -m comment --comment "shop/web has no local endpoints" -m tcp -p tcp -d 198.51.100.20 --dport 80 -j DROP',
      '-A KUBE-EXTERNAL-SERVICES -m comment --comment "shop/web has no local endpoints" -m addrtype --dst-type LOCAL -m tcp -p tcp --dport 31080 -j DROP',
    ])
    expect(restore).toContain(`:${chain.svc} - [0:0]`)
    expect(having(restore, chain.svl)).toEqual([])
  })

  test('R10: no endpoint at all: refused everywhere, no nat chains, the health check port still open', () => {
    const { restore } = render({ services: [balancedLocal] })
    const verdicts = having(restore, 'has no endpoints')
    expect(verdicts.map((line) => line.split(' ')[1])).toEqual([
      'KUBE-SERVICES',
      ...Array(3).fill('KUBE-EXTERNAL-SERVICES'),
    ])
    expect(verdicts.every((line) => line.endsWith('-j REJECT'))).toBe(true)
    expect(having(restore, 'E3PXEPMWAWIUT6ZV')).toEqual([])
    expect(restore).toContain(
      '-A KUBE-NODEPORTS -m comment --comment "shop/web health check node port" -m tcp -p tcp --dport 32111 -j ACCEPT',
    )
  })

  test('R11: internal Local with a local endpoint: only the local chain', () => {
    const { restore } = render({
      services: [{ ...web, internalTrafficPolicy: 'Local' }],
      slices: [slice(local, remote)],
    })
    expect(having(restore, '-A KUBE-SERVICES')[0]).toContain(`-j ${chain.svl}`)
    expect(having(restore, chain.svc)).toEqual([])
    expect(having(restore, ':KUBE-SEP-')).toEqual([':KUBE-SEP-WLSS255UV4TZ6REW - [0:0]'])
  })

  test('R12: internal Local with a node port and remote endpoints', () => {
    const service: Service = {
      ...web,
      type: 'NodePort',
      internalTrafficPolicy: 'Local',
      ports: [portOf(80, { nodePort: 31080 })],
    }
    const { restore } = render({ services: [service], slices: [slice(remote)] })
    expect(having(restore, 'has no local endpoints')).toEqual([
      '-A KUBE-SERVICES -m comment --comment "shop/web has no local endpoints" -m tcp -p tcp -d 10.96.0.7 --dport 80 -j DROP',
    ])
    expect(restore).toContain(`-A ${chain.ext} -j ${chain.svc}`)
  })

  test('R13: a health check port has no effect with policy Cluster', () => {
    const { restore } = render({
      services: [{ ...balancedLocal, externalTrafficPolicy: 'Cluster' }],
      slices: [slice(local)],
    })
    expect(having(restore, 'health check node port')).toEqual([])
  })

  test('R31: ready endpoints elsewhere and a draining one here', () => {
    const here = endpointOf('10.244.1.9', { nodeName: 'node-a', conditions: draining })
    const { restore } = render({ services: [balancedLocal], slices: [slice(here, remote)] })
    expect(having(restore, `-A ${chain.svc} `).filter((line) => line.includes('->'))).toMatchObject([
      expect.stringContaining('10.244.2.3:8080'),
    ])
    expect(having(restore, `-A ${chain.svl} `)).toMatchObject([expect.stringContaining('10.244.1.9:8080')])
    expect(having(restore, ':KUBE-SEP-')).toHaveLength(2)
  })
})

describe('load balancer source ranges', () => {
  const withRanges = (...loadBalancerSourceRanges: string[]) => ({ ...balanced, loadBalancerSourceRanges })
  const firewallRules = (service: Service, node = nodeA): string[] =>
    having(render({ services: [service], slices: [slice(local)], node }).restore, `-A ${firewall} `)

  test('R14: the node is outside the range', () => {
    expect(firewallRules(withRanges('203.0.113.0/25'))).toEqual([
      `-A ${firewall} -m comment --comment "shop/web loadbalancer IP" -s 203.0.113.0/25 -j ${chain.ext}`,
      `-A ${firewall} -m comment --comment "other traffic to shop/web will be dropped by KUBE-PROXY-FIREWALL"`,
    ])
  })

  test('R15: the node is inside a range', () => {
    expect(firewallRules(withRanges('192.168.50.0/24'))).toContain(
      `-A ${firewall} -m comment --comment "shop/web loadbalancer IP" -s 198.51.100.20 -j ${chain.ext}`,
    )
  })

  test('R16: no address of the load balancer yet', () => {
    expect(firewallRules({ ...withRanges('203.0.113.0/25'), loadBalancerIngress: [] })).toEqual([])
  })

  test('R17: no endpoints', () => {
    const { restore } = render({ services: [withRanges('203.0.113.0/25')] })
    expect(having(restore, firewall)).toEqual([])
    expect(having(restore, '-A KUBE-PROXY-FIREWALL')).toEqual([])
  })

  test('ranges of the other family are left out', () => {
    expect(firewallRules(withRanges('2001:db8::/32'))).toEqual([])
  })

  test('R28: an ingress with a hostname, or in mode Proxy, has no rules', () => {
    const ingress = [
      { hostname: 'x', ipMode: 'VIP' as const },
      { ip: '198.51.100.20', ipMode: 'Proxy' as const },
    ]
    const { restore } = render({ services: [{ ...balanced, loadBalancerIngress: ingress }], slices: [slice(local)] })
    expect(having(restore, 'loadbalancer IP')).toEqual([])
  })
})

test('R18: affinity asks every endpoint first', () => {
  const { restore } = render({ services: [{ ...web, affinitySeconds: 600 }], slices: [slice(local, remote)] })
  const balancing = having(restore, `-A ${chain.svc} `).slice(1)
  expect(balancing.map((line) => / -m (recent|statistic)/.exec(line)?.[1])).toEqual([
    'recent',
    'recent',
    'statistic',
    undefined,
  ])
  expect(balancing[0]).toBe(
    `-A ${chain.svc} -m comment --comment "shop/web -> 10.244.1.9:8080" -m recent --name KUBE-SEP-WLSS255UV4TZ6REW --rcheck --seconds 600 --reap -j KUBE-SEP-WLSS255UV4TZ6REW`,
  )
  expect(having(restore, '--set -m tcp -p tcp -j DNAT')).toHaveLength(2)
})

describe('node ports', () => {
  const nodePort: Service = { ...web, type: 'NodePort', ports: [portOf(80, { nodePort: 31080 })] }
  const given = { services: [nodePort], slices: [slice(local)] }
  const tail = 'kubernetes service nodeports; NOTE: this must be the last rule in this chain'

  test('R19: chosen addresses', () => {
    const { restore, save } = render({ ...given, settings: { ...byCidr, nodePortAddresses: ['192.168.50.0/24'] } })
    expect(having(restore, 'addrtype')).toEqual([])
    expect(save).toContain(`-A KUBE-SERVICES -d 192.168.50.11/32 -m comment --comment "${tail}" -j KUBE-NODEPORTS`)
    expect(having(restore, 'KUBE-FIREWALL')).toEqual([])
  })

  test("loopback is one of the node's addresses where it is chosen", () => {
    const settings = { ...byCidr, nodePortAddresses: ['127.0.0.0/8'] }
    expect(having(render({ ...given, settings }).restore, tail)).toEqual([
      `-A KUBE-SERVICES -m comment --comment "${tail}" -d 127.0.0.1 -j KUBE-NODEPORTS`,
    ])
    const without = render({ ...given, settings: { ...settings, localhostNodePorts: false } })
    expect(having(without.restore, tail)).toEqual([])
    expect(without.codes).toEqual([])
  })

  test('R20: no node ports on loopback', () => {
    const { restore, save } = render({ ...given, settings: { ...byCidr, localhostNodePorts: false } })
    expect(save).toContain(
      `-A KUBE-SERVICES ! -d 127.0.0.0/8 -m comment --comment "${tail}" -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS`,
    )
    expect(having(restore, 'KUBE-FIREWALL')).toEqual([])
  })

  test('R22: with nfacct', () => {
    const { restore, save } = render({ ...given, settings: { ...byCidr, nfacct: true } })
    expect(having(restore, '-A KUBE-NODEPORTS')).toEqual([
      `-A KUBE-NODEPORTS -m comment --comment shop/web -m tcp -p tcp -d 127.0.0.0/8 --dport 31080 -m nfacct --nfacct-name localhost_nps_accepted_pkts -j ${chain.ext}`,
      `-A KUBE-NODEPORTS -m comment --comment shop/web -m tcp -p tcp --dport 31080 -j ${chain.ext}`,
    ])
    expect(having(restore, 'INVALID')[0]).toBe(
      '-A KUBE-FORWARD -m conntrack --ctstate INVALID -m nfacct --nfacct-name ct_state_invalid_dropped_pkts -j DROP',
    )
    expect(having(save, 'nfacct')[0]).toContain('-m nfacct --nfacct-name  ct_state_invalid_dropped_pkts')
  })
})

test('R21: IPv6', () => {
  const services = [
    serviceOf('shop/web', {
      type: 'NodePort',
      clusterIPs: ['fd00::7'],
      ports: [portOf(80, { nodePort: 31080 })],
      affinitySeconds: 10,
    }),
    serviceOf('shop/void', { clusterIPs: ['fd00::8'], ports: [portOf(80)] }),
  ]
  const slices = [
    sliceOf('shop/web-6', 'web', {
      addressType: 'IPv6',
      ports: [slicePortOf(8080)],
      endpoints: [endpointOf('fd00:10:244:1::9')],
    }),
  ]
  const { restore, save } = render({ services, slices, family: 'ipv6' })
  expect(having(restore, 'KUBE-FIREWALL')).toEqual([])
  expect(having(restore, 'NOTE: this')[0]).toContain('-m addrtype --dst-type LOCAL ! -d ::1/128 -j KUBE-NODEPORTS')
  expect(having(save, 'shop/void')[0]).toMatch(/-j REJECT --reject-with icmp6-port-unreachable$/)
  expect(having(save, '--rcheck')[0]).toContain('--mask ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff --rsource')
  expect(having(save, 'DNAT')[0]).toContain('--to-destination [fd00:10:244:1::9]:8080')
})

test('R23: no rule for INVALID where conntrack is liberal', () => {
  const { restore } = render({ services: [], settings: { conntrackTcpBeLiberal: true } })
  expect(having(restore, 'INVALID')).toEqual([])
})

test('R24: above 1000 endpoints the comments of endpoints go, the others stay', () => {
  const endpoints = Array.from({ length: 1001 }, (_, at) => endpointOf(`10.244.${at >> 8}.${at & 255}`))
  const { restore } = render({ services: [web], slices: [slice(...endpoints)] })
  expect(having(restore, ' -> ')).toEqual([])
  expect(having(restore, '-A KUBE-SEP-').filter((line) => line.includes('comment'))).toEqual([])
  expect(having(restore, 'shop/web cluster IP')).toHaveLength(2)
  const [smaller] = [render({ services: [web], slices: [slice(...endpoints.slice(1))] })]
  expect(having(smaller.restore, ' -> ')).toHaveLength(1000)
})

test('R25: sctp', () => {
  const voip = serviceOf('shop/voip', { ports: [portOf(5060, { name: 'sig', protocol: 'SCTP' })] })
  const slices = [
    sliceOf('shop/voip-1', 'voip', {
      ports: [slicePortOf(5060, { name: 'sig', protocol: 'SCTP' })],
      endpoints: [local],
    }),
  ]
  const { save } = render({ services: [voip], slices })
  expect(having(save, '-A KUBE-SERVICES -d')[0]).toBe(
    '-A KUBE-SERVICES -d 10.96.0.9/32 -p sctp -m comment --comment "shop/voip:sig cluster IP" -m sctp --dport 5060 -j KUBE-SVC-ROI6OQIFQ6MZCRSX',
  )
})

test('R26: chains of endpoints that are gone are flushed and deleted before the last rule', () => {
  const previousChains = ['KUBE-SEP-OLD', 'KUBE-SEP-WLSS255UV4TZ6REW', 'KUBE-SERVICES', 'DOCKER']
  const { restore, save } = render({ services: [web], slices: [slice(local)], previousChains })
  expect(having(restore, 'KUBE-SEP-OLD')).toEqual([':KUBE-SEP-OLD - [0:0]', '-X KUBE-SEP-OLD'])
  expect(restore.filter((line) => line.startsWith('-X'))).toEqual(['-X KUBE-SEP-OLD'])
  expect(restore.at(restore.indexOf('-X KUBE-SEP-OLD') + 1)).toContain('this must be the last rule')
  expect(having(save, 'KUBE-SEP-OLD')).toEqual([])
})

test('R27: each family of a dual-stack Service has its own address and endpoints', () => {
  const dual = serviceOf('shop/web', { clusterIPs: ['10.96.0.9', 'fd00::9'], ports: [portOf(80)] })
  const six = sliceOf('shop/web-6', 'web', {
    addressType: 'IPv6',
    ports: [slicePortOf(8080)],
    endpoints: [endpointOf('fd00:10:244:1::9')],
  })
  const slices = [slice(local), six]
  const four = render({ services: [dual], slices }).restore
  expect(having(four, 'fd00')).toEqual([])
  expect(having(four, '-d 10.96.0.9')).not.toEqual([])
  const other = render({ services: [dual], slices, family: 'ipv6' }).restore
  expect(having(other, '10.')).toEqual([])
  expect(having(other, '-d fd00::9')).not.toEqual([])
})

describe('which endpoints', () => {
  const balancing = (slices: readonly EndpointSlice[], node = nodeA): string[] =>
    having(render({ services: [web], slices, node }).restore, ' -> ').map((line) => / -> (\S+)"/.exec(line)?.[1] ?? '')

  test('H9: endpoints are sorted as text', () => {
    const slices = [slice(endpointOf('10.0.0.2'), endpointOf('10.0.0.10'), endpointOf('10.0.0.9'))]
    expect(balancing(slices)).toEqual(['10.0.0.10:8080', '10.0.0.2:8080', '10.0.0.9:8080'])
  })

  test('R29: nothing is ready and two are draining', () => {
    const slices = [
      slice(endpointOf('10.0.0.2', { conditions: draining }), endpointOf('10.0.0.3', { conditions: draining })),
    ]
    expect(balancing(slices)).toEqual(['10.0.0.2:8080', '10.0.0.3:8080'])
  })

  test('R30: terminating without serving is no endpoint', () => {
    const slices = [slice(endpointOf('10.0.0.2', { conditions: { ready: false, serving: false, terminating: true } }))]
    expect(having(render({ services: [web], slices }).restore, 'has no endpoints')[0]).toMatch(/-j REJECT$/)
  })

  test('R32: zone hints keep traffic in the zone, unless one endpoint has none', () => {
    const node = { ...nodeA, labels: { 'topology.kubernetes.io/zone': 'b' } }
    const a = endpointOf('10.0.0.1', { forZones: ['a'] })
    const b = endpointOf('10.0.0.2', { forZones: ['b'] })
    expect(balancing([slice(a, b)], node)).toEqual(['10.0.0.2:8080'])
    expect(balancing([slice(endpointOf('10.0.0.1'), b)], node)).toEqual(['10.0.0.1:8080', '10.0.0.2:8080'])
  })

  test('hints for this node go before hints for its zone', () => {
    const node = { ...nodeA, labels: { 'topology.kubernetes.io/zone': 'b' } }
    const here = endpointOf('10.0.0.1', { forZones: ['b'], forNodes: ['node-a'] })
    const near = endpointOf('10.0.0.2', { forZones: ['b'], forNodes: ['node-c'] })
    expect(balancing([slice(here, near)], node)).toEqual(['10.0.0.1:8080'])
    expect(balancing([slice(here, near)], { ...node, name: 'node-d' })).toEqual(['10.0.0.1:8080', '10.0.0.2:8080'])
  })

  test('R33: the same endpoint in two slices has one chain', () => {
    const twice = [slice(local), { ...slice(local), meta: { ...slice().meta, name: 'web-2' } }]
    expect(having(render({ services: [web], slices: twice }).restore, ':KUBE-SEP-')).toHaveLength(1)
  })

  test('R34: a slice port without a number is no port', () => {
    const slices = [sliceOf('shop/web-1', 'web', { ports: [{ name: '', protocol: 'TCP' }], endpoints: [local] })]
    const { restore, codes } = render({ services: [web], slices })
    expect(having(restore, 'has no endpoints')).toHaveLength(1)
    expect(codes).toContain('services.slice-port-without-number')
  })

  test('R35: a slice port of another name is no port, and that is told', () => {
    const service = serviceOf('shop/web', { ports: [portOf(80, { name: 'web' })] })
    const slices = [sliceOf('shop/web-1', 'web', { ports: [slicePortOf(8080, { name: 'http' })], endpoints: [local] })]
    const { restore, codes } = render({ services: [service], slices })
    expect(having(restore, 'shop/web:web has no endpoints')).toHaveLength(1)
    expect(codes).toEqual(['services.port-name-mismatch'])
  })
})

test('own chain names carry the same rules', () => {
  const given = { services: [balancedLocal], slices: [slice(local, remote)] }
  const [theirs, own] = [render(given).restore, render({ ...given, chainNames: 'own' }).restore]
  const withoutNames = (lines: readonly string[]): string[] =>
    lines.map((line) => line.replace(/KUBE-(\w{2,3})-[A-Z2-7\d]{16}/g, 'KUBE-$1-'))
  expect(withoutNames(own)).toEqual(withoutNames(theirs))
  expect(having(own, ':KUBE-SVC-')[0]).toMatch(/^:KUBE-SVC-[0-9A-F]{16} /)
})

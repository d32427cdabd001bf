/** Rows of a node's maps with their bytes and text: the cases M1 to M19 and M29 of the sheet. */
import { expect, test } from 'vitest'
import { askMaps, hex, service, worldConfig } from '../../../test/cilium/ask-maps'
import { cnp } from '../../../test/policy/ask-cilium'
import { node } from '../../../test/policy/policy-objects'

const toServer = { endpointSelector: { matchLabels: { app: 'server' } } }
const client = { matchLabels: { app: 'client' } }

function ports(...list: readonly object[]): object {
  return { ...toServer, ingress: [{ fromEndpoints: [client], toPorts: [{ ports: list }] }] }
}

/** Keys of B's policy map for what others than the host may send to it. */
function ingressOfB(spec: object, options: Parameters<typeof askMaps>[1] = {}) {
  const asked = askMaps([cnp('business/b', spec as never)], options)
  const policy = asked.maps.policies.find(({ endpoint }) => endpoint.title === 'business/b')
  const name = asked.dumped.find(({ layout }) => layout.holds.includes('business/b'))?.layout.name ?? ''
  const rows = asked.map(name).rows.filter((_, index) => {
    const key = policy?.rows[index]?.entry.key
    return key?.direction === 'ingress' && key.identity !== 1
  })
  return { ...asked, rows, name }
}

test('M1: a key for TCP 8080 of identity 1001', () => {
  const { rows } = ingressOfB(ports({ port: '8080', protocol: 'TCP' }))
  expect(rows.map(({ keyBytes }) => hex(keyBytes))).toEqual(['40000000e9030000' + '00061f90'])
  expect(rows[0]?.source).toMatchObject({ object: { kind: 'CiliumNetworkPolicy', name: 'b' }, path: 'spec.ingress[0]' })
})

test('M2: eight ports are one key of 61 bits, whose value says 21', () => {
  const { rows } = ingressOfB(ports({ port: '8080', endPort: 8087, protocol: 'TCP' }))
  expect(rows.map(({ keyBytes }) => hex(keyBytes))).toEqual(['3d000000e9030000' + '00061f90'])
  expect((rows[0]?.valueBytes[2] ?? 0) >> 3).toBe(21)
})

test('M3: egress that is not enforced is one key of 40 bits', () => {
  const { map, name } = ingressOfB(ports({ port: '8080', protocol: 'TCP' }))
  const last = map(name).rows.at(-1)
  expect(hex(last?.keyBytes)).toBe('280000000000000001000000')
  expect(hex(last?.valueBytes)).toBe('000000000000000000000000')
})

test('M4: the type of ICMP stands where a port would', () => {
  const spec = {
    ...toServer,
    ingress: [{ fromEntities: ['world'], icmps: [{ fields: [{ type: 8, family: 'IPv4' }] }] }],
  }
  const { rows } = ingressOfB(spec)
  expect(rows.map(({ keyBytes }) => hex(keyBytes))).toEqual(['400000000200000000010008'])
})

test.each([
  ['M5', { port: '8080', endPort: 8090, protocol: 'TCP' }, ['3d…1f90', '3f…1f98', '40…1f9a']],
  ['M7', { port: '8100', endPort: 8090, protocol: 'TCP' }, ['40…1fa4']],
])('%s: a range is the fewest prefixes', (_id, port, wanted) => {
  const { rows } = ingressOfB(ports(port))
  expect(rows.map(({ keyBytes }) => `${hex(keyBytes).slice(0, 2)}…${hex(keyBytes).slice(20)}`)).toEqual(wanted)
})

test('M6: all ports but 0 are sixteen keys, all ports are one of 48 bits', () => {
  expect(ingressOfB(ports({ port: '1', endPort: 65535, protocol: 'TCP' })).rows).toHaveLength(16)
  const { rows } = ingressOfB(ports({ port: '0', endPort: 65535, protocol: 'TCP' }))
  expect(rows.map(({ keyBytes }) => keyBytes[0])).toEqual([48])
})

test('M8: a port without protocol is three keys', () => {
  expect(ingressOfB(ports({ port: '80' })).rows.map(({ keyBytes }) => keyBytes[9])).toEqual([6, 17, 132])
})

test('M9: two identities and a range of eight prefixes are sixteen keys', () => {
  const peers = [client, { matchLabels: { ver: 'v2' } }]
  const spec = {
    ...toServer,
    ingress: [{ fromEndpoints: peers, toPorts: [{ ports: [{ port: '80', endPort: 443, protocol: 'TCP' }] }] }],
  }
  expect(ingressOfB(spec).rows).toHaveLength(16)
})

const withRanges = [
  { ...node('node-b', '192.168.1.11'), spec: { podCIDRs: ['10.244.2.0/24'] } },
  { ...node('node-a', '192.168.1.10'), spec: { podCIDRs: ['10.244.1.0/24'] } },
]

test('M10: a /24 is stored as 56 bits', () => {
  const { row } = askMaps(withRanges)
  expect(hex(row('cilium_ipcache_v2', '10.244.2.0/24')?.keyBytes)).toBe(
    `3800000000000001${'0af40200'}${'0'.repeat(24)}`,
  )
})

test('M11: everything else is the world, at 32 bits', () => {
  const found = askMaps([]).row('cilium_ipcache_v2', '0.0.0.0/0')
  expect([hex(found?.keyBytes).slice(0, 8), found?.value.startsWith('identity=2 ')]).toEqual(['20000000', true])
})

test('a remote pod’s row has its node behind the tunnel, in each version’s layout', () => {
  const key = '40000000000000010af4021e000000000000000000000000'
  const wide = askMaps([]).row('cilium_ipcache_v2', '10.244.2.30/32')
  expect([hex(wide?.keyBytes), hex(wide?.valueBytes)]).toEqual([key, `eb030000c0a8010b${'0'.repeat(28)}0002`])
  expect(wide?.value).toBe('identity=1003 encryptkey=0 tunnelendpoint=192.168.1.11 flags=hastunnel')
  const narrow = askMaps([], { version: '1.16' }).row('cilium_ipcache', '10.244.2.30/32')
  expect([hex(narrow?.keyBytes), hex(narrow?.valueBytes)]).toEqual([key, 'eb030000c0a8010b00000000'])
  expect(narrow?.value).toBe('identity=1003 encryptkey=0 tunnelendpoint=192.168.1.11 nodeid=0')
})

test('a pod’s row of cilium_lxc has its number and identity', () => {
  const found = askMaps([]).row('cilium_lxc', '10.244.1.10:0')
  expect(hex(found?.keyBytes)).toBe(`0af4010a${'0'.repeat(24)}01000000`)
  expect(found?.valueBytes.length).toBe(48)
  expect(hex(found?.valueBytes.subarray(32, 36))).toBe('e9030000')
})

test('M13: a source range counts the service before the prefix', () => {
  const earlier = service('a/one', { clusterIP: '10.96.0.1' })
  const { texts, map } = askMaps([earlier, balanced({ loadBalancerSourceRanges: ['198.51.100.0/24'] })])
  expect(texts('cilium_lb4_source_range')).toEqual(['198.51.100.0/24 (5) → '])
  expect(hex(map('cilium_lb4_source_range').rows[0]?.keyBytes)).toBe('3800000000050000c6336400')
  expect(texts('cilium_lb4_services_v2').filter((text) => text.includes('check source-range'))).toEqual([
    '203.0.113.80:80/TCP (0) → 0.0.0.0:0 (5) (0) [LoadBalancer, check source-range]',
  ])
})

function balanced(spec: object): ReturnType<typeof service> {
  const status = { loadBalancer: { ingress: [{ ip: '203.0.113.80' }] } }
  const ports = [{ port: 80, targetPort: 8080, nodePort: 30080 }]
  return { ...service('business/server', { type: 'LoadBalancer', ports, ...spec } as never), status }
}

test('M14: a Service with two backends is three rows, two backends and one row of reverse NAT', () => {
  const { texts, row } = askMaps([service('business/server', {})])
  expect(texts('cilium_lb4_services_v2')).toEqual([
    '10.96.0.50:80/TCP (0) → 0.0.0.0:0 (1) (0) [ClusterIP, non-routable]',
    '10.96.0.50:80/TCP (1) → 10.244.1.20:8080/TCP (1) (1)',
    '10.96.0.50:80/TCP (2) → 10.244.2.30:8080/TCP (1) (2)',
  ])
  expect(texts('cilium_lb4_backends_v3')).toEqual(['1 → TCP://10.244.1.20', '2 → TCP://10.244.2.30'])
  expect(texts('cilium_lb4_reverse_nat')).toEqual(['1 → 10.96.0.50:80'])
  const master = row('cilium_lb4_services_v2', '10.96.0.50:80/TCP (0)')
  expect(hex(master?.keyBytes)).toBe('0a6000320050000006000000')
  expect(hex(master?.valueBytes)).toBe('000000000200000100000000')
  expect(hex(row('cilium_lb4_services_v2', '10.96.0.50:80/TCP (2)')?.keyBytes)).toBe('0a6000320050020006000000')
  expect(hex(row('cilium_lb4_backends_v3', '1')?.valueBytes)).toBe('0af401141f90060000000000')
})

test('M14: before 1.17 keys hold no protocol, and all slots stand under one address', () => {
  const { texts, map } = askMaps([service('business/server', {})], { version: '1.16' })
  expect(texts('cilium_lb4_services_v2')[1]).toBe('10.96.0.50:80 → 10.244.1.20:8080 (1) (1)')
  expect(map('cilium_lb4_services_v2').rows.map(({ keyBytes }) => keyBytes[8])).toEqual([0, 0, 0])
})

test('M15: a backend that is not ready has neither slot nor row', () => {
  const unready = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace: 'business', name: 'c', labels: { app: 'server', ver: 'v2' } },
    spec: { nodeName: 'node-b', containers: [{ name: 'main' }] },
    status: { phase: 'Running', podIPs: [{ ip: '10.244.2.30' }], conditions: [{ type: 'Ready', status: 'False' }] },
  }
  const { texts, row } = askMaps([service('business/server', {}), unready])
  expect(texts('cilium_lb4_services_v2')).toHaveLength(2)
  expect(countIn(row('cilium_lb4_services_v2', '10.96.0.50:80/TCP (0)'))).toBe(1)
  expect(texts('cilium_lb4_backends_v3')).toEqual(['1 → TCP://10.244.1.20'])
})

/** Of a frontend's row. */
function countIn(master: { readonly valueBytes: Uint8Array } | undefined): number {
  return (master?.valueBytes[4] ?? -1) + 256 * (master?.valueBytes[5] ?? 0)
}

const nodePort = { type: 'NodePort', ports: [{ port: 80, targetPort: 8080, nodePort: 30080 }] }

test('M16: a node port is met at the cluster address, the surrogate and each address of the node', () => {
  const { maps } = askMaps([service('business/server', nodePort)])
  expect(maps.lb.services.map(({ type, revNat }) => `${type} ${revNat}`)).toEqual([
    'ClusterIP 1',
    'NodePort 2',
    'NodePort 3',
  ])
  expect(askMaps([service('business/server', nodePort)]).texts('cilium_lb4_reverse_nat')).toEqual([
    '1 → 10.96.0.50:80',
    '2 → 0.0.0.0:30080',
    '3 → 192.168.1.10:30080',
  ])
})

test('M17: traffic from outside and inside has rows of its own where the policies differ', () => {
  const { texts, row } = askMaps([service('business/server', { ...nodePort, externalTrafficPolicy: 'Local' })])
  const [outside, inside] = ['', '/i'].map((scope) =>
    row('cilium_lb4_services_v2', `192.168.1.10:30080/TCP${scope} (0)`),
  )
  expect(
    [outside, inside].map((one) => [one?.keyBytes[9], countIn(one), one?.valueBytes[8], one?.valueBytes[9]]),
  ).toEqual([
    [0, 1, 2 | 4 | 64, 32],
    [1, 2, 2 | 4 | 64, 32],
  ])
  expect(texts('cilium_lb4_services_v2').filter((text) => text.startsWith('192.168.1.10:30080'))).toEqual([
    '192.168.1.10:30080/TCP (0) → 0.0.0.0:0 (4) (0) [NodePort, Local, two-scopes]',
    '192.168.1.10:30080/TCP (1) → 10.244.1.20:8080/TCP (4) (1)',
    '192.168.1.10:30080/TCP/i (0) → 0.0.0.0:0 (5) (0) [NodePort, Local, two-scopes]',
    '192.168.1.10:30080/TCP/i (1) → 10.244.1.20:8080/TCP (5) (1)',
    '192.168.1.10:30080/TCP/i (2) → 10.244.2.30:8080/TCP (5) (2)',
  ])
})

test('M18: a plain ClusterIP is not routable, unless it is asked for', () => {
  const flags = (config: object) =>
    askMaps([service('business/server', {})], { config: { ...worldConfig, ...config } }).texts(
      'cilium_lb4_services_v2',
    )[0]
  expect(flags({})).toContain('[ClusterIP, non-routable]')
  expect(flags({ 'bpf-lb-external-clusterip': 'true' })).toContain('[ClusterIP]')
})

test('M19: affinity of 600 seconds stands in the frontend’s row, and each backend is a member', () => {
  const affinity = { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 600 } } }
  const { row, map } = askMaps([service('business/server', affinity)])
  const master = row('cilium_lb4_services_v2', '10.96.0.50:80/TCP (0)')
  expect(hex(master?.valueBytes)).toBe('580200000200000110000000')
  expect(master?.value).toContain('sessionAffinity')
  expect(map('cilium_lb_affinity_match').rows.map(({ keyBytes }) => hex(keyBytes))).toEqual([
    '0100000000010000',
    '0200000000010000',
  ])
})

test('a load balancer’s address has a row for ports that no Service has, from 1.18 on', () => {
  const rows = (version: '1.17' | '1.18') => askMaps([balanced({})], { version }).texts('cilium_lb4_services_v2')
  expect(rows('1.18').at(-1)).toBe('203.0.113.80:0/ANY (0) → 0.0.0.0:0 (0) (0) [LoadBalancer]')
  expect(rows('1.17').filter((text) => text.includes('ANY'))).toEqual([])
})

test('P13 and P14: the value of a redirection has its proxy’s port, and port 0 is the protocol alone', () => {
  const http = { ports: [{ port: '80', protocol: 'TCP' }], rules: { http: [{ method: 'GET' }] } }
  const plain = { ports: [{ port: '80', protocol: 'TCP' }] }
  const rules = [http, plain].map((one) => ({ fromEndpoints: [client], toPorts: [one] }))
  const { rows } = ingressOfB({ ...toServer, ingress: rules })
  expect(rows.map(({ keyBytes }) => hex(keyBytes))).toEqual(['40000000e903000000060050'])
  expect(hex(rows[0]?.valueBytes.subarray(0, 2))).toBe('2710')
  const whole = ingressOfB(ports({ port: '0', protocol: 'TCP' })).rows
  expect(whole.map(({ keyBytes, valueBytes }) => [hex(keyBytes), (valueBytes[2] ?? 0) >> 3])).toEqual([
    ['30000000e903000000060000', 8],
  ])
})

test('M29: the entry beyond the map’s size is told, and left out', () => {
  const prefixes = Array.from({ length: 90 }, (_, index) => `198.18.${index}.0/24`)
  const port = (index: number): object => ({ port: String(2 * index + 1), protocol: 'TCP' })
  const groups = Array.from({ length: 5 }, (_, group) => ({
    ports: Array.from({ length: 40 }, (_none, at) => port(40 * group + at)),
  }))
  const spec = { ...toServer, ingress: [{ fromCIDR: prefixes, toPorts: groups }] }
  const { maps, codes } = ingressOfB(spec, { config: { ...worldConfig } })
  const [full] = maps.policies.filter(({ endpoint }) => endpoint.title === 'business/b')
  expect([full?.rows.length, full?.lost]).toEqual([16384, 90 * 200 + 2 - 16384])
  expect(codes).toContain('maps.policy-map-full')
})

test('I19: the first prefix of a policy has 16777217', () => {
  const { row } = askMaps([cnp('business/a', { ...toServer, ingress: [{ fromCIDR: ['198.51.100.0/24'] }] } as never)])
  expect(row('cilium_ipcache_v2', '198.51.100.0/24')?.value).toContain('identity=16777217 ')
})

test('a policy’s prefix never takes the place of a pod or a node', () => {
  const spec = { ...toServer, ingress: [{ fromCIDR: ['10.244.2.30/32', '192.168.1.11/32'] }] }
  const { row } = askMaps([cnp('business/a', spec as never)])
  expect(row('cilium_ipcache_v2', '10.244.2.30/32')?.value).toContain('identity=1003 ')
  expect(row('cilium_ipcache_v2', '192.168.1.11/32')?.value).toContain('identity=6 ')
})

test('values of a policy map in the layout of each version', () => {
  const deny = { ...toServer, ingressDeny: [{ fromEndpoints: [client] }] }
  const value = (version: '1.16' | '1.17' | '1.18' | '1.19') =>
    hex(ingressOfB(deny, { version }).rows.at(0)?.valueBytes)
  expect(value('1.16')).toBe(`00000700${'0'.repeat(40)}`)
  expect(value('1.17')).toBe('0000010000000000')
  expect(value('1.18')).toBe('000001000000000001000000')
  expect(value('1.19')).toBe('00000100ffffffff01000000')
})

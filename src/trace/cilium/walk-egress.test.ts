/** Egress gateways: the packets of cases E1 to E10 of the sheet, and encryption and proxies on the way. */
import { expect, test } from 'vitest'
import { egressPolicy } from '../../../test/cilium/ask-maps'
import { nativeConfig, pathWorld, preparePath } from '../../../test/cilium/ask-path'
import { cnp } from '../../../test/policy/ask-cilium'
import { node, type Raw } from '../../../test/policy/policy-objects'

const versions = ['1.16', '1.17', '1.18', '1.19'] as const

test.each(versions)(
  'E1: %s: the packet goes to the gateway in the tunnel, and is translated there alone',
  (version) => {
    const found = preparePath([egressPolicy()], { version }).walk('A', '8.8.8.8:443', { sourcePort: 34567 })
    expect([found.fate, found.back]).toEqual(['allowed', 'allowed'])
    expect([found.end, found.backEnd]).toEqual(['203.0.113.10:34567 → 8.8.8.8:443', '8.8.8.8:443 → 10.244.1.10:34567'])
    const outer = found.walk.request.steps.find(({ did }) => did === 'encapsulated')
    expect(outer?.packet.wrappedIn).toBe('VXLAN 192.168.1.10 → 192.168.1.20:8472')
    const program = version === '1.16' || version === '1.17' ? 'cil_from_container' : 'cil_to_netdev'
    expect(outer?.at.program).toBe(program)
    expect(found.rows('node-a').some((row) => row.includes('XLATE'))).toBe(false)
    expect(found.rows('node-gw')[0]).toContain('XLATE_SRC 203.0.113.10:34567')
  },
)

test('E1: the tunnel is taken with native routing, too', () => {
  const { walk, end } = preparePath([egressPolicy()], { config: nativeConfig }).walk('A', '8.8.8.8:443')
  expect(walk.request.steps.find(({ did }) => did === 'encapsulated')?.packet.identity).toBe(1001)
  expect(end).toBe('203.0.113.10:43210 → 8.8.8.8:443')
})

test('E2: an excluded destination leaves with the node’s address', () => {
  const found = preparePath([egressPolicy()]).walk('A', '10.1.2.3:443')
  expect(found.end).toBe('192.168.1.10:43210 → 10.1.2.3:443')
  expect(found.said('the policy excludes the range')).toBeDefined()
})

test('E3: what is inside the cluster never goes to the gateway', () => {
  const all = egressPolicy({ excludedCIDRs: [] })
  const found = preparePath([all]).walk('A', 'C:8080')
  expect([found.fate, found.end]).toEqual(['allowed', '10.244.1.10:43210 → 10.244.2.30:8080'])
  expect(found.walk.request.steps.some(({ at }) => at.node === 'node-gw')).toBe(false)
})

test('E4: without a gateway the traffic is dropped with 194, and the policy is named', () => {
  const none = egressPolicy({ egressGateway: { nodeSelector: { matchLabels: { egress: 'none' } } } })
  const found = preparePath([none]).walk('A', '8.8.8.8:443')
  expect(found.fate).toBe('194')
  expect(found.walk.request.verdict.because[0].object).toMatchObject({
    kind: 'CiliumEgressGatewayPolicy',
    name: 'egress',
  })
  expect(found.walk.findings.map(({ code }) => code)).toContain('maps.egress-no-gateway')
})

test('E6: of two nodes that match, the first by name is the gateway', () => {
  const other = node('gw-a', '192.168.1.19', { egress: 'true' })
  const { walk } = preparePath([other, egressPolicy()]).walk('A', '8.8.8.8:443')
  expect(walk.request.steps.find(({ did }) => did === 'encapsulated')?.packet.wrappedIn).toContain('192.168.1.19')
})

test('E7: an address that no device of the gateway has is 204 there', () => {
  const devices = new Map([['node-gw', new Map([['eth1', ['198.51.100.200']]])]])
  const found = preparePath([egressPolicy()], { devices }).walk('A', '8.8.8.8:443')
  expect([found.fate, found.walk.request.steps.at(-1)?.at.node]).toEqual(['204', 'node-gw'])
})

test('E9: the gateway comes before the native range', () => {
  const config = { ...nativeConfig, 'ipv4-native-routing-cidr': '8.0.0.0/8' }
  expect(preparePath([egressPolicy()], { config }).walk('A', '8.8.8.8:443').end).toBe(
    '203.0.113.10:43210 → 8.8.8.8:443',
  )
})

test('E10: policy is asked before the gateway', () => {
  const only80 = cnp('business/client', {
    endpointSelector: { matchLabels: { app: 'client' } },
    egress: [{ toEntities: ['world'], toPorts: [{ ports: [{ port: '80', protocol: 'TCP' }] }] }],
  })
  const { walk } = preparePath([egressPolicy(), only80])
  expect(walk('A', '8.8.8.8:443').fate).toBe('133')
  expect(walk('A', '8.8.8.8:80').fate).toBe('allowed')
})

function withKeys(key: number): readonly Raw[] {
  return pathWorld.map((one) =>
    one.kind === 'CiliumNode' ? { ...one, spec: { ...(one.spec as Raw), encryption: { key } } } : one,
  )
}

test('§6.6: WireGuard wraps the tunnel’s packet, and the other node unwraps both', () => {
  const config = { 'enable-wireguard': 'true' }
  const found = preparePath([], { config, world: withKeys(255) }).walk('A', 'C:8080')
  expect([found.fate, found.back]).toEqual(['allowed', 'allowed'])
  expect(found.walk.request.steps.find(({ did }) => did.startsWith('encrypted'))?.packet.wrappedIn).toBe(
    'VXLAN 192.168.1.10 → 192.168.1.11:8472 in WireGuard 192.168.1.10 → 192.168.1.11:51871',
  )
})

test('§6.6: what has no key leaves unencrypted, and that is told', () => {
  const found = preparePath([], { config: { 'enable-wireguard': 'true' } }).walk('A', 'C:8080')
  expect([found.fate, found.said('has no key')]).toEqual(['allowed', expect.stringContaining('CiliumNode of node-b')])
})

test('§6.6: in strict mode what has no key is dropped with 195', () => {
  const config = {
    'enable-wireguard': 'true',
    'enable-encryption-strict-mode': 'true',
    'encryption-strict-mode-cidr': '10.244.0.0/16',
  }
  expect(preparePath([], { config }).walk('A', 'C:8080').fate).toBe('195')
  const without = pathWorld.filter(({ kind }) => kind !== 'CiliumNode')
  const bare = without.map((one) => (one.kind === 'Node' ? withRange(one) : one))
  expect(preparePath([], { config, world: bare }).walk('A', 'C:8080').fate).toBe('unknown')
  expect(preparePath([], { config, world: withKeys(255) }).walk('A', 'C:8080').fate).toBe('allowed')
})

function withRange(one: Raw): Raw {
  const ranges: Readonly<Record<string, string>> = { 'node-a': '10.244.1.0/24', 'node-b': '10.244.2.0/24' }
  const range = ranges[String((one.metadata as Raw).name)]
  return range === undefined ? one : { ...one, spec: { podCIDRs: [range] } }
}

test.each(['1.17', '1.18'] as const)(
  '§6.6: %s: IPsec encrypts the inner packet until 1.17, the tunnel’s since',
  (version) => {
    const config = { 'enable-ipsec': 'true' }
    const found = preparePath([], { config, version, world: withKeys(3) }).walk('A', 'C:8080')
    const wrapped = found.walk.request.steps.find(({ did }) => did.startsWith('encrypted'))?.packet.wrappedIn
    expect(found.fate).toBe('allowed')
    expect(wrapped?.startsWith('ESP')).toBe(version === '1.17')
  },
)

test('H3: a rule of HTTP sends the connection through the proxy, which policy then passes over', () => {
  const http = cnp('business/server', {
    endpointSelector: { matchLabels: { app: 'server' } },
    ingress: [
      {
        fromEndpoints: [{ matchLabels: { app: 'client' } }],
        toPorts: [{ ports: [{ port: '8080', protocol: 'TCP' }], rules: { http: [{ method: 'GET' }] } }],
      },
    ],
  })
  const { walk } = preparePath([http])
  const found = walk('A', 'C:8080')
  expect(found.fate).toBe('allowed')
  expect(found.points).toEqual([
    'from-endpoint',
    'to-overlay',
    'from-overlay',
    'to-proxy',
    'from-proxy',
    'from-host',
    'from-proxy',
    'to-endpoint',
  ])
  expect(found.walk.request.verdict.because.map(({ code }) => code)).toContain('cilium.redirected')
  expect(walk('D', 'C:8080').fate).toBe('133')
})

/** Rows of the egress gateway map: M12 and the map rows of E1 to E9 of the sheet. */
import { expect, test } from 'vitest'
import { askMaps, egressPolicy, hex, worldConfig } from '../../../test/cilium/ask-maps'
import { node, type Raw } from '../../../test/policy/policy-objects'

const name = 'cilium_egress_gw_policy_v4'
const gateway = node('node-gw', '192.168.1.20', { egress: 'true' })

test('M12: an excluded range has 40 bits and the gateway 0.0.0.1', () => {
  const found = askMaps([gateway, egressPolicy()]).row(name, '10.244.1.10 10.0.0.0/8')
  expect([hex(found?.keyBytes), hex(found?.valueBytes)]).toEqual(['280000000af4010a0a000000', '0000000000000001'])
  expect(found?.value).toBe('0.0.0.0 Excluded CIDR')
})

test('E1: on the pod’s node the row has the gateway and no egress address, on the gateway both', () => {
  const onSource = askMaps([gateway, egressPolicy()]).row(name, '10.244.1.10 0.0.0.0/0')
  const onGateway = askMaps([gateway, egressPolicy()], { node: 'node-gw' }).row(name, '10.244.1.10 0.0.0.0/0')
  expect(hex(onSource?.keyBytes)).toBe('200000000af4010a00000000')
  expect(hex(onSource?.valueBytes)).toBe('00000000c0a80114')
  expect(hex(onGateway?.valueBytes)).toBe('cb00710ac0a80114')
})

test('E2: what is excluded has a row of its own for each pod', () => {
  expect(askMaps([gateway, egressPolicy()]).texts(name)).toEqual([
    '10.244.1.10 0.0.0.0/0 → 0.0.0.0 192.168.1.20',
    '10.244.1.10 10.0.0.0/8 → 0.0.0.0 Excluded CIDR',
    '10.244.2.40 0.0.0.0/0 → 0.0.0.0 192.168.1.20',
    '10.244.2.40 10.0.0.0/8 → 0.0.0.0 Excluded CIDR',
  ])
})

test('E3: a pod inside the cluster is left to its identity, which no row tells', () => {
  const { texts, row } = askMaps([gateway, egressPolicy({ excludedCIDRs: [] })])
  expect(texts(name)).toHaveLength(2)
  expect(row('cilium_ipcache_v2', '10.244.2.30/32')?.value).toContain('identity=1003 ')
})

test('E4: without a gateway rows say so, and traffic is dropped', () => {
  const { texts, codes } = askMaps([egressPolicy()])
  expect(texts(name)[0]).toBe('10.244.1.10 0.0.0.0/0 → 0.0.0.0 Not Found')
  expect(codes).toContain('maps.egress-no-gateway')
})

test('a gateway without an address of IPv4 is none, and that is what is said', () => {
  const only6 = node('node-gw', 'fd00:1::20', { egress: 'true' })
  const { texts, maps } = askMaps([only6, egressPolicy()])
  expect(texts(name)[0]).toBe('10.244.1.10 0.0.0.0/0 → 0.0.0.0 Not Found')
  const told = maps.findings.find(({ code }) => code === 'maps.egress-no-gateway')
  expect(told?.message).toContain('node-gw, which it selects, has no InternalIP of IPv4')
})

test('E5: the egress address is listed on the gateway alone', () => {
  const listed = (at: string) => askMaps([gateway, egressPolicy()], { node: at }).map(name).json?.()
  const row = { SourceIP: '10.244.1.10', DestCIDR: '0.0.0.0/0', GatewayIP: '192.168.1.20' }
  expect(listed('node-a')).toMatchObject([{ ...row, EgressIP: '0.0.0.0' }, {}, {}, {}])
  expect(listed('node-gw')).toMatchObject([{ ...row, EgressIP: '203.0.113.10' }, {}, {}, {}])
})

test('E6: of several nodes the first by name is the gateway for all', () => {
  const nodes = [node('gw-b', '192.168.1.31', { egress: 'true' }), node('gw-a', '192.168.1.30', { egress: 'true' })]
  const { texts } = askMaps([...nodes, egressPolicy({ excludedCIDRs: [] })])
  expect(texts(name).map((text) => text.split(' ').at(-1))).toEqual(['192.168.1.30', '192.168.1.30'])
})

test('E7: an address that no device of the gateway has is 0.0.0.0 in its row', () => {
  const devices = new Map([['eth0', ['192.168.1.20']]])
  const { texts, codes } = askMaps([gateway, egressPolicy()], { node: 'node-gw', devices })
  expect(texts(name)[0]).toBe('10.244.1.10 0.0.0.0/0 → 0.0.0.0 192.168.1.20')
  expect(codes).toContain('maps.egress-address')
  const more = new Map([['eth1', ['203.0.113.10']]])
  expect(askMaps([gateway, egressPolicy()], { node: 'node-gw', devices: more }).texts(name)[0]).toContain(
    '→ 203.0.113.10 ',
  )
})

test('E8: an interface and an address together are refused, and no row comes of it', () => {
  const spec = { egressGateway: { nodeSelector: {}, interface: 'eth1', egressIP: '203.0.113.10' } }
  const { texts, codes } = askMaps([gateway, egressPolicy(spec)])
  expect(texts(name)).toEqual([])
  expect(codes).toContain('maps.egress-invalid')
})

test('E9: native routing changes no row', () => {
  const config = { ...worldConfig, 'routing-mode': 'native', 'ipv4-native-routing-cidr': '0.0.0.0/0' }
  expect(askMaps([gateway, egressPolicy()], { config }).texts(name)).toEqual(
    askMaps([gateway, egressPolicy()]).texts(name),
  )
})

test('the first address of an interface is lent; without either the node’s own', () => {
  const lent = (egressGateway: Raw, devices?: ReadonlyMap<string, readonly string[]>) =>
    askMaps(
      [
        gateway,
        egressPolicy({ egressGateway: { nodeSelector: { matchLabels: { egress: 'true' } }, ...egressGateway } }),
      ],
      {
        node: 'node-gw',
        ...(devices !== undefined && { devices }),
      },
    )
  const eth1 = new Map([['eth1', ['203.0.113.20', '203.0.113.21']]])
  expect(lent({ interface: 'eth1' }, eth1).texts(name)[0]).toContain('→ 203.0.113.20 ')
  expect(lent({ interface: 'eth1' }).codes).toContain('maps.egress-address')
  expect(lent({}).texts(name)[0]).toContain('→ 192.168.1.20 192.168.1.20')
})

test('selectors of namespaces and nodes limit the pods', () => {
  const sources = (selector: Raw) =>
    askMaps([gateway, egressPolicy({ selectors: [selector], excludedCIDRs: [] })])
      .texts(name)
      .map((text) => text.split(' ')[0])
  expect(sources({ namespaceSelector: { matchLabels: { team: 'blue' } } })).toEqual(['10.244.2.40'])
  expect(sources({ namespaceSelector: {} })).toHaveLength(4)
  expect(sources({ podSelector: {}, nodeSelector: { matchLabels: { egress: 'true' } } })).toEqual([])
})

test('several gateways: from 1.18 on each pod has one of them, and which is not told', () => {
  const nodes = [node('gw-a', '192.168.1.30', { zone: 'a' }), node('gw-b', '192.168.1.31', { zone: 'b' })]
  const list = ['a', 'b'].map((zone) => ({ nodeSelector: { matchLabels: { zone } } }))
  const spec = { egressGateway: undefined, egressGateways: list, excludedCIDRs: [] }
  const { maps } = askMaps([...nodes, egressPolicy(spec)])
  expect(maps.egress.map(({ otherGateways }) => otherGateways.length)).toEqual([1, 1])
  const old = askMaps([...nodes, egressPolicy(spec)], { version: '1.17' })
  expect([old.maps.egress.length, old.codes.includes('maps.egress-invalid')]).toEqual([0, true])
})

test('IPv6 rows hold the gateway as an IPv4 address', () => {
  const dual = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace: 'business', name: 'six', labels: { app: 'client' } },
    spec: { nodeName: 'node-a', containers: [{ name: 'main' }] },
    status: { phase: 'Running', podIPs: [{ ip: '10.244.1.60' }, { ip: 'fd00::60' }] },
  }
  const config = { ...worldConfig, 'enable-ipv6': 'true' }
  const { map } = askMaps([gateway, dual, egressPolicy({ destinationCIDRs: ['::/0'], excludedCIDRs: [] })], { config })
  const [row] = map('cilium_egress_gw_policy_v6').rows
  expect(hex(row?.keyBytes)).toBe(`80000000fd00${'0'.repeat(26)}60${'0'.repeat(32)}`)
  expect(hex(row?.valueBytes)).toBe(`${'0'.repeat(32)}c0a80114${'0'.repeat(40)}`)
})

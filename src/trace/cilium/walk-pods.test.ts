/** Pods to pods and nodes: cases D1 to D8 of the sheet. */
import { expect, test } from 'vitest'
import { askedIp, nativeConfig, pathWorld, preparePath } from '../../../test/cilium/ask-path'
import { cnp } from '../../../test/policy/ask-cilium'
import type { Raw } from '../../../test/policy/policy-objects'
import { fromOverlay } from './from-netdev'
import { newState } from './state-tables'
import type { Draft } from './walk-draft'

const onlyServer = cnp('business/client', {
  endpointSelector: { matchLabels: { app: 'client' } },
  egress: [{ toEndpoints: [{ matchLabels: { app: 'server' } }] }],
})

test('D1: on one node the packet goes from endpoint to endpoint, with a row of each end and none of SNAT', () => {
  const { fate, back, points, rows, end, backEnd } = preparePath([]).walk('A', 'B:8080')
  expect([fate, back]).toEqual(['allowed', 'allowed'])
  expect(points).toEqual(['from-endpoint', 'to-endpoint'])
  expect(rows('node-a')).toEqual([
    'TCP OUT 10.244.1.10:43210 -> 10.244.1.20:8080 Flags=0x0000 [ ] RevNAT=0 SourceSecurityID=1001',
    'TCP IN 10.244.1.10:43210 -> 10.244.1.20:8080 Flags=0x0000 [ ] RevNAT=0 SourceSecurityID=1001',
  ])
  expect([end, backEnd]).toEqual(['10.244.1.10:43210 → 10.244.1.20:8080', '10.244.1.20:8080 → 10.244.1.10:43210'])
})

test.each(['1.16', '1.17', '1.18', '1.19'] as const)(
  'D2: %s: to another node it goes through the tunnel with identity 1001',
  (version) => {
    const { walk, fate, back, points, rows } = preparePath([], { version }).walk('A', 'C:8080')
    expect([fate, back]).toEqual(['allowed', 'allowed'])
    expect(points).toEqual(['from-endpoint', 'to-overlay', 'from-overlay', 'to-endpoint'])
    const outer = walk.request.steps.find(({ did }) => did === 'encapsulated')?.packet
    expect(outer).toMatchObject({ identity: 1001, wrappedIn: 'VXLAN 192.168.1.10 → 192.168.1.11:8472' })
    expect(rows('node-a')).toHaveLength(1)
    expect(rows('node-b')).toEqual([
      'TCP IN 10.244.1.10:43210 -> 10.244.2.30:8080 Flags=0x0400 [ FromTunnel ] RevNAT=0 SourceSecurityID=1001',
    ])
  },
)

test('D2: by Geneve where the tunnel is one', () => {
  const { walk } = preparePath([], { config: { 'tunnel-protocol': 'geneve' } }).walk('A', 'C:8080')
  expect(walk.request.steps.find(({ did }) => did === 'encapsulated')?.packet.wrappedIn).toBe(
    'Geneve 192.168.1.10 → 192.168.1.11:6081',
  )
})

test('D3: with native routing the other node knows the sender by its address', () => {
  const { fate, back, points, said, walk } = preparePath([], { config: nativeConfig }).walk('A', 'C:8080')
  expect([fate, back]).toEqual(['allowed', 'allowed'])
  expect(points).toEqual(['from-endpoint', 'to-network', 'from-network', 'to-endpoint'])
  expect(said('identity 1001 (business/a), by the source’s address')).toBeDefined()
  expect(walk.request.steps.some(({ packet }) => packet.wrappedIn !== undefined)).toBe(false)
  expect(said('kept the source')).toBeDefined()
})

test('D4: a pod that the ipcache lacks is judged as world, and denied', () => {
  const isC = ({ metadata, kind }: Raw): boolean =>
    (kind === 'Pod' && (metadata as Raw).name === 'c') ||
    (kind === 'CiliumIdentity' && (metadata as Raw).name === '1003')
  const world = pathWorld.filter((one) => !isC(one))
  const { fate, walk } = preparePath([onlyServer], { world }).walk('A', '10.244.2.30:8080')
  expect(fate).toBe('133')
  expect(walk.request.verdict.because[0].sentence).toContain('to world (identity 2)')
  expect(preparePath([onlyServer]).walk('A', 'C:8080').fate).toBe('allowed')
})

test('D5: a source that is not the pod’s is dropped with 132', () => {
  const { fate, walk } = preparePath([]).walk('A', 'B:8080', { as: '10.9.9.9' })
  expect(fate).toBe('132')
  expect(walk.request.drop?.name).toBe('Invalid source ip')
})

test('D6: UDP to the port of the tunnel is dropped with 170, whatever policies say', () => {
  const { walk } = preparePath([])
  expect(walk('A', 'node-b:8472', { protocol: 'UDP' }).fate).toBe('170')
  expect(walk('A', 'node-b:8472', { protocol: 'TCP' }).fate).toBe('allowed')
  expect(preparePath([], { config: nativeConfig }).walk('A', 'node-b:8472', { protocol: 'UDP' }).fate).toBe('allowed')
})

test('D7: a packet in the tunnel that claims to be a host is dropped with 171', () => {
  const { net } = preparePath([])
  const node = net.node('node-b')
  if (node === undefined) throw new Error('no node-b')
  const ends = { source: { ip: askedIp('10.244.1.10') }, destination: { ip: askedIp('10.244.2.30') } }
  const question = { ...ends, protocol: 'TCP', sourcePort: 43210, port: 8080, isReplyWanted: false } as const
  const outer = {
    kind: 'VXLAN',
    source: askedIp('192.168.1.10'),
    destination: askedIp('192.168.1.11'),
    port: 8472,
  } as const
  const arrive = (identity?: number): string => {
    const draft: Draft = {
      net,
      question,
      state: newState('1.18'),
      steps: [],
      targets: [],
      doubts: [],
      share: 1,
      hops: 0,
      packet: {
        protocol: 'TCP',
        source: ends.source.ip,
        destination: ends.destination.ip,
        sourcePort: 43210,
        port: 8080,
        wrappings: [{ ...outer, ...(identity !== undefined && { identity }) }],
      },
    }
    const next = fromOverlay(draft, node)
    return next.kind === 'end' ? String(next.ending.drop?.number) : next.kind
  }
  expect([arrive(1), arrive(), arrive(1001)]).toEqual(['171', '147', 'deliver'])
})

test('D8: an address of the node’s own range that nobody has leaves the pod and is dropped at the host with 151', () => {
  const { fate, walk, points } = preparePath([]).walk('A', '10.244.1.99:8080')
  expect(fate).toBe('151')
  expect(points).toEqual(['from-endpoint', 'from-host'])
  expect(walk.request.steps.find(({ did }) => did === 'asked egress policy: allowed')).toBeDefined()
})

test('a node reaches its own pods from its router’s address as the host, and others’ as remote-node', () => {
  const { walk } = preparePath([])
  expect(walk('node-a', 'B:8080').end).toBe('10.244.1.1:43210 → 10.244.1.20:8080')
  const remote = walk('node-a', 'C:8080')
  expect(remote.walk.request.steps.find(({ did }) => did === 'encapsulated')?.packet.identity).toBe(6)
  expect([remote.fate, remote.back]).toEqual(['allowed', 'allowed'])
})

test('a ping is asked about by its type, and its answer finds the row', () => {
  const { fate, back, rows } = preparePath([]).walk('A', 'C', { protocol: 'ICMP', sourcePort: 7 })
  expect([fate, back]).toEqual(['allowed', 'allowed'])
  expect(rows('node-a')).toEqual([
    'ICMP OUT 10.244.1.10:7 -> 10.244.2.30:0 Flags=0x0000 [ ] RevNAT=0 SourceSecurityID=1001',
  ])
})

/** Given state: dumps as text and JSON, and rows that a walk left. */
import { expect, test } from 'vitest'
import { service } from '../../../test/cilium/ask-maps'
import { preparePath } from '../../../test/cilium/ask-path'
import { readState } from './read-state'
import { newState } from './state-tables'

const rowsOf = (text: string): { readonly rows: readonly string[]; readonly codes: readonly string[] } => {
  const state = newState('1.18')
  const findings = readState(state, [{ file: 'dump', text, node: 'node-a' }], 'node-a')
  return { rows: state.rows().map(({ row }) => row), codes: findings.map(({ code }) => code) }
}

test('lines of cilium-dbg bpf ct list and nat list are read, of every version', () => {
  const { rows, codes } = rowsOf(
    [
      'TCP OUT 10.244.1.10:43210 -> 10.96.0.50:80 service expires=8012 Packets=0 Bytes=0 RxFlagsSeen=0x00 LastRxReport=0 TxFlagsSeen=0x02 LastTxReport=12 Flags=0x0010 [ SeenNonSyn ] RevNAT=5 SourceSecurityID=1001 BackendID=2 ',
      'TCP IN 10.244.1.10:43210 -> 10.244.1.20:8080 expires=21602 RxPackets=3 RxBytes=210 RxFlagsSeen=0x1b LastRxReport=2 TxPackets=2 TxBytes=140 TxFlagsSeen=0x1b LastTxReport=2 Flags=0x0013 [ RxClosing TxClosing SeenNonSyn ] RevNAT=0 SourceSecurityID=1001 ',
      'ICMP OUT 10.244.1.10:0 -> 10.244.1.20:0 related expires=12 Flags=0x0000 [ ] RevNAT=0 SourceSecurityID=1001',
      'TCP OUT 10.244.1.10:34567 -> 8.8.8.8:443 XLATE_SRC 192.168.1.10:40001 Created=5sec ago NeedsCT=0',
      'TCP IN fd00::8:443 -> fd00::1:40001 XLATE_DST [fd00::a]:34567 Created=5sec ago HostLocal=1',
      'no row',
      '',
    ].join('\n'),
  )
  expect(codes).toEqual(['path.state-unread'])
  expect(rows).toEqual([
    'TCP OUT 10.244.1.10:43210 -> 10.96.0.50:80 service Flags=0x0010 [ SeenNonSyn ] RevNAT=5 SourceSecurityID=1001 BackendID=2',
    'TCP IN 10.244.1.10:43210 -> 10.244.1.20:8080 Flags=0x0013 [ RxClosing TxClosing SeenNonSyn ] RevNAT=0 SourceSecurityID=1001',
    'ICMP OUT 10.244.1.10:0 -> 10.244.1.20:0 related Flags=0x0000 [ ] RevNAT=0 SourceSecurityID=1001',
    'TCP OUT 10.244.1.10:34567 -> 8.8.8.8:443 XLATE_SRC 192.168.1.10:40001 NeedsCT=0',
    'TCP IN [fd00::8]:443 -> [fd00::1]:40001 XLATE_DST [fd00::a]:34567 NeedsCT=1',
  ])
})

/** Ports and RevNAT as a little-endian machine reads network order. */
const swap = (port: number): number => ((port & 0xff) << 8) | (port >>> 8)

test.each([
  ['lists of bytes', [10, 244, 1, 10], [10, 244, 1, 20]],
  ['texts', '10.244.1.10', '10.244.1.20'],
  ['base64', 'CvQBCg==', 'CvQBFA=='],
])('M20: JSON keys have swapped addresses and ports in network order: %s', (_, daddr, saddr) => {
  const key = {
    DestAddr: daddr,
    SourceAddr: saddr,
    DestPort: swap(8080),
    SourcePort: swap(43210),
    NextHeader: 6,
    Flags: 0,
  }
  const value = { Flags: 32, RevNAT: swap(3), SourceSecurityID: 2 }
  const text = JSON.stringify([{ Key: { TupleKey4: key }, Value: value }, { Key: 1 }])
  expect(rowsOf(text)).toEqual({
    rows: ['TCP OUT 10.244.1.10:43210 -> 10.244.1.20:8080 Flags=0x0020 [ NodePort ] RevNAT=3 SourceSecurityID=2'],
    codes: ['path.state-unread'],
  })
})

test('M22: JSON of NAT is read in the order of the packet', () => {
  const key = {
    DestAddr: [8, 8, 8, 8],
    SourceAddr: [10, 244, 1, 10],
    DestPort: swap(443),
    SourcePort: swap(34567),
    NextHeader: 6,
    Flags: 0,
  }
  const text = JSON.stringify([
    { Key: key, Value: { Created: 1, NeedsCT: 1, Addr: [192, 168, 1, 10], Port: swap(40001) } },
  ])
  expect(rowsOf(text).rows).toEqual(['TCP OUT 10.244.1.10:34567 -> 8.8.8.8:443 XLATE_SRC 192.168.1.10:40001 NeedsCT=1'])
})

test('what a walk left is read back whole', () => {
  const affine = service('business/server', {
    type: 'NodePort',
    sessionAffinity: 'ClientIP',
    ports: [{ port: 80, targetPort: 8080, nodePort: 30080 }],
  })
  const { walk } = preparePath([affine], { config: { 'bpf-lb-sock-hostns-only': 'false' } }).walk('A', '10.96.0.50:80')
  const outward = preparePath([], { config: { 'enable-bpf-masquerade': 'false' } }).walk('A', '8.8.8.8:443').walk
  for (const { after } of [walk, outward]) {
    const state = newState('1.18')
    expect(readState(state, [{ file: 'w.json', text: JSON.stringify({ after }) }], 'node-b')).toEqual([])
    expect(state.rows().map(({ node, table, row }) => [node, table, row])).toEqual(
      after.map(({ node, table, row }) => [node, table, row]),
    )
  }
})

test('rows that name no node are the sender’s, and that is told', () => {
  const state = newState('1.18')
  const line = 'TCP OUT 10.244.1.10:34567 -> 8.8.8.8:443 XLATE_SRC 192.168.1.10:40001 Created=5sec ago NeedsCT=0'
  const findings = readState(state, [{ file: 'nat.txt', text: line }], 'node-a')
  expect(findings.map(({ code }) => code)).toEqual(['path.state-node'])
  const found = preparePath([]).walk('A', '8.8.8.8:443', { sourcePort: 34567 }, state)
  expect(found.end).toBe('192.168.1.10:40001 → 8.8.8.8:443')
  expect(found.walk.before).toHaveLength(1)
})

/** What traffic left on a node, against the objects: cases M20 to M24 of the sheet by their ids, and rows that are stale or in the way. */
import { expect, test } from 'vitest'
import type { FoundMap } from '#compile/cilium/found-map'
import { parseDump } from '#compile/cilium/parse-dump'
import { printMapText } from '#compile/cilium/print-maps'
import { askMaps, egressPolicy, service, worldConfig } from '../../../test/cilium/ask-maps'
import { node } from '../../../test/policy/policy-objects'
import { diffMaps } from './diff-maps'
import { isStateDump } from './diff-state'

const objects = [
  { ...node('node-a', '192.168.1.10'), spec: { podCIDRs: ['10.244.1.0/24'] } },
  { ...node('node-b', '192.168.1.11'), spec: { podCIDRs: ['10.244.2.0/24'] } },
  node('node-gw', '192.168.1.20', { egress: 'true' }),
  egressPolicy(),
  service('business/server', {
    type: 'NodePort',
    sessionAffinity: 'ClientIP',
    ports: [{ port: 80, targetPort: 8080, nodePort: 30080 }],
  }),
]
const config = { ...worldConfig, 'bpf-lb-algorithm': 'maglev', 'bpf-lb-maglev-table-size': '251' }
const asked = askMaps(objects, { config })

function told(text: string, maps: readonly FoundMap[] = [], on = 'node-a') {
  const { world } = asked.maps
  const states = text === '' ? [] : [{ file: 'state.md', text }]
  const { findings } = diffMaps(world.cluster, maps, { node: on, slices: world.slices, states })
  return findings.map(({ code, message }) => `${code.replace('maps-diff.', '')}: ${message}`)
}

const ct = (
  rest: string,
  more = 'expires=9 Packets=1 Bytes=1 RxFlagsSeen=0x02 LastRxReport=0 TxFlagsSeen=0x02 LastTxReport=0 Flags=0x0000 [ ] RevNAT=0 SourceSecurityID=1001 BackendID=0',
) => `${rest} ${more} \n`
const nat = (rest: string) => `${rest} Created=9sec ago NeedsCT=0\n`
/** Both rows of a translation. */
const pair = (source: string, to: string, end: string) =>
  nat(`TCP OUT ${source} -> ${end} XLATE_SRC ${to}`) + nat(`TCP IN ${end} -> ${to} XLATE_DST ${source}`)

test.each([
  ['M20', ct('TCP OUT 10.244.1.10:43210 -> 10.244.1.20:8080')],
  ['M21', ct('TCP IN 10.244.1.10:43210 -> 10.244.1.20:8080')],
  ['M22', pair('10.244.1.10:34567', '192.168.1.10:34567', '8.8.8.8:443')],
  [
    'M24',
    pair('10.244.1.10:40000', '192.168.1.10:40000', '8.8.8.8:443') +
      pair('10.244.1.20:40000', '192.168.1.10:40000', '8.8.4.4:443'),
  ],
])('%s: rows of pods that are there are no news', (_, text) => {
  expect(isStateDump({ file: 'x', text })).toBe(true)
  expect(told(text)).toEqual([])
})

test('M20: the row as JSON has its addresses swapped and its ports in network order', () => {
  const bytes = (text: string) => text.split('.').map(Number)
  const row = (daddr: string, saddr: string) => ({
    Key: {
      DestAddr: bytes(daddr),
      SourceAddr: bytes(saddr),
      SourcePort: 0xcaa8,
      DestPort: 0x901f,
      NextHeader: 6,
      Flags: 0,
    },
    Value: { RevNAT: 0, Flags: 0, SourceSecurityID: 1001 },
  })
  const text = JSON.stringify([row('10.244.1.10', '10.244.1.20')])
  expect(isStateDump({ file: 'x', text })).toBe(true)
  expect(told(text)).toEqual([])
  expect(told(JSON.stringify([row('10.244.1.10', '10.244.1.99')]))).toEqual([
    'ct-gone-pod: 1 connection has an end in the pod ranges that no pod of the input has: TCP OUT 10.244.1.10:43210 -> 10.244.1.99:8080',
  ])
})

test('M20: the row as bytes, as bpftool dumps its map', () => {
  const dump = (saddr: string) =>
    `key:\n0a f4 01 0a ${saddr} 1f 90 a8 ca 06 00\nvalue:\n${'00 '.repeat(44)}e9 03 00 00 ${'00 '.repeat(8)}\nFound 1 element\n`
  expect(isStateDump({ file: 'cilium_ct4_global', text: dump('0a f4 01 14') })).toBe(true)
  expect(isStateDump({ file: 'x', text: dump('0a f4 01 14') })).toBe(true)
  expect(isStateDump({ file: 'cilium_lxc', text: 'key: 01  value: 02\nFound 1 element\n' })).toBe(false)
  expect(told(dump('0a f4 01 14'))).toEqual([])
  expect(told(dump('0a f4 01 63'))).toEqual([
    'ct-gone-pod: 1 connection has an end in the pod ranges that no pod of the input has: TCP OUT 10.244.1.10:43210 -> 10.244.1.99:8080',
  ])
})

test('M23: of two pods with one port towards one destination the second may not keep it', () => {
  const kept = pair('10.244.1.10:40000', '192.168.1.10:40000', '8.8.8.8:443')
  expect(told(kept + pair('10.244.1.20:40000', '192.168.1.10:52417', '8.8.8.8:443'))).toEqual([])
  expect(told(kept + nat('TCP OUT 10.244.1.20:40000 -> 8.8.8.8:443 XLATE_SRC 192.168.1.10:40000'))).toEqual([
    'nat-collision: 1 translated port stands for several connections, whose answers reach one of them alone: TCP 192.168.1.10:40000 → 8.8.8.8:443 of 10.244.1.10:40000 and 10.244.1.20:40000',
    'nat-unpaired: 1 translation lacks its twin of the other direction: TCP OUT 10.244.1.20:40000 -> 8.8.8.8:443 XLATE_SRC 192.168.1.10:40000',
  ])
})

test('translations of pods that are gone, and behind addresses of others', () => {
  expect(told(pair('10.244.1.99:40000', '192.168.1.10:40000', '8.8.8.8:443'))).toEqual([
    'nat-gone-pod: 2 translations are for an address in the pod ranges that no pod of the input has: TCP OUT 10.244.1.99:40000 -> 8.8.8.8:443 XLATE_SRC 192.168.1.10:40000 and TCP IN 8.8.8.8:443 -> 192.168.1.10:40000 XLATE_DST 10.244.1.99:40000',
  ])
  const lent = pair('10.244.1.10:40000', '203.0.113.10:40000', '8.8.8.8:443')
  expect(told(lent)[0]).toMatch(/^nat-foreign-address: 1 translation hides a source behind an address that is neither/)
  expect(told(lent, [], 'node-gw')).toEqual([])
})

test('many connections of one address to one destination are short of ports', () => {
  const rows = Array.from({ length: 16_385 }, (_, at) =>
    pair(`10.244.1.10:${1000 + at}`, `192.168.1.10:${32_768 + at}`, '8.8.8.8:443'),
  )
  expect(told(rows.join(''))).toEqual([
    'nat-ports-scarce: more than half of the 32768 ports that one address has towards one destination are taken, and 167 drops begin before they all are: TCP 192.168.1.10 → 8.8.8.8:443 has 16385',
  ])
})

/** The maps that tell what the node's numbers stand for. */
const numbered = parseDump(
  ['cilium_lb4_services_v2', 'cilium_lb4_backends_v3', 'cilium_lb4_reverse_nat'].map((name) => ({
    file: name,
    text: printMapText(asked.map(name)),
  })),
).maps

test('connections that name a Service or a backend that the node does not have', () => {
  const row = (revNat: number, backend: number) =>
    `TCP OUT 10.244.1.10:43210 -> 10.96.0.50:80 service expires=9 Packets=0 Bytes=0 RxFlagsSeen=0x00 LastRxReport=0 TxFlagsSeen=0x00 LastTxReport=0 Flags=0x0000 [ ] RevNAT=${revNat} SourceSecurityID=0 BackendID=${backend} \n`
  expect(told(row(1, 1), numbered)).toEqual([])
  expect(told(row(77, 1), numbered)[0]).toContain(
    'ct-unknown-service: answers of 1 connection cannot be translated back',
  )
  expect(told(row(1, 88), numbered)[0]).toContain('to backend 88')
})

test('a sysdump’s file: the command above, fences around, and rows that cannot be read', () => {
  const text = `# cilium-dbg bpf ct list global\n\n\`\`\`\n${ct('TCP OUT 10.244.1.10:43210 -> 10.244.1.20:8080')}TCP OUT nonsense\n\`\`\`\n`
  expect(told(text)).toEqual(['state-unread: 1 row of it cannot be read, and is passed over'])
})

test('a Maglev table of other backends, of another size, and of no Service', () => {
  const table = asked.map('cilium_lb4_maglev')
  const text = printMapText(table)
  const of = (edit: (text: string) => string) =>
    told('', [...numbered, ...parseDump([{ file: 'maglev', text: edit(text) }]).maps])
  expect(of((same) => same)).toEqual([])
  expect(of((same) => same.replaceAll(/\[([12]) /g, '[9 '))[0]).toMatch(
    /^maglev-differs: 1 row of 251 of the Maglev table of \S+:30080\/TCP names another backend than its endpoints imply$/,
  )
  expect(of((same) => same.replace(/ \d+\]/, ']'))[0]).toContain('has 250 rows, where 251 are set')
  expect(of((same) => same.replace(/^\[\d+\]/m, '[99]'))[0]).toContain('a Maglev table of 99 v4 stands there')
})

test('without numbers of backends each of them must have its turn', () => {
  const services = numbered.filter(({ kind }) => kind === 'services')
  const text = printMapText(asked.map('cilium_lb4_maglev'))
  const of = (edit: string) => told('', [...services, ...parseDump([{ file: 'maglev', text: edit }]).maps])
  expect(of(text)).toEqual([])
  const first = text
    .split('\n')
    .map((line) => line.replace(/\[([\d ]+)\]$/, (_, ids) => `[${String(ids).replaceAll('2', '1')}]`))
  expect(of(first.join('\n'))[0]).toContain('names 1 backend, where its endpoints are 2')
})

test('nodes that are gone, and ones that are missing, from the node map', () => {
  const text = printMapText(asked.map('cilium_node_map_v2'))
  const of = (edit: string) => told('', parseDump([{ file: 'nodeid', text: edit }]).maps)
  expect(of(text)).toEqual([])
  expect(of(text.replace('192.168.1.11', '192.168.1.77')).map((one) => one.split(' ').slice(0, 2).join(' '))).toEqual([
    'row-missing: 192.168.1.11',
    'row-stale: 192.168.1.77',
  ])
})

test('a folder’s other files are counted, and a file that is named is told', () => {
  const files = ['a', 'b'].map((file) => ({ file, text: 'hello\n', isPart: true }))
  expect(parseDump(files).findings.map(({ message }) => message)).toEqual([
    '2 files of the folder are no dump that is compared, this one the first',
  ])
  expect(parseDump([{ file: 'a', text: 'hello\n' }]).findings.map(({ message }) => message)).toEqual([
    'this is the output of no command that is compared',
  ])
})

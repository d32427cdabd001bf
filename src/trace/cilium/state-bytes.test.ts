/** Connections and translations as bytes: cases M20 to M22 of the sheet, and dumps of bpftool. */
import { expect, test } from 'vitest'
import { hex } from '../../../test/cilium/ask-maps'
import { askedIp, preparePath } from '../../../test/cilium/ask-path'
import { readState } from './read-state'
import { ctKeyBytes, readCtBytes, readNatBytes } from './state-bytes'
import { newState } from './state-tables'

const keysOf = (rows: ReturnType<typeof preparePath>['walk'] extends (...args: never[]) => infer R ? R : never) =>
  rows.walk.after.filter(({ isNew }) => isNew).map(({ node, table, row, key }) => ({ node, table, row, key }))
const spaced = (text: string): string => text.replace(/(..)(?=.)/g, '$1 ')

test('M20 and M21: the rows of a connection differ in the last byte, and have their addresses swapped', () => {
  const rows = keysOf(preparePath([]).walk('A', 'B:8080')).filter(({ row }) => row.startsWith('TCP'))
  expect(rows.map(({ key }) => key)).toEqual([
    spaced('0af4010a0af401141f90a8ca0600'),
    spaced('0af4010a0af401141f90a8ca0601'),
  ])
  expect(rows.map(({ row }) => row.split(' Flags')[0])).toEqual([
    'TCP OUT 10.244.1.10:43210 -> 10.244.1.20:8080',
    'TCP IN 10.244.1.10:43210 -> 10.244.1.20:8080',
  ])
})

test('M22: the rows of a translation stand as the packets do, with the port that was kept', () => {
  const rows = keysOf(preparePath([]).walk('A', '8.8.8.8:443', { sourcePort: 34567 }))
  expect(rows.filter(({ table }) => table === 'cilium_snat_v4_external').map(({ row, key }) => [row, key])).toEqual([
    [
      'TCP OUT 10.244.1.10:34567 -> 8.8.8.8:443 XLATE_SRC 192.168.1.10:34567 NeedsCT=0',
      spaced('080808080af4010a01bb87070600'),
    ],
    [
      'TCP IN 8.8.8.8:443 -> 192.168.1.10:34567 XLATE_DST 10.244.1.10:34567 NeedsCT=0',
      spaced('c0a8010a08080808870701bb0601'),
    ],
  ])
})

/** `text` is hex; the rest of the value is zero. */
function bytes(text: string, size = text.length / 2): Uint8Array {
  const all = new Uint8Array(size)
  all.set(Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16)))
  return all
}

test('a value of connection tracking tells flags, RevNAT, identity, and of a Service its backend', () => {
  const value = new Uint8Array(56)
  value.set([2, 0, 0, 0], 8)
  value.set([0x10, 0x00, 0x00, 0x05], 36)
  value.set([0xe9, 0x03, 0, 0], 44)
  const service = readCtBytes({ key: bytes('0af4010a0a6000320050a8ca0604'), value })
  expect(service).toMatchObject({ isService: true, flags: 16, revNat: 5, sourceIdentity: 1001, backendId: 2, port: 80 })
  expect(service && hex(ctKeyBytes(service))).toBe('0af4010a0a6000320050a8ca0604')
  const plain = readCtBytes({ key: bytes('0af4010a0af401141f90a8ca0600'), value })
  expect([plain?.isService, plain?.backendId, plain?.destination]).toEqual([false, undefined, askedIp('10.244.1.20')])
  expect(readCtBytes({ key: bytes('0af4010a0af401141f90a8ca0600'), value: value.subarray(1) })).toBeUndefined()
  expect(readCtBytes({ key: bytes('0af4010a0af401141f90a8caff00'), value })).toBeUndefined()
})

test('of IPv6 a translation is read by its name, as its sizes are those of a connection', () => {
  const key = bytes(`2001${'00'.repeat(13)}08${'fd00'}${'00'.repeat(13)}0a01bb87070600`)
  const value = new Uint8Array(56)
  value.set(bytes(`fd00${'00'.repeat(13)}108707`), 32)
  expect(readNatBytes({ key, value })?.to).toEqual({ ip: askedIp('fd00::10'), port: 34567 })
})

const natDump = [
  'key:',
  'c0 a8 01 0a 08 08 08 08  9c 41 01 bb 06 01',
  'value:',
  `${'00 '.repeat(32)}0a f4 01 0a 87 07 00 00`,
  'Found 1 element',
].join('\n')

test('a dump of bpftool is given as state, as text and as JSON, and its end may be missing', () => {
  const read = (text: string, file = 'dump') => {
    const state = newState('1.18')
    const findings = readState(state, [{ file, text, node: 'node-a' }], 'node-a')
    return [state.rows().map(({ row }) => row), findings.map(({ code }) => code)]
  }
  const row = 'TCP IN 8.8.8.8:443 -> 192.168.1.10:40001 XLATE_DST 10.244.1.10:34567 NeedsCT=0'
  expect(read(natDump)).toEqual([[row], []])
  const [key, value] = [natDump.split('\n')[1], natDump.split('\n')[3]].map((line) =>
    (line ?? '').split(/\s+/).map((byte) => `0x${byte}`),
  )
  expect(read(JSON.stringify([{ key, value }]))).toEqual([[row], []])
  expect(read(natDump.replace('06 01', 'ff 01'))).toEqual([[], ['path.state-unread']])
  expect(read(`${natDump.split('Found')[0]}key:\n0a f4`)).toEqual([[row], []])
  const state = newState('1.18')
  readState(state, [{ file: 'dump', text: natDump.replace('9c 41', '87 07'), node: 'node-a' }], 'node-a')
  const answer = preparePath([]).walk('8.8.8.8', '192.168.1.10:34567', { sourcePort: 443, isReplyWanted: false }, state)
  expect(answer.said('translated the destination back')).toBeDefined()
})

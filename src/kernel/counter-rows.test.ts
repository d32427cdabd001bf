import { expect, test } from 'vitest'
import { datapathMaps, fallbackRow, usualSizes } from '#compile/traffic-policy/datapath-maps'
import { fallbackReasons } from '#compile/traffic-policy/reasons'
import type { Bpf } from './bpf-sys'
import { readCount, readFallbacks } from './counter-rows'
import type { Tables } from './datapath-tables'

const noSuchRow = -2

/** Each row that is there holds zeroes. */
function kernelWithout(missing: number | undefined): { readonly bpf: Bpf; readonly tables: Tables } {
  const tables = Object.fromEntries(
    Object.entries(datapathMaps(usualSizes)).map(([name, shape]) => [name, { fd: 3, shape }]),
  ) as Tables
  const call: Bpf['call'] = (_command, _step, write) => {
    let row = -1
    write({
      u32: () => {},
      u64: () => {},
      name: () => {},
      pointer: (offset, bytes) => {
        if (offset === 8) row = Buffer.from(bytes).readUInt32LE(0)
      },
    })
    return row === missing ? noSuchRow : 0
  }
  return { bpf: { native: {} as Bpf['native'], call, answer: Buffer.alloc(0) }, tables }
}

test('counts of packets without a rule are zero where nothing was met, and undefined where a row cannot be read', () => {
  const whole = kernelWithout(undefined)
  expect(readFallbacks(whole.bpf, whole.tables, 1, 'egress')).toEqual(
    Object.fromEntries(fallbackReasons.map((reason) => [reason, 0n])),
  )
  const lacking = kernelWithout(fallbackRow(1, 'egress', 'no_match'))
  expect(readFallbacks(lacking.bpf, lacking.tables, 1, 'egress')).toBeUndefined()
  expect(readFallbacks(lacking.bpf, lacking.tables, 1, 'ingress')).toBeDefined()
})

test('so it is with the count of a rule', () => {
  const { bpf, tables } = kernelWithout(7)
  expect(readCount(bpf, tables, 7)).toBeUndefined()
  expect(readCount(bpf, tables, 8)).toEqual({ hits: 0n, bytes: 0n })
})

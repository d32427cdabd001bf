/** Maglev tables against upstream's golden values and the sheet's own. */
import { expect, test } from 'vitest'
import { defaultMaglevSeed, type MaglevBackend, maglevSizes, maglevTable, parseMaglevSeed } from './maglev'
import { murmur128 } from './murmur'

const seed = parseMaglevSeed(defaultMaglevSeed) ?? new Uint8Array()

function backend(id: number, address: string, weight = 100): MaglevBackend {
  return { id, address: `${address}/TCP`, weight }
}

function tableOf(backends: readonly MaglevBackend[], size: number): readonly number[] {
  return [...(maglevTable(backends, { size, seed }) ?? [])]
}

function countsOf(table: readonly number[]): Readonly<Record<number, number>> {
  const counts: Record<number, number> = {}
  for (const id of table) counts[id] = (counts[id] ?? 0) + 1
  return counts
}

const two = [backend(1, '10.244.1.20:8080'), backend(2, '10.244.2.30:8080')]

test('M25: two backends of equal weight share 251 rows as 126 and 125', () => {
  const table = tableOf(two, 251)
  expect(countsOf(table)).toEqual({ 1: 126, 2: 125 })
  expect(table.slice(0, 16)).toEqual([2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 2, 1, 2, 1, 2, 2])
})

test('M25: a third backend moves three rows between the two that were there', () => {
  const before = tableOf(two, 251)
  const after = tableOf([...two, backend(3, '10.244.2.31:8080')], 251)
  expect(countsOf(after)).toEqual({ 1: 84, 2: 84, 3: 83 })
  expect(after.slice(0, 16)).toEqual([2, 3, 2, 3, 1, 1, 1, 3, 3, 3, 2, 3, 2, 3, 3, 2])
  expect(before.filter((id, row) => after[row] !== 3 && after[row] !== id)).toHaveLength(3)
})

test('M26: the upstream golden of four weights shares 1021 rows as 16, 98, 832 and 75', () => {
  const weights = [2, 13, 111, 10]
  const backends = weights.map((weight, index) => backend(index + 1, `0.0.0.${index + 1}:${index + 1}`, weight))
  expect(countsOf(tableOf(backends, 1021))).toEqual({ 1: 16, 2: 98, 3: 832, 4: 75 })
})

test('M26: the upstream golden of 251 rows begins and ends as it does there', () => {
  const ports = [1, 3, 4, 5]
  const weights = [2, 13, 111, 10]
  const backends = ports.map((port, id) => backend(id, `0.0.0.${port}:${port}`, weights[id]))
  const table = tableOf(backends, 251)
  expect(table.slice(0, 12)).toEqual([2, 2, 2, 2, 2, 3, 2, 2, 2, 1, 2, 2])
  expect(table[12]).toBe(0)
  expect(table.slice(-11)).toEqual([3, 2, 2, 1, 2, 2, 2, 2, 2, 2, 2])
})

test('M27: 1000 is no size of a table', () => {
  expect(maglevSizes).not.toContain(1000)
  expect(maglevSizes).toContain(16381)
})

test('M28: a seed of sixteen bytes is refused', () => {
  expect(parseMaglevSeed('AAAAAAAAAAAAAAAAAAAAAA==')).toBeUndefined()
  expect(parseMaglevSeed('not base64 !!!!!')).toBeUndefined()
  expect([...seed].slice(0, 4)).toEqual([0x24, 0xb7, 0xef, 0x82])
})

test('the order of backends and a table of none', () => {
  expect(tableOf([...two].reverse(), 251)).toEqual(tableOf(two, 251))
  expect(maglevTable([], { size: 251, seed })).toBeUndefined()
})

test('the hash of the empty text with seed 0 is zero, and a known text has its known hash', () => {
  expect(murmur128(new Uint8Array(), 0)).toEqual([0n, 0n])
  const text = Uint8Array.from('The quick brown fox jumps over the lazy dog', (one) => one.charCodeAt(0))
  expect(murmur128(text, 0).map((half) => half.toString(16))).toEqual(['e34bbc7bbc071b6c', '7a433ca9c49a9347'])
})

/** Maglev's lookup tables: which backend each row of a service's table names. Mirrors pkg/maglev, Cilium 1.16 to 1.19. */
import { compareText } from '#base/text'
import { murmur128 } from './murmur'

export const maglevSizes: readonly number[] = [251, 509, 1021, 2039, 4093, 8191, 16381, 32749, 65521, 131071]
export const defaultMaglevSeed = 'JLfvgnHc2kaSUFaI'

export type MaglevBackend = {
  readonly id: number
  /** `10.244.1.20:8080/TCP`, IPv6 in brackets; `/i` behind the protocol for an internal scope. */
  readonly address: string
  readonly weight: number
}

export type MaglevOptions = { readonly size: number; readonly seed: Uint8Array }

const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

/** Base64 of exactly twelve bytes. */
export function parseMaglevSeed(text: string): Uint8Array | undefined {
  if (!/^[A-Za-z0-9+/]{16}$/.test(text)) return undefined
  const seed = new Uint8Array(12)
  for (let group = 0; group < 4; group++) {
    let bits = 0
    for (let at = 0; at < 4; at++) bits = (bits << 6) | digits.indexOf(text[4 * group + at] ?? 'A')
    seed.set([bits >>> 16, (bits >>> 8) & 0xff, bits & 0xff], 3 * group)
  }
  return seed
}

type Row = { readonly id: number; readonly weight: number; readonly skip: number; at: number; turns: number }

/** The id of a backend for each row; undefined without backends, for which there is no table. */
export function maglevTable(backends: readonly MaglevBackend[], options: MaglevOptions): Uint32Array | undefined {
  if (backends.length === 0) return undefined
  const rows = sortBackends(backends).map((backend) => rowOf(backend, options, backends.length))
  const total = rows.reduce((sum, { weight }) => sum + weight, 0)
  // Weights that are all the same give every backend its turn, which is what no weights do.
  const isWeighted = Math.trunc(total / rows.length) > 1 && rows.some(({ weight }) => weight !== rows[0]?.weight)
  return isWeighted ? fillByWeight(rows, total, options.size) : fillInTurn(rows, options.size)
}

/** Rows as numbers alone: this runs for each row of each table. */
function fillInTurn(rows: readonly Row[], size: number): Uint32Array {
  const count = rows.length
  const [ids, skips, places] = [
    Uint32Array.from(rows, ({ id }) => id),
    Uint32Array.from(rows, ({ skip }) => skip),
    Uint32Array.from(rows, ({ at }) => at),
  ]
  const table = new Uint32Array(size)
  const isTaken = new Uint8Array(size)
  for (let placed = 0, number = 0; placed < size; placed++, number = number + 1 === count ? 0 : number + 1) {
    const skip = skips[number] ?? 1
    let at = places[number] ?? 0
    while (isTaken[at] === 1) {
      at += skip
      if (at >= size) at -= size
    }
    isTaken[at] = 1
    table[at] = ids[number] ?? 0
    at += skip
    places[number] = at >= size ? at - size : at
  }
  return table
}

function fillByWeight(rows: readonly Row[], total: number, size: number): Uint32Array {
  const table = new Uint32Array(size)
  const isTaken = new Uint8Array(size)
  for (let placed = 0; placed < size; placed++) {
    const row = rows[takeTurn(rows, placed % rows.length, { placed, total })]
    if (row === undefined) continue
    let at = row.at
    while (isTaken[at] === 1) {
      at += row.skip
      if (at >= size) at -= size
    }
    isTaken[at] = 1
    table[at] = row.id
    row.at = (at + row.skip) % size
  }
  return table
}

/** A backend whose share is used up passes its turn on. */
function takeTurn(rows: readonly Row[], from: number, { placed, total }: { placed: number; total: number }): number {
  let number = from
  for (;;) {
    const row = rows[number]
    if (row === undefined) return from
    if ((placed + 1) * row.weight >= Math.trunc(row.turns)) {
      row.turns += total
      return number
    }
    number = (number + 1) % rows.length
  }
}

type Ranked = MaglevBackend & { readonly text: string }

function sortBackends(backends: readonly MaglevBackend[]): readonly Ranked[] {
  return backends
    .map((backend) => ({ ...backend, text: `[${backend.address},State:active]` }))
    .sort((a, b) => compareText(a.text, b.text))
}

function rowOf({ id, text, weight }: Ranked, { size, seed }: MaglevOptions, count: number): Row {
  const first = (((seed[0] ?? 0) << 24) | ((seed[1] ?? 0) << 16) | ((seed[2] ?? 0) << 8) | (seed[3] ?? 0)) >>> 0
  const [h1, h2] = murmur128(asciiBytes(text), first)
  const skip = Number(h2 % BigInt(size - 1)) + 1
  return { id, weight, skip, at: Number(h1 % BigInt(size)), turns: weight / count }
}

function asciiBytes(text: string): Uint8Array {
  return Uint8Array.from(text, (character) => character.charCodeAt(0))
}

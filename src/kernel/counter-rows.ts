/** The finite pool of counter rows: which are in use, and what the packets counted there. */
import { Failure } from '#base/failure'
import { counterLayout, fallbackRow } from '#compile/traffic-policy/datapath-maps'
import type { Direction } from '#compile/traffic-policy/entry'
import { type FallbackReason, fallbackReasons } from '#compile/traffic-policy/reasons'
import type { Bpf } from './bpf-sys'
import type { Tables } from './datapath-tables'
import { lookUp, numberKey, rowSize, update } from './maps'

export type RowPool = {
  /** Takes that many rows, all zero; a Failure when fewer are free, and then none is taken. */
  readonly take: (count: number) => readonly number[]
  readonly release: (rows: readonly number[]) => void
  readonly claim: (rows: readonly number[]) => void
  readonly free: () => number
}

export function createRowPool(bpf: Bpf, tables: Tables): RowPool {
  const size = tables.counters.shape.maxEntries
  const used = new Set<number>()
  let next = 0
  const zero = Buffer.alloc(rowSize(tables.counters.shape))
  return {
    take(count) {
      if (size - used.size < count) {
        throw new Failure(
          'kernel.exhausted',
          `${count} counter rows are needed and ${size - used.size} of ${size} are free; use fewer rules, or raise the number of rows`,
        )
      }
      const rows: number[] = []
      // Round the table, so that a freed row rests as long as it can before its next owner.
      for (; rows.length < count; next = (next + 1) % size) {
        if (used.has(next)) continue
        used.add(next)
        rows.push(next)
      }
      try {
        for (const row of rows) update(bpf, tables.counters, numberKey(row), zero, 'clear counter')
      } catch (error) {
        for (const row of rows) used.delete(row)
        throw error
      }
      return rows
    },
    release: (rows) => {
      for (const row of rows) used.delete(row)
    },
    claim: (rows) => {
      for (const row of rows) used.add(row)
    },
    free: () => size - used.size,
  }
}

export type Count = { readonly hits: bigint; readonly bytes: bigint }

/** Undefined when the row cannot be read: a reader leaves it out, it is not zero. */
export function readCount(bpf: Bpf, tables: Tables, row: number): Count | undefined {
  const slots = lookUp(bpf, tables.counters, numberKey(row))
  if (slots === undefined) return undefined
  let hits = 0n
  let bytes = 0n
  for (let at = 0; at < slots.length; at += counterLayout.size) {
    hits += slots.readBigUInt64LE(at + counterLayout.hits)
    bytes += slots.readBigUInt64LE(at + counterLayout.bytes)
  }
  return { hits, bytes }
}

export type FallbackCounts = Readonly<Record<FallbackReason, bigint>>

/** Undefined when one of the rows cannot be read: a reader leaves them out, they are not zero. */
export function readFallbacks(
  bpf: Bpf,
  tables: Tables,
  slot: number,
  direction: Direction,
): FallbackCounts | undefined {
  const counts: [FallbackReason, bigint][] = []
  for (const reason of fallbackReasons) {
    const slots = lookUp(bpf, tables.fallbacks, numberKey(fallbackRow(slot, direction, reason)))
    if (slots === undefined) return undefined
    let sum = 0n
    for (let at = 0; at < slots.length; at += 8) sum += slots.readBigUInt64LE(at)
    counts.push([reason, sum])
  }
  return Object.fromEntries(counts) as FallbackCounts
}

/** A slot's new owner starts at zero. */
export function clearFallbacks(bpf: Bpf, tables: Tables, slot: number): void {
  const zero = Buffer.alloc(rowSize(tables.fallbacks.shape))
  for (const direction of ['ingress', 'egress'] as const) {
    for (const reason of fallbackReasons) {
      update(bpf, tables.fallbacks, numberKey(fallbackRow(slot, direction, reason)), zero, 'clear fallback')
    }
  }
}

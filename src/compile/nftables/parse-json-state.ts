/** Counters, limits, quotas and their like out of nft's JSON. */
import type { State } from './expression'
import type { Json } from './json-text'
import { fieldOf, isObject, numberOf, textOf } from './parse-json-entries'

const unitBytes: Readonly<Record<string, number>> = { bytes: 1, kbytes: 1024, mbytes: 1024 * 1024 }
const periods = ['second', 'minute', 'hour', 'day', 'week'] as const

/** Undefined for any other key, and for what is no state of it. */
export function parseJsonState(key: string, json: Json): State | undefined {
  switch (key) {
    case 'counter':
      if (json !== null && (!isObject(json) || json.map !== undefined)) return undefined
      return { kind: 'counter', packets: countOf(json, 'packets'), bytes: countOf(json, 'bytes') }
    case 'limit':
      return isObject(json) ? parseJsonLimit(json) : undefined
    case 'quota':
      return isObject(json) ? parseJsonQuota(json) : undefined
    case 'ct count': {
      const count = numberOf(fieldOf(json, 'val'))
      return count === undefined ? undefined : { kind: 'ct-count', isOver: fieldOf(json, 'inv') === true, count }
    }
    case 'last': {
      const usedMilliseconds = numberOf(fieldOf(json, 'used'))
      return usedMilliseconds === undefined ? { kind: 'last' } : { kind: 'last', usedMilliseconds }
    }
    default:
      return undefined
  }
}

/** nft's JSON is signed, its counters are not. */
function countOf(json: Json, key: string): number {
  const count = numberOf(fieldOf(json, key)) ?? 0
  return count < 0 ? count + 2 ** 64 : count
}

/** Of statements, and with the same keys of objects. */
export function parseJsonLimit(json: Json): Extract<State, { readonly kind: 'limit' }> | undefined {
  const rate = numberOf(fieldOf(json, 'rate'))
  const per = periods.find((period) => period === (fieldOf(json, 'per') ?? 'second'))
  const rateUnit = textOf(fieldOf(json, 'rate_unit')) ?? textOf(fieldOf(json, 'unit')) ?? 'packets'
  if (rate === undefined || per === undefined) return undefined
  const burst = numberOf(fieldOf(json, 'burst'))
  const isOver = fieldOf(json, 'inv') === true
  if (rateUnit === 'packets') return { kind: 'limit', isOver, rate, unit: 'packets', per, burst: burst ?? 5 }
  const burstFactor = unitBytes[textOf(fieldOf(json, 'burst_unit')) ?? 'bytes'] ?? 1
  const bytes = rate * (unitBytes[rateUnit] ?? 1)
  return { kind: 'limit', isOver, rate: bytes, unit: 'bytes', per, burst: (burst ?? 0) * burstFactor }
}

/** Of statements; objects tell plain bytes under other keys. */
function parseJsonQuota(json: Json): State | undefined {
  const bytes = bytesOf(json, 'val')
  if (bytes === undefined) return undefined
  return { kind: 'quota', isOver: fieldOf(json, 'inv') === true, bytes, usedBytes: bytesOf(json, 'used') ?? 0 }
}

function bytesOf(json: Json, key: string): number | undefined {
  const amount = numberOf(fieldOf(json, key))
  if (amount === undefined) return undefined
  return amount * (unitBytes[textOf(fieldOf(json, `${key}_unit`)) ?? 'bytes'] ?? 1)
}

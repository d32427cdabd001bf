/** Named objects as the JSON of nft 1.0.6. */
import type { JsonObject } from './json-text'
import { scaleBytes } from './print-state'
import type { NamedObject, Table } from './ruleset'

export function objectJson(object: NamedObject, table: Pick<Table, 'family' | 'name'>): JsonObject {
  const { kind, name, handle, comment } = object
  const head = { family: table.family, name, table: table.name, handle, comment }
  return { [kind]: { ...head, ...bodyJson(object) } }
}

function bodyJson(object: NamedObject): JsonObject {
  switch (object.kind) {
    case 'counter':
      return { packets: object.packets, bytes: object.bytes }
    case 'quota':
      return { bytes: object.bytes, used: object.usedBytes, inv: object.isOver }
    case 'limit':
      return limitBody(object)
    case 'ct helper':
      return { type: object.type, protocol: object.protocol, l3proto: object.l3protocol }
    case 'ct timeout': {
      const policy = Object.fromEntries(object.policy.map(({ state, seconds }) => [state, seconds]))
      return { protocol: object.protocol, l3proto: object.l3protocol, policy }
    }
    case 'ct expectation': {
      const { protocol, port, timeoutMilliseconds, size, l3protocol } = object
      return { protocol, dport: port, timeout: timeoutMilliseconds, size, l3proto: l3protocol }
    }
    case 'synproxy': {
      const { mss, windowScale, flags } = object
      return { mss, wscale: windowScale, flags: flags.length > 1 ? flags : flags[0] }
    }
    case 'secmark':
      return { context: object.context }
    case 'other':
      return { text: object.text }
    default:
      return object satisfies never
  }
}

function limitBody(limit: Extract<NamedObject, { readonly kind: 'limit' }>): JsonObject {
  const inv = limit.isOver ? true : undefined
  if (limit.unit === 'packets') return { rate: limit.rate, per: limit.per, burst: limit.burst, inv }
  const [rate, burst] = [scaleBytes(limit.rate), scaleBytes(limit.burst)]
  const more = limit.burst === 0 ? {} : { burst: burst.amount, burst_unit: burst.unit }
  return { rate: rate.amount, per: limit.per, inv, rate_unit: rate.unit, ...more }
}

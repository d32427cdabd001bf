/** What counts and bounds, as the JSON of nft 1.0.6. */
import type { Limit, State } from './expression'
import type { JsonObject } from './json-text'
import { scaleBytes } from './print-state'

export function stateJson(state: State): JsonObject {
  switch (state.kind) {
    case 'counter':
      return { counter: { packets: state.packets, bytes: state.bytes } }
    case 'limit':
      return { limit: limitJson(state) }
    case 'quota':
      return { quota: quotaJson(state) }
    case 'ct-count':
      return { 'ct count': { val: state.count, inv: orAbsent(state.isOver) } }
    case 'last':
      return { last: state.usedMilliseconds === undefined ? null : { used: state.usedMilliseconds } }
    case 'other':
      return { other: state.text }
    default:
      return state satisfies never
  }
}

/** In the head of a set a counter has counted nothing yet. */
export function templateJson(state: State): JsonObject {
  return state.kind === 'counter' ? { counter: null } : stateJson(state)
}

function limitJson({ rate, burst, unit, per, isOver }: Limit): JsonObject {
  const inv = orAbsent(isOver)
  if (unit === 'packets') return { rate, burst, per, inv }
  const [scaledRate, scaledBurst] = [scaleBytes(rate), scaleBytes(burst)]
  return {
    rate: scaledRate.amount,
    burst: scaledBurst.amount,
    per,
    inv,
    rate_unit: scaledRate.unit,
    burst_unit: scaledBurst.unit,
  }
}

function quotaJson({ bytes, usedBytes, isOver }: Extract<State, { readonly kind: 'quota' }>): JsonObject {
  const [val, used] = [scaleBytes(bytes), scaleBytes(usedBytes)]
  const usedJson = usedBytes === 0 ? {} : { used: used.amount, used_unit: used.unit }
  return { val: val.amount, val_unit: val.unit, inv: orAbsent(isOver), ...usedJson }
}

function orAbsent(is: boolean): true | undefined {
  return is ? true : undefined
}

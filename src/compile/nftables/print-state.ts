/** What counts and bounds, as `nft list` (1.0.6) writes it in rules, in elements and in heads of sets. */
import type { Limit, State } from './expression'
import { printDuration } from './print-duration'

export function printState(state: State): string {
  switch (state.kind) {
    case 'counter':
      return `counter packets ${state.packets} bytes ${state.bytes}`
    case 'limit':
      return `limit ${printRate(state)}`
    case 'quota':
      return `quota ${printQuota(state)}${state.usedBytes === 0 ? '' : ` used ${printBytes(state.usedBytes)}`}`
    case 'ct-count':
      return `ct count ${over(state.isOver)}${state.count}`
    case 'last':
      return state.usedMilliseconds === undefined
        ? 'last used never'
        : `last used ${printDuration(state.usedMilliseconds)}`
    case 'other':
      return state.text
    default:
      return state satisfies never
  }
}

/** In the head of a set a counter has counted nothing yet, and its numbers are left out. */
export function printTemplate(state: State): string {
  return state.kind === 'counter' ? 'counter' : printState(state)
}

/** `rate over 5/second burst 10 packets`; a burst that is the usual one is left out. */
export function printRate({ isOver, rate, unit, per, burst }: Limit): string {
  const amount = unit === 'bytes' ? `${printBytes(rate)}/${per}` : `${rate}/${per}`
  const isUsual = burst === (unit === 'bytes' ? 0 : usualPacketBurst)
  const more = isUsual ? '' : ` burst ${unit === 'bytes' ? printBytes(burst) : `${burst} packets`}`
  return `rate ${over(isOver)}${amount}${more}`
}

/** What a limit of packets gets when its burst is not told. */
const usualPacketBurst = 5

export function printQuota({ isOver, bytes }: Extract<State, { readonly kind: 'quota' }>): string {
  return `${over(isOver)}${printBytes(bytes)}`
}

/** `10 mbytes`: in the largest unit that leaves no rest. */
export function printBytes(bytes: number): string {
  const { amount, unit } = scaleBytes(bytes)
  return `${amount} ${unit}`
}

export function scaleBytes(bytes: number): { readonly amount: number; readonly unit: 'bytes' | 'kbytes' | 'mbytes' } {
  if (bytes === 0 || bytes % 1024 !== 0) return { amount: bytes, unit: 'bytes' }
  const kilobytes = bytes / 1024
  if (kilobytes % 1024 !== 0) return { amount: kilobytes, unit: 'kbytes' }
  return { amount: kilobytes / 1024, unit: 'mbytes' }
}

function over(isOver: boolean): string {
  return isOver ? 'over ' : ''
}

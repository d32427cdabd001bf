/** What a selector of a rule looks at in a packet: a value, a chance, a question, or nothing at all. */
import type { Test } from '../question'
import type { View } from '../view'
import type { Pattern, Scalar, ScalarKind } from './scalar'

export type Subject =
  /** The packet tells. */
  | { readonly kind: 'known'; readonly of: ScalarKind; readonly value: Scalar }
  /** The packet does not tell; `ask` is a question for one pattern. */
  | { readonly kind: 'open'; readonly of: ScalarKind; readonly ask: (view: View, pattern: Pattern) => Test }
  /** Spread evenly over the numbers from `offset` to `offset + modulus - 1`. */
  | { readonly kind: 'chance'; readonly of: ScalarKind; readonly modulus: number; readonly offset: number }
  /** The packet has no such part (a UDP packet has no TCP port): the rule is left, negated or not. */
  | { readonly kind: 'absent' }

export const number = (type: string): ScalarKind => ({ kind: 'number', type })
export const address: ScalarKind = { kind: 'address' }
export const text: ScalarKind = { kind: 'text' }
export const interfaceName: ScalarKind = { kind: 'interface' }

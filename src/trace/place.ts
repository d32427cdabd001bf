/** Where a matched rule stands, and what its target may do to a path. */
import type { Option, Rule } from '#compile/iptables/rule'
import { type HopEvent, type Path, withHop } from './path'
import type { Answered } from './question'
import type { Hook } from './view'
import type { World } from './world'

/** Where the rule stands, and what had to be true on the way to it. */
export type Place = {
  readonly world: World
  readonly hook: Hook
  readonly table: string
  readonly chain: string
  readonly rule: Rule
  /** Conditions of this rule and of the jumps that led here. */
  readonly conditions: readonly Answered[]
  /** The rule that jumped into this chain, when the chain is not a built-in one. */
  readonly caller: Rule | undefined
  /** This rule is reached only with a certain mark: what set the mark is the reason. */
  readonly hasMarkGate: boolean
}

export type Effect = { readonly kind: 'continue' | 'return' | 'end'; readonly paths: readonly Path[] }

export function optionValue(options: readonly Option[], ...flags: readonly string[]): string | undefined {
  return options.find((option) => flags.includes(option.flag))?.values[0]
}

export function hopAt(place: Place, did: string): HopEvent {
  return { hook: place.hook, table: place.table, chain: place.chain, rule: place.rule, kind: 'rule', did }
}

export function end(path: Path, kind: 'accept' | 'drop' | 'reject', hop: HopEvent): Effect {
  const ended = {
    ...withHop(path, hop),
    end: hop.rule === undefined ? { kind, place: hop } : { kind, rule: hop.rule, place: hop },
  }
  return { kind: 'end', paths: [ended] }
}

export function endUnknown(path: Path, hop: HopEvent, why: string): Effect {
  return { kind: 'end', paths: [{ ...withHop(path, hop), end: { kind: 'unknown', why, place: hop } }] }
}

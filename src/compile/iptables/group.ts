/** What the parser has read of a dump so far: one table's chains, before groups are joined into rulesets. */
import type { Family } from '#base/ip'
import type { Counters, Rule, Variant } from './rule'

/** One `*table … COMMIT` group as read, before groups are joined into rulesets. */
export type Group = {
  table: string | undefined
  family: Family | undefined
  variant: Variant | undefined
  line: number
  readonly chains: Map<string, DraftChain>
  isCommitted: boolean
}

/** `jumps` are the rules whose target is no target of iptables' own: a user chain, if there is one of that name. */
export type DraftChain = {
  name: string
  policy?: string
  /** The line of its declaration, where that could not be read: its policy is not known. */
  unreadLine?: number
  counters?: Counters
  line: number
  rules: Rule[]
  readonly jumps: { readonly target: string; readonly rule: Rule }[]
}

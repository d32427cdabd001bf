/** iptables rules as data: what the renderer builds, the printers print, the parser reads and the tracer walks. */
import type { Family } from '#base/ip'

/** One option of a match or target: `! --dport 80:90` is `{ flag: '--dport', not: true, values: ['80:90'] }`. */
export type Option = { readonly flag: string; readonly not: boolean; readonly values: readonly string[] }

export type HeaderKind = 'source' | 'destination' | 'in-interface' | 'out-interface' | 'protocol'

/**
 * What a rule asks of a packet. Header values are text as written: an address with or without its length
 * (`10.0.0.1`, `10.0.0.0/8`, `10.0.0.0/255.0.255.0`), an interface name that may end in `+`, a protocol name or number.
 */
export type Clause =
  | { readonly kind: HeaderKind; readonly not: boolean; readonly value: string }
  | { readonly kind: 'fragment'; readonly not: boolean; readonly value: '' }
  | { readonly kind: 'match'; readonly name: string; readonly options: readonly Option[] }

/** `-j TARGET …` or `-g CHAIN`; `target` is a built-in target's name or a user chain's. */
export type Action = { readonly kind: 'jump' | 'goto'; readonly target: string; readonly options: readonly Option[] }

export type Counters = { readonly packets: number; readonly bytes: number }

/** Clauses stand in written order. `line` and `text` are there when the rule was read from a ruleset. */
export type Rule = {
  readonly clauses: readonly Clause[]
  readonly action?: Action
  readonly line?: number
  readonly text?: string
  readonly counters?: Counters
}

/** `policy` is there for built-in chains alone. */
export type Chain = {
  readonly name: string
  readonly policy?: string
  readonly rules: readonly Rule[]
  readonly line?: number
  readonly counters?: Counters
}

/** Chains in written order. */
export type Table = { readonly name: string; readonly chains: ReadonlyMap<string, Chain> }

export type Variant = 'nf_tables' | 'legacy'

export type Ruleset = {
  readonly family: Family
  readonly variant?: Variant
  readonly tables: ReadonlyMap<string, Table>
}

/** The chains the kernel calls, in the order `iptables-save` lists them. */
export const builtinChains: Readonly<Record<string, readonly string[]>> = {
  raw: ['PREROUTING', 'OUTPUT'],
  mangle: ['PREROUTING', 'INPUT', 'FORWARD', 'OUTPUT', 'POSTROUTING'],
  nat: ['PREROUTING', 'INPUT', 'OUTPUT', 'POSTROUTING'],
  filter: ['INPUT', 'FORWARD', 'OUTPUT'],
  security: ['INPUT', 'FORWARD', 'OUTPUT'],
}

/** The first value of an option of a rule's match, undefined when the rule has no such match or option. */
export function optionOf(rule: Rule, match: string, flag: string): Option | undefined {
  for (const clause of rule.clauses) {
    if (clause.kind !== 'match' || clause.name !== match) continue
    const option = clause.options.find((candidate) => candidate.flag === flag)
    if (option !== undefined) return option
  }
  return undefined
}

/** The rule's comment, joined when it has several. */
export function commentOf(rule: Rule): string | undefined {
  return optionOf(rule, 'comment', '--comment')?.values[0]
}

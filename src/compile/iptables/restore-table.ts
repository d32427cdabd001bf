/** A table as `iptables-restore` takes it: chains to declare, then lines in the order they are written. */
import type { Chain, Counters, Rule, Ruleset } from './rule'

/** A chain of the document is created, or flushed if it is there; built-in chains have a policy. */
export type RestoreChain = { readonly name: string; readonly policy?: string; readonly counters?: Counters }

/** `-A CHAIN RULE` for each rule of a run that goes to one chain, or `-X CHAIN`. */
export type RestoreLine =
  | { readonly kind: 'append'; readonly chain: string; readonly rules: readonly Rule[] }
  | { readonly kind: 'delete'; readonly chain: string }

export type RestoreTable = {
  readonly name: string
  readonly chains: readonly RestoreChain[]
  readonly lines: readonly RestoreLine[]
}

/** Any ruleset as restore tables, rules grouped by chain. */
export function restoreTablesOf(ruleset: Ruleset): readonly RestoreTable[] {
  return Array.from(ruleset.tables.values(), ({ name, chains }) => ({
    name,
    chains: Array.from(chains.values(), restoreChainOf),
    lines: Array.from(
      chains.values(),
      (chain): RestoreLine => ({ kind: 'append', chain: chain.name, rules: chain.rules }),
    ),
  }))
}

function restoreChainOf({ name, policy, counters }: Chain): RestoreChain {
  return { name, ...(policy !== undefined && { policy }), ...(counters !== undefined && { counters }) }
}

/** When a ruleset is no ground to say "allowed": it holds nothing about the packet, or something else translates Services. */
import type { Family } from '#base/ip'
import type { Ruleset } from '#compile/iptables/rule'
import type { Ruleset as NftRuleset } from '#compile/nftables/ruleset'
import type { Reason, Trace, Verdict } from '#model/trace'

export type Ground = {
  readonly family: Family
  readonly rulesets: readonly Ruleset[]
  readonly nft?: NftRuleset
  /** The codes of what was found out about the node. */
  readonly codes: ReadonlySet<string>
}

/** The trace, or `unknown` in place of an `allowed` that rests on nothing. */
export function withholdVerdict(trace: Trace, ground: Ground): Trace {
  const reason = reasonToDoubt(ground)
  const { kind, because } = trace.verdict
  if (reason === undefined || trace.targets.length > 0) return trace
  if (kind !== 'allowed' && kind !== 'unknown') return trace
  const { branches, ...rest } = trace
  const verdict: Verdict = { kind: 'unknown', because: [reason, ...(kind === 'unknown' ? because : [])] }
  const kept = branches?.filter((branch) => branch.verdict.kind !== 'allowed' || branch.targets.length > 0) ?? []
  return { ...rest, verdict, ...(kept.length === 0 ? {} : { branches: kept }) }
}

export function reasonToDoubt({ family, rulesets, nft, codes }: Ground): Reason | undefined {
  const own = rulesets.filter((ruleset) => ruleset.family === family)
  const nftFamilies = family === 'ipv4' ? ['ip', 'inet'] : ['ip6', 'inet']
  const hasNft = [...(nft?.tables.values() ?? [])].some((table) => nftFamilies.includes(table.family))
  if (own.length === 0 && !hasNft) {
    const name = family === 'ipv4' ? 'IPv4' : 'IPv6'
    return { code: 'trace.no-rules', sentence: `the input holds no ${name} rules to judge this packet by` }
  }
  if (codes.has('ruleset.ipvs')) {
    const sentence = 'kube-proxy runs in IPVS mode: whether this is a Service, and where it goes, is not in these rules'
    return { code: 'trace.other-dataplane', sentence }
  }
  if (codes.has('ruleset.cilium')) {
    const sentence = 'Cilium translates Services in BPF: whether this is one, and where it goes, is not in these rules'
    return { code: 'trace.other-dataplane', sentence }
  }
  if (codes.has('nft.terse')) {
    const sentence = 'the listing leaves out what its sets and maps hold (nft -t): where they lead is not known'
    return { code: 'trace.incomplete', sentence }
  }
  // nft tells all chains of a table before their rules: of a listing that was cut, a chain may look empty that is not.
  if (codes.has('nft.cut-json')) {
    return {
      code: 'trace.incomplete',
      sentence: 'the JSON was cut: which rules are missing from its chains is not known',
    }
  }
  if (own.length === 0 && nft !== undefined && isPartOfRuleset(nft)) {
    const sentence = 'the listing is part of a ruleset, in which no packet meets a rule; take nft list ruleset'
    return { code: 'trace.incomplete', sentence }
  }
  if (codes.has('ruleset.other-variant') && !hasNft && own.every(isEmpty)) {
    return {
      code: 'trace.no-rules',
      sentence: 'the rules are in the other iptables variant, which is not in the input',
    }
  }
  return undefined
}

/** What `nft list chains`, `list chain`, `list sets` and `list map` print: things that rules lead to, without the rules. */
export function isPartOfRuleset({ tables }: NftRuleset): boolean {
  const chains = [...tables.values()].flatMap((table) => [...table.chains.values()])
  const hasBase = chains.some(({ base }) => base !== undefined)
  const hasRule = chains.some(({ rules }) => rules.length > 0)
  const hasRest =
    chains.some(({ base }) => base === undefined) || [...tables.values()].some(({ sets }) => sets.size > 0)
  return hasRest && (!hasBase || !hasRule)
}

function isEmpty(ruleset: Ruleset): boolean {
  return [...ruleset.tables.values()].every((table) =>
    [...table.chains.values()].every((chain) => chain.rules.length === 0 && (chain.policy ?? 'ACCEPT') === 'ACCEPT'),
  )
}

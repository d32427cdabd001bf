/** Reads what the options name: the cluster's objects, and the rules of a node. */
import { Failure } from '#base/failure'
import type { Finding } from '#base/finding'
import { compareText, listOf } from '#base/text'
import { selectSlices } from '#compile/endpointslices/select-slices'
import { type IpSet, isIpsetText, parseIpset } from '#compile/iptables/parse-ipset'
import { parseSave, type RulesetParse } from '#compile/iptables/parse-save'
import type { Ruleset } from '#compile/iptables/rule'
import type { Cluster } from '#model/cluster'
import type { EndpointSlice } from '#model/endpoint-slice'
import { readFrom } from '#sources/read-from'
import { readText } from '#sources/read-text'
import type { Io } from './io'
import type { FromOptions } from './options'

export type ClusterInput = {
  readonly cluster: Cluster
  readonly slices: readonly EndpointSlice[]
  readonly findings: readonly Finding[]
}

export async function readClusterInput(io: Io, options: FromOptions): Promise<ClusterInput> {
  const { value: cluster, findings } = await readFrom(options.from ?? [], {
    stdin: io.stdin,
    say: (sentence) => io.err(`${sentence}\n`),
  })
  const slices = selectSlices(cluster, options.slices)
  return { cluster, slices: slices.value, findings: [...findings, ...slices.findings] }
}

/** Throws when the node is not in the input, naming those that are. */
export function requireNode(cluster: Cluster, name: string | undefined): void {
  if (name === undefined || cluster.nodes.has(name)) return
  const names = [...cluster.nodes.keys()].sort(compareText)
  const known = names.length === 0 ? 'the input has no Node' : `the input has ${listOf(names)}`
  throw new Failure('usage.not-found', `no Node is named "${name}": ${known}; name one of them with --node`)
}

export type RulesetInput = {
  readonly rulesets: readonly Ruleset[]
  readonly signs: RulesetParse['signs']
  readonly sets: ReadonlyMap<string, IpSet>
  readonly findings: readonly Finding[]
}

/** Each file holds rules of any table, family and variant, or the output of `ipset save`. */
export async function readRulesets(io: Io, paths: readonly string[]): Promise<RulesetInput> {
  const rulesets: Ruleset[] = []
  const findings: Finding[] = []
  const signs = new Set<'list-output' | 'nft-text' | 'legacy-present' | 'nft-present'>()
  const sets = new Map<string, IpSet>()
  for (const path of paths) {
    const text = await readText(path, { stdin: io.stdin, say: (sentence) => io.err(`${sentence}\n`) })
    if (isIpsetText(text)) {
      const parsed = parseIpset(text, path)
      for (const [name, set] of parsed.sets) sets.set(name, set)
      findings.push(...parsed.findings)
      continue
    }
    const parsed = parseSave(text, path)
    refuseOther(path, text, parsed)
    rulesets.push(...parsed.rulesets)
    for (const sign of parsed.signs) signs.add(sign)
    findings.push(...parsed.findings)
  }
  return { rulesets, signs, sets, findings }
}

/** Text that holds no rule is refused with what it is, unless it only warns that the rules are elsewhere. */
function refuseOther(path: string, text: string, parsed: RulesetParse): void {
  if (parsed.rulesets.length > 0 || parsed.signs.has('legacy-present')) return
  const name = path === '-' ? 'standard input' : path
  if (parsed.signs.has('list-output')) {
    throw new Failure(
      'input.not-a-ruleset',
      `${name} is the output of iptables -L, which leaves out parts of the rules; run iptables-save instead`,
    )
  }
  if (parsed.signs.has('nft-text')) {
    throw new Failure(
      'input.not-a-ruleset',
      `${name} is an nftables listing; this command reads iptables rules: run iptables-save on the node`,
    )
  }
  const what = text.trim() === '' ? 'is empty' : 'holds no iptables rules'
  throw new Failure(
    'input.not-a-ruleset',
    `${name} ${what}; it should be the output of iptables-save, iptables -S or ipset save`,
  )
}

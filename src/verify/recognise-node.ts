/** Who wrote a node's rules, and what that means for a question about Services. */
import type { Finding } from '#base/finding'
import { countOf } from '#base/text'
import type { RulesetParse } from '#compile/iptables/parse-save'
import type { Rule, Ruleset, Table } from '#compile/iptables/rule'
import { targetOf } from '#compile/iptables/saved-rule'
import { verifyFinding } from './findings'

/** The makers whose chains a ruleset shows, by the chain names they use. */
const makers: readonly { readonly name: string; readonly chain: RegExp }[] = [
  { name: 'kube-proxy', chain: /^KUBE-(SVC|SEP|SERVICES|NODEPORTS|EXT|FW|XLB|SVL)/ },
  { name: 'kube-router', chain: /^KUBE-(ROUTER|POD-FW|NWPLCY)/ },
  { name: 'Calico', chain: /^cali-/ },
  { name: 'Cilium', chain: /^CILIUM_/ },
  { name: 'Flannel', chain: /^FLANNEL-/ },
  { name: 'Docker', chain: /^DOCKER/ },
  { name: 'kind', chain: /^KIND-/ },
  { name: 'CNI portmap', chain: /^CNI-/ },
  { name: 'Istio', chain: /^ISTIO_/ },
  { name: 'Weave', chain: /^WEAVE/ },
  { name: 'libvirt', chain: /^LIBVIRT_/ },
  { name: 'firewalld', chain: /^(FWD[IO]_|IN_|PRE_|POST_|FWDI_|INPUT_ZONES|FORWARD_IN_ZONES|PREROUTING_ZONES)/ },
  { name: 'ufw', chain: /^ufw6?-/ },
]

export function makersOf(rulesets: readonly Ruleset[]): readonly string[] {
  const chains = rulesets.flatMap((ruleset) =>
    [...ruleset.tables.values()].flatMap((table) => [...table.chains.keys()]),
  )
  return makers.filter((maker) => chains.some((name) => maker.chain.test(name))).map((maker) => maker.name)
}

/** What a person who asks for a Service must know of this dump before any answer. */
export function recogniseNode({ rulesets, signs }: Pick<RulesetParse, 'rulesets' | 'signs'>): readonly Finding[] {
  const findings: Finding[] = []
  const hasServices = rulesets.some(hasServiceChains)
  if (!hasServices && rulesets.some(isIpvs)) {
    findings.push(
      verifyFinding(
        'ruleset.ipvs',
        'IPVS mode: the targets of Services are not in these rules',
        'read `ipvsadm -Ln` and `ipset list` on the node',
      ),
    )
  } else if (!hasServices && makersOf(rulesets).includes('Cilium')) {
    findings.push(
      verifyFinding(
        'ruleset.cilium',
        'no kube-proxy rules: Cilium translates Services in BPF',
        'read `cilium-dbg bpf lb list` in the agent of the node',
      ),
    )
  } else if (!hasServices && rulesets.length > 0 && makersOf(rulesets).length === 0) {
    findings.push(verifyFinding('ruleset.no-kube-proxy', 'the dump holds no rules of kube-proxy'))
  }
  findings.push(...otherVariant(signs, hasServices), ...bothVariants(rulesets), ...staleChains(rulesets))
  return findings
}

function hasServiceChains(ruleset: Ruleset): boolean {
  const nat = ruleset.tables.get('nat')
  return (
    nat !== undefined &&
    [...nat.chains.keys()].some((name) => name.startsWith('KUBE-SVC-') || name.startsWith('KUBE-SEP-'))
  )
}

function isIpvs(ruleset: Ruleset): boolean {
  const rules = ruleset.tables.get('nat')?.chains.get('KUBE-SERVICES')?.rules ?? []
  return rules.some((rule) => usesSet(rule, 'KUBE-CLUSTER-IP'))
}

function usesSet(rule: Rule, name: string): boolean {
  return rule.clauses.some(
    (clause) =>
      clause.kind === 'match' && clause.name === 'set' && clause.options.some((option) => option.values[0] === name),
  )
}

function otherVariant(signs: RulesetParse['signs'], hasServices: boolean): readonly Finding[] {
  if (!signs.has('legacy-present') && !signs.has('nft-present')) return []
  const command = signs.has('legacy-present') ? 'iptables-legacy-save' : 'iptables-nft-save'
  const message = hasServices
    ? 'this node has rules in the other iptables variant too, and the kernel runs both'
    : 'the rules are in the other iptables variant'
  return [verifyFinding('ruleset.other-variant', message, `run ${command} and add its output as another --ruleset`)]
}

function bothVariants(rulesets: readonly Ruleset[]): readonly Finding[] {
  const withServices = rulesets.filter(hasServiceChains)
  const isDouble = (['ipv4', 'ipv6'] as const).some(
    (family) => withServices.filter((ruleset) => ruleset.family === family).length > 1,
  )
  if (!isDouble) return []
  const message = 'both iptables variants hold Service rules: whichever is older sends to endpoints that may be gone'
  return [verifyFinding('ruleset.both-variants', message, 'flush the variant that kube-proxy no longer writes')]
}

/** Chains that no rule jumps to: kube-proxy deletes them with a delay, so a few are normal. */
function staleChains(rulesets: readonly Ruleset[]): readonly Finding[] {
  let count = 0
  let first: string | undefined
  for (const ruleset of rulesets) {
    const nat = ruleset.tables.get('nat')
    for (const name of nat === undefined ? [] : unreferenced(nat)) {
      count++
      first ??= name
    }
  }
  if (count === 0) return []
  const message = `${countOf(count, 'Service or endpoint chain')} that no rule jumps to (first: ${first})`
  return [
    verifyFinding('ruleset.stale-chains', message, 'normal for a while after endpoints left; kube-proxy removes them'),
  ]
}

function unreferenced(nat: Table): readonly string[] {
  const own = [...nat.chains.keys()].filter((name) => /^KUBE-(SVC|SVL|SEP|EXT|FW|XLB)-/.test(name))
  if (own.length === 0) return []
  const used = new Set<string>()
  for (const chain of nat.chains.values()) {
    for (const rule of chain.rules) {
      const target = targetOf(rule)
      if (target !== undefined) used.add(target)
    }
  }
  return own.filter((name) => !used.has(name))
}

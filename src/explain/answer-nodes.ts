/** The nodes whose rules are looked at, each with what its rules should do and, where they were given, what they do. */
import type { Finding } from '#base/finding'
import { type Family, familyOf } from '#base/ip'
import { compareText, listOf } from '#base/text'
import type { Layout } from '#compile/nftables/layout'
import { nodePortAddresses } from '#compile/services/node-port-addresses'
import { planServices, proxyNodeOf } from '#compile/services/plan-services'
import type { ServicePlan } from '#compile/services/service-plan'
import { nodeIps } from '#model/node'
import { makersOf, recogniseNode } from '#verify/recognise-node'
import { chooseSources } from './choose-sources'
import { computeRules, layoutOf } from './compute-rules'
import type { NodeRuleset } from './explain-input'
import { type Destination, listDestinations, standIn } from './list-destinations'
import type { ServiceView } from './service-view'
import { type Answer, type TracedRules, traceNode } from './trace-node'

export type NodeAnswers = {
  /** Absent where nobody said which node it is. */
  readonly node?: string
  /** What to call it in a sentence. */
  readonly label: string
  /** Nodes whose computed rules answer alike; the node itself is not among them. */
  readonly alike: readonly string[]
  readonly family: Family
  readonly plan: ServicePlan
  readonly destinations: readonly Destination[]
  /** By the rules that kube-proxy would write there now. */
  readonly expected: readonly Answer[]
  /** By the rules that were given, and what they say of themselves. */
  readonly given?: GivenAnswers
}

export type GivenAnswers = {
  readonly ruleset: NodeRuleset
  /** Of the family at hand. */
  readonly rules: TracedRules
  /** Empty where Services are not in these rules, as `findings` then say. */
  readonly answers: readonly Answer[]
  /** There are rules of the family at hand. */
  readonly hasFamily: boolean
  readonly isElsewhere: boolean
  readonly findings: readonly Finding[]
}

/** What is told of a node: what its rules do where they were given, else what they should do. */
export function answersShown({ given, expected }: NodeAnswers): readonly Answer[] {
  return given === undefined ? expected : given.answers
}

/**
 * How many groups of nodes are traced where no rules are given: more nodes with endpoints of their own answer alike, and
 * each costs traces over all endpoints.
 */
function mostGroups({ slices }: ServiceView): number {
  const endpoints = slices.used.reduce((sum, slice) => sum + slice.endpoints.length, 0)
  return Math.max(2, Math.min(8, Math.floor(4000 / Math.max(1, endpoints))))
}

export function answerNodes(view: ServiceView): readonly NodeAnswers[] {
  const { input, families } = view
  if (input.nodeRulesets.length > 0) {
    return input.nodeRulesets.flatMap((ruleset) => families.map((family) => answerGiven(view, family, ruleset)))
  }
  return families.flatMap((family) =>
    groupNodes(view, family)
      .slice(0, mostGroups(view))
      .map(({ node, alike }) => answerComputed(view, family, { node, alike, label: node ?? 'a node' })),
  )
}

type Labelled = {
  readonly node: string | undefined
  readonly alike: readonly string[]
  readonly label: string
  readonly layout?: Layout
}

function answerComputed(view: ServiceView, family: Family, labelled: Labelled): NodeAnswers {
  const { node, alike, label, layout } = labelled
  const nodeIps = ipsOf(view, family, node)
  const { plan, rules } = computeRules(view, { family, node, ...(layout !== undefined && { layout }) })
  const nodePortIp = nodePortIpOf(plan, { ips: nodeIps, isNftables: layout !== undefined })
  const destinations = listDestinations(view.service, { family, ...(nodePortIp !== undefined && { nodePortIp }) })
  const expected = traceNode({ ...rules, nodeIps }, destinations, chooseSources(view, family, node))
  return { ...(node !== undefined && { node }), label, alike, family, plan, destinations, expected }
}

function answerGiven(view: ServiceView, family: Family, ruleset: NodeRuleset): NodeAnswers {
  const node = ruleset.node ?? onlyNode(view)
  const label = ruleset.node ?? `the node of ${listOf(ruleset.files)}`
  const layout = layoutOf(ruleset, family)
  const base = answerComputed(view, family, { node, alike: [], label, ...(layout !== undefined && { layout }) })
  const rules = rulesIn(ruleset, family, ipsOf(view, family, node))
  const isNftProxy = [...(ruleset.nft?.tables.values() ?? [])].some(({ name }) => name === 'kube-proxy')
  const told = recogniseNode(ruleset).filter(isToldHere)
  const findings = isNftProxy ? told.filter((one) => one.code !== 'ruleset.no-kube-proxy') : told
  const hasFamily = rules.rulesets.length > 0 || hasNftRules(ruleset, family)
  const isElsewhere = !hasFamily || ruleset.isIncomplete === true || hasServicesElsewhere(ruleset, findings)
  const answers = isElsewhere ? [] : traceNode(rules, base.destinations, chooseSources(view, family, node))
  return { ...base, given: { ruleset, rules, answers, hasFamily, isElsewhere, findings } }
}

function rulesIn({ files, rulesets, nft, sets }: NodeRuleset, family: Family, nodeIps: readonly string[]): TracedRules {
  const [file = '', ...more] = files
  return {
    rulesets: rulesets.filter((one) => one.family === family),
    ...(nft !== undefined && { nft }),
    sets,
    linesIn: more.length === 0 ? file : '',
    nodeIps,
  }
}

/** Stale chains are of other Services, and a dump of the other variant has no rules of kube-proxy of course. */
function isToldHere({ code }: Finding, _at: number, all: readonly Finding[]): boolean {
  if (code === 'ruleset.no-kube-proxy') return all.every((one) => one.code !== 'ruleset.other-variant')
  return code !== 'ruleset.stale-chains'
}

/** Clients are never the node itself: where its addresses are not known, one that nobody has stands for them. */
function ipsOf({ input }: ServiceView, family: Family, node: string | undefined): readonly string[] {
  const known = node === undefined ? undefined : input.cluster.nodes.get(node)
  const ips = known === undefined ? [] : nodeIps(known)
  return ips.some((ip) => familyOf(ip) === family) ? ips : [...ips, standIn[family]]
}

/** An address at which the setting nodePortAddresses lets node ports answer, the primary one where it may be. */
function nodePortIpOf(
  { settings, family }: ServicePlan,
  { ips, isNftables }: { readonly ips: readonly string[]; readonly isNftables: boolean },
): string | undefined {
  const own = ips.filter((ip) => familyOf(ip) === family)
  const addresses = nodePortAddresses(settings, { family, ips: own }, isNftables ? 'primary' : 'all')
  if (addresses.kind === 'all') return own[0]
  return own.find((ip) => addresses.ips.includes(ip))
}

function onlyNode({ input }: ServiceView): string | undefined {
  const [first, ...rest] = input.cluster.nodes.keys()
  return rest.length === 0 ? first : undefined
}

function hasNftRules({ nft }: NodeRuleset, family: Family): boolean {
  const own = family === 'ipv4' ? 'ip' : 'ip6'
  return [...(nft?.tables.values() ?? [])].some((table) => table.family === own || table.family === 'inet')
}

/** IPVS, Cilium, and a dump of the iptables variant that kube-proxy does not write. */
function hasServicesElsewhere({ rulesets, nft, signs }: NodeRuleset, findings: readonly Finding[]): boolean {
  if (nft !== undefined) return false
  if (findings.some(({ code }) => code === 'ruleset.ipvs' || code === 'ruleset.cilium')) return true
  const hasOther = signs.has('legacy-present') || signs.has('nft-present')
  return hasOther && !makersOf(rulesets).includes('kube-proxy')
}

export type NodeGroup = { readonly node: string | undefined; readonly alike: readonly string[] }

/** Nodes by what their rules for the Service depend on; those without endpoints of their own come first. */
export function groupNodes(view: ServiceView, family: Family): readonly NodeGroup[] {
  const { input, settings } = view
  const names = input.node === undefined ? [...input.cluster.nodes.keys()].sort(compareText) : [input.node]
  const [first, ...rest] = names
  if (first === undefined) return [{ node: undefined, alike: [] }]
  if (!dependsOnNode(view)) return [{ node: first, alike: rest }]
  const groups = new Map<string, { readonly members: string[]; readonly localCount: number }>()
  for (const name of names) {
    const node = proxyNodeOf(input.cluster, name)
    const { ports } = planServices(view.focus, view.slices.used, { family, settings, node }).value
    const key = ports
      .map(({ chosen, allowsNode }) => `${textsOf(chosen.cluster)} ${textsOf(chosen.local)} ${allowsNode}`)
      .join('\n')
    const group = groups.get(key)
    if (group !== undefined) group.members.push(name)
    else
      groups.set(key, { members: [name], localCount: ports.reduce((sum, port) => sum + port.chosen.local.length, 0) })
  }
  return [...groups.values()]
    .sort((a, b) => Math.sign(a.localCount) - Math.sign(b.localCount))
    .map(({ members: [node, ...alike] }) => ({ node, alike }))
}

function textsOf(endpoints: readonly { readonly text: string }[]): string {
  return endpoints.map(({ text }) => text).join()
}

/** Traffic policy, hints, source ranges that may hold the node, and a detector by the node's own pod range. */
function dependsOnNode({ service, slices, settings }: ServiceView): boolean {
  const isLocal = service.externalTrafficPolicy === 'Local' || service.internalTrafficPolicy === 'Local'
  const hasHints = slices.used.some(({ endpoints }) =>
    endpoints.some(({ forZones, forNodes }) => forZones !== undefined || forNodes !== undefined),
  )
  return isLocal || hasHints || service.loadBalancerSourceRanges.length > 0 || settings.detectLocal?.kind === 'NodeCIDR'
}

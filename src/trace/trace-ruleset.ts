/** One packet through a node's iptables rules: every hop, the verdict and its reasons, the targets and their shares. */
import type { Finding, Parsed } from '#base/finding'
import { printIp } from '#base/ip'
import type { IpSet } from '#compile/iptables/parse-ipset'
import type { Ruleset } from '#compile/iptables/rule'
import type { Ruleset as NftRuleset } from '#compile/nftables/ruleset'
import type { Packet } from '#model/packet'
import type { Branch, Trace, Verdict } from '#model/trace'
import { buildAnswerTree } from './answer-tree'
import { drawConnections } from './draw-connections'
import { findRoutes } from './find-routes'
import { traceFinding } from './findings'
import { flattenHops } from './flatten-hops'
import { type Group, type Grouped, groupOutcomes, type Leaf, signature } from './group-outcomes'
import { iptablesEntries, nftEntries, sortEntries } from './hook-entries'
import { judge, type Notes, sourceTranslations } from './judge'
import { emptyPath, type Path, type Way } from './path'
import { printConditions } from './print-conditions'
import type { Answered, Question } from './question'
import { serviceNotes } from './service-notes'
import { type HookWalk, type Outcome, walkHooks } from './walk-hooks'
import { isLocal, type World } from './world'

export type RulesetTraceInput = {
  readonly packet: Packet
  /** All rulesets read; those of the packet's family are walked. */
  readonly rulesets: readonly Ruleset[]
  /** nftables rules of the same node; tables that iptables-nft keeps there are left to `rulesets` when those have them. */
  readonly nft?: NftRuleset
  readonly sets?: ReadonlyMap<string, IpSet>
  /** The node's own addresses, canonical; absent when they are not known. */
  readonly nodeIps?: readonly string[]
  /** The destination is one of the node's own addresses. */
  readonly isNodeLocal?: boolean
  /** A process of the node sends it. */
  readonly isLocalSource?: boolean
  readonly simulate?: { readonly count: number; readonly seed: number }
  /** Leave the list of hops empty: for many traces at once. */
  readonly isBrief?: boolean
}

/** How many times a walk may split before it gives up and says `unknown`. */
const mostSplits = 50_000

export function traceRuleset(input: RulesetTraceInput): Parsed<Trace> {
  const rulesets = input.rulesets.filter((ruleset) => ruleset.family === input.packet.destination.family)
  const world = worldOf(input, rulesets)
  const notes = { untouched: () => serviceNotes(rulesets, input.packet) }
  const [first, second] = waysIn(input, world)
  const main = groupOutcomes(walkWay({ input, rulesets, world }, first))
  const branches = [...branchesOf(main, notes, first === 'process' ? '' : undefined)]
  if (second !== undefined)
    branches.push(...otherWay(main, groupOutcomes(walkWay({ input, rulesets, world }, second)), notes))
  const judged = judgeMain(main, notes)
  const trace: Trace = {
    verdict: judged.verdict,
    targets: judged.targets,
    masquerade: sourceTranslations(main.main.own),
    hops: input.isBrief === true ? [] : flattenHops(main.main.leaves.map((leaf) => leaf.outcome.path)),
    ...(branches.length === 0 ? {} : { branches }),
  }
  const findings = findingsOf(input, rulesets, main)
  if (input.simulate === undefined) return { value: trace, findings }
  return {
    value: { ...trace, simulated: drawConnections(trace.targets, trace.verdict.kind, input.simulate) },
    findings,
  }
}

/** Every way of a packet, apart: what a kernel's own trace is compared with. */
export function walkEveryPath(input: RulesetTraceInput): readonly Outcome[] {
  const rulesets = input.rulesets.filter((ruleset) => ruleset.family === input.packet.destination.family)
  const world = worldOf(input, rulesets)
  const [way] = waysIn(input, world)
  return walkHooks({ ...hookWalk({ input, rulesets, world }), mayMerge: false }, startOf(input.packet, way, world))
}

/** What the node remembers of packets before this one; undefined: the usual answer. */
export type Memory = (question: Question) => boolean | undefined

export type UsualWalk = {
  readonly outcomes: readonly Outcome[]
  /** A fact of the node decides that the input does not tell, or a rule that cannot be decided. */
  readonly isUnknown: boolean
  /** Made when asked for: most walks go on to the next node. */
  readonly verdict: () => Verdict
}

/** The ways of one packet of which all is known: several only where the kernel chooses at random. */
export function walkUsual(input: RulesetTraceInput, memory: Memory): UsualWalk {
  const rulesets = input.rulesets.filter((ruleset) => ruleset.family === input.packet.destination.family)
  const world = worldOf(input, rulesets)
  const [way] = waysIn(input, world)
  const all = walkWay({ input, rulesets, world }, way)
  const leaves = buildAnswerTree(all).leaves.filter(({ answers }) =>
    answers.every(({ question, answer }) => answer === (memory(question) ?? question.usual)),
  )
  const notes = { untouched: () => serviceNotes(rulesets, input.packet) }
  const isSplit = all.some(({ path }) => path.answers !== undefined)
  const isUndecided = isSplit && undecidedGroups(groupOutcomes(all)).length > 0
  const outcomes = leaves.map(({ outcome }) => outcome)
  return {
    outcomes,
    isUnknown: isUndecided || outcomes.some(({ kind }) => kind === 'unknown'),
    verdict: () => (isUndecided ? judgeMain(groupOutcomes(all), notes) : judge(leaves, notes)).verdict,
  }
}

function worldOf(input: RulesetTraceInput, rulesets: readonly Ruleset[]): World {
  return {
    ...(input.nodeIps === undefined ? {} : { nodeIps: new Set(input.nodeIps) }),
    ...(input.isNodeLocal === true ? { localDestination: printIp(input.packet.destination) } : {}),
    // kube-proxy guards the loopback's range with this chain where it has opened it.
    ...(rulesets.some(({ tables }) => tables.get('filter')?.chains.has('KUBE-FIREWALL'))
      ? { takesLoopback: true }
      : {}),
    sets: input.sets ?? new Map(),
    routes: rulesets.flatMap(findRoutes),
  }
}

/** With nothing said of the source, the wire comes first and the node's own processes second. */
function waysIn(input: RulesetTraceInput, world: World): readonly [Way, Way?] {
  const { source, inInterface } = input.packet
  if (input.isLocalSource === true) return ['process']
  if (inInterface !== undefined) return ['wire']
  if (source !== undefined) return isLocal(world, source) === true ? ['process'] : ['wire']
  const isLoopback =
    input.packet.destination.family === 'ipv4' && (input.packet.destination.words[0] ?? 0) >>> 24 === 127
  return isLoopback || printIp(input.packet.destination) === '::1' ? ['process'] : ['wire', 'process']
}

type WalkInput = { readonly input: RulesetTraceInput; readonly rulesets: readonly Ruleset[]; readonly world: World }

function hookWalk({ input, rulesets, world }: WalkInput): HookWalk {
  const { family } = input.packet.destination
  const nft = input.nft === undefined ? [] : nftEntries(withoutTwins(input.nft, rulesets), family)
  const entries = sortEntries([...iptablesEntries(rulesets), ...nft])
  return { world, entries, outInterface: input.packet.outInterface, budget: { left: mostSplits }, mayMerge: true }
}

/** `nft list ruleset` shows iptables-nft's tables too: what iptables-save told of them is the better text. */
function withoutTwins(nft: NftRuleset, rulesets: readonly Ruleset[]): NftRuleset {
  const known = new Set(
    rulesets
      .filter((ruleset) => ruleset.variant !== 'legacy')
      .flatMap(({ family, tables }) => [...tables.keys()].map((name) => `${family === 'ipv4' ? 'ip' : 'ip6'} ${name}`)),
  )
  return { tables: new Map([...nft.tables].filter(([key]) => !known.has(key))) }
}

function walkWay(walk: WalkInput, way: Way): readonly Outcome[] {
  return walkHooks(hookWalk(walk), startOf(walk.input.packet, way, walk.world))
}

/** The kernel sends to an address of the node from that same address. */
function startOf(packet: Packet, way: Way, world: World): Path {
  const isLoop = way === 'process' && isLocal(world, packet.destination) === true
  const source = packet.source ?? (isLoop ? packet.destination : undefined)
  const isLater = packet.state === 'ESTABLISHED' || packet.state === 'RELATED'
  const fields = {
    ...emptyPath.fields,
    way,
    family: packet.destination.family,
    protocol: packet.protocol,
    destination: packet.destination,
    destinationPort: packet.destinationPort,
    source,
    sourcePort: packet.sourcePort,
    inInterface: way === 'process' ? '' : packet.inInterface,
    mark: packet.mark ?? 0,
    connmark: isLater ? undefined : 0,
    state: packet.state ?? 'NEW',
    icmp: packet.icmp,
    originalSource: source,
    originalDestination: packet.destination,
    originalPort: packet.destinationPort,
  }
  return { ...emptyPath, fields }
}

function isFact(one: Answered): boolean {
  return one.question.subject.kind === 'fact' || one.question.subject.kind === 'out-interface'
}

/** Groups that differ by a fact of the node alone: one of the two answers is true, and the input does not tell which. */
function undecidedGroups(grouped: Grouped): readonly Group[] {
  return grouped.others.filter((group) => group.whens.some((when) => when.length > 0 && when.every(isFact)))
}

function judgeMain(grouped: Grouped, notes: Notes): ReturnType<typeof judge> {
  const judged = judge(grouped.main.leaves, notes)
  const undecided = undecidedGroups(grouped)
  const [first] = undecided
  if (first === undefined) return judged
  const questions = undecided.flatMap((group) => group.whens.filter((when) => when.every(isFact)).map(printConditions))
  const facts = [...new Set(questions)].slice(0, 3).join('; or ')
  const sentence = `the answer depends on something that the input does not tell: whether ${facts}${remedyFor(undecided)}`
  const verdict: Verdict = {
    kind: 'unknown',
    because: [{ code: 'trace.undecided', sentence }, ...judged.verdict.because],
  }
  return { verdict, targets: judged.targets }
}

function remedyFor(groups: readonly Group[]): string {
  const keys = groups.flatMap((group) => group.whens.flat().map((one) => one.question.key))
  if (keys.some((key) => key.startsWith('destination-local:'))) return ' (say --node-ip or --node-local)'
  if (keys.some((key) => key.startsWith('out:'))) return ' (say --out-interface)'
  return keys.some((key) => key === 'source:local') ? ' (say --node-ip)' : ''
}

function branchesOf(grouped: Grouped, notes: Notes, prefix: string | undefined): readonly Branch[] {
  const branches = grouped.others.map((group) => branchOf(group, notes, whenOf(group)))
  const undecided = undecidedGroups(grouped)
  if (undecided.length === 0 || prefix !== undefined) return branches
  const usual = undecided.flatMap((group) => group.whens.filter((when) => when.every(isFact)).map(opposite))
  return [branchOf(grouped.main, notes, printConditions(usual.flat())), ...branches]
}

function opposite(when: readonly Answered[]): readonly Answered[] {
  return when.map(({ question, answer }) => ({ question, answer: !answer }))
}

function whenOf(group: Group, prefix = ''): string {
  return group.whens.map((when) => `${prefix}${printConditions(when)}`).join('; or ')
}

function branchOf(group: Group, notes: Notes, when: string): Branch {
  const given = group.whens.length === 1 ? (group.whens[0] ?? []) : []
  return { when, ...judge(group.leaves, notes), masquerade: sourceTranslations(group.own, given) }
}

const byProcess = 'a process on the node sends it'

/** A process's answer is told when it differs from the wire's in verdict, targets or source translation. */
function otherWay(wire: Grouped, sent: Grouped, notes: Notes): readonly Branch[] {
  const masquerade = (group: Group): string =>
    JSON.stringify(sourceTranslations(group.own).map((entry) => entry.condition))
  const branches: Branch[] = []
  if (signature(wire.main) !== signature(sent.main) || masquerade(wire.main) !== masquerade(sent.main)) {
    branches.push(branchOf(sent.main, notes, byProcess))
  }
  const told = (group: Group): string => [signature(group), whenOf(group), masquerade(group)].join('\n')
  const known = new Set(wire.others.map(told))
  for (const group of sent.others) {
    if (!known.has(told(group))) branches.push(branchOf(group, notes, whenOf(group, `${byProcess} and `)))
  }
  return branches
}

function findingsOf(input: RulesetTraceInput, rulesets: readonly Ruleset[], main: Grouped): readonly Finding[] {
  const findings: Finding[] = []
  const family = input.packet.destination.family
  if (rulesets.length === 0 && input.nft === undefined) {
    const [name, command] = family === 'ipv4' ? ['IPv4', 'iptables-save'] : ['IPv6', 'ip6tables-save']
    findings.push(
      traceFinding(
        'trace.no-rules',
        `the input holds no ${name} rules`,
        `add the output of ${command} or nft list ruleset`,
      ),
    )
  }
  const tables = new Set(rulesets.flatMap((ruleset) => [...ruleset.tables.keys()]))
  if (tables.has('nat') && !tables.has('filter')) findings.push(missingFilter(main.main.leaves))
  if (!tables.has('nat') && tables.has('filter')) {
    findings.push(
      traceFinding(
        'trace.missing-table',
        'the dump has no nat table: a rule there could send the packet elsewhere',
        'take the dump with iptables-save and no -t',
      ),
    )
  }
  if (main.unlisted > 0)
    findings.push(
      traceFinding(
        'trace.more-branches',
        `${main.unlisted} further answers that depend on the packet are not listed`,
        'say more of the packet: --source, --in-interface',
      ),
    )
  return findings
}

function missingFilter(leaves: readonly Leaf[]): Finding {
  const isTranslated = leaves.some((leaf) => leaf.outcome.path.fields.isDnat)
  const message = isTranslated
    ? 'the dump holds no filter table: a rule there could still drop or reject what is sent to these targets, and accept or drop what is marked'
    : 'the dump holds no filter table: what no nat rule takes may be rejected or dropped there, as kube-proxy does for a Service without endpoints'
  return traceFinding('trace.missing-table', message, 'take the dump with iptables-save and no -t')
}

/**
 * Audit: recorded flows against policies, chunk by chunk. The state is taken over by each step and given back by it, so that a
 * file can be read through, and a broker can audit what arrives.
 */
import type { ObjectRef } from '#base/finding'
import { type Directory, type DirectoryIndex, indexDirectory } from '#flows/directory'
import type { ObservedFlow } from '#flows/observed-flow'
import type { PolicyWorld } from '#trace/policy/policy-world'
import { type AuditExample, insertExample, type KeptExample, keepExample, showExample } from './audit-examples'
import { type AuditJudge, judgeFlow, newJudge, textOfRef } from './audit-judge'
import type { AuditVerdict, Denial } from './audit-refusals'

export type { AuditExample } from './audit-examples'
export { judgeFlow } from './audit-judge'
export type { AuditVerdict, Denial } from './audit-refusals'

export type Counts = { readonly flows: number; readonly hits: number }

type OpenCounts = { flows: number; hits: number }

/** What came of one verdict: there are few verdicts, and many flows of each, which are sorted into groups when it is reported. */
type Counted = { readonly verdict: Denied; readonly counts: OpenCounts; readonly examples: KeptExample[] }

type UnknownGroup = {
  readonly reason: string
  readonly sentence: string
  readonly counts: OpenCounts
  readonly examples: KeptExample[]
}

type Tally = {
  readonly all: OpenCounts
  /** Not let through when they were seen, and not judged. */
  readonly dropped: OpenCounts
  readonly allowed: OpenCounts
  readonly denied: OpenCounts
  readonly unknown: OpenCounts
  /** By the number of the verdict. */
  readonly verdicts: (Counted | undefined)[]
  readonly unknowns: Map<string, UnknownGroup>
  /** Of all policies, those that deny nothing too. */
  readonly policies: readonly ObjectRef[]
}

export type Audit = { readonly judge: AuditJudge; readonly tally: Tally }

export function startAudit(world: PolicyWorld, directory: Directory): Audit {
  const index: DirectoryIndex = indexDirectory(directory)
  return { judge: newJudge(world, index), tally: newTally(world) }
}

function newTally({ policies }: PolicyWorld): Tally {
  return {
    all: none(),
    dropped: none(),
    allowed: none(),
    denied: none(),
    unknown: none(),
    verdicts: [],
    unknowns: new Map(),
    policies: policies.map(({ source }) => source.object),
  }
}

function none(): OpenCounts {
  return { flows: 0, hits: 0 }
}

export function auditFlows(audit: Audit, flows: readonly ObservedFlow[]): Audit {
  const { tally, judge } = audit
  for (const flow of flows) {
    count(tally.all, flow)
    if (wasDropped(flow)) count(tally.dropped, flow)
    else addVerdict(tally, flow, judgeFlow(judge, flow))
  }
  return audit
}

function wasDropped({ decision }: ObservedFlow): boolean {
  return decision !== 'ALLOW' && decision.toUpperCase() === 'DROP'
}

function addVerdict(tally: Tally, flow: ObservedFlow, verdict: AuditVerdict): void {
  count(tally[verdict.kind], flow)
  if (verdict.kind === 'denied') addDenied(tally, flow, verdict)
  else if (verdict.kind === 'unknown') addUnknown(tally, flow, verdict)
}

function count(counts: OpenCounts, { hits }: ObservedFlow): void {
  counts.flows++
  counts.hits += hits
}

type Denied = Extract<AuditVerdict, { kind: 'denied' }>

function addDenied({ verdicts }: Tally, flow: ObservedFlow, verdict: Denied): void {
  const counted = verdicts[verdict.number] ?? { verdict, counts: none(), examples: [] }
  verdicts[verdict.number] = counted
  count(counted.counts, flow)
  keepExample(counted.examples, flow, verdict.peer)
}

/** Sentences name policies and pods, so that there may be many: the rest of a reason is counted in one group. */
const mostUnknowns = 100

function addUnknown(tally: Tally, flow: ObservedFlow, verdict: Extract<AuditVerdict, { kind: 'unknown' }>): void {
  const { reason, sentence } = verdict
  const isFull = tally.unknowns.size >= mostUnknowns && !tally.unknowns.has(sentence)
  const text = isFull ? `${reason}: of other pods or policies too` : sentence
  const known = tally.unknowns.get(text) ?? { reason, sentence: text, counts: none(), examples: [] }
  tally.unknowns.set(text, known)
  count(known.counts, flow)
  keepExample(known.examples, flow, flow.peer === null ? '' : `${flow.peer.namespace}/${flow.peer.name}`)
}

export type AuditReport = {
  readonly all: Counts
  readonly dropped: Counts
  readonly allowed: Counts
  readonly denied: Counts
  readonly unknown: Counts
  /** By workload, direction and port, those with most sightings first. */
  readonly groups: readonly AuditGroup[]
  /** Every policy, those that deny nothing too. */
  readonly policies: readonly (Counts & { readonly object: ObjectRef })[]
  /** Peers that most of the denied flows are with. */
  readonly offenders: readonly (Counts & { readonly peer: string })[]
  readonly unknowns: readonly (Counts &
    Pick<UnknownGroup, 'reason' | 'sentence'> & { readonly examples: readonly AuditExample[] })[]
}

export type AuditGroup = Counts & {
  readonly subject: string
  readonly direction: Denial['direction']
  readonly port: number
  readonly protocol: string
  readonly isByRule: boolean
  readonly policies: readonly ObjectRef[]
  readonly examples: readonly AuditExample[]
}

const mostOffenders = 25

/** The same for any order of the flows, as long as what is unknown has no more sentences than are kept. */
export function reportAudit({ tally }: Audit): AuditReport {
  const { all, dropped, allowed, denied, unknown, unknowns } = tally
  const { groups, policies, offenders } = groupVerdicts(tally)
  const byHits = (a: Counts, b: Counts): number => b.hits - a.hits || b.flows - a.flows
  return {
    all: { ...all },
    dropped: { ...dropped },
    allowed: { ...allowed },
    denied: { ...denied },
    unknown: { ...unknown },
    groups: inOrder(groups, byHits, ({ denial, counts, policies: own, examples }) => ({
      subject: denial.subject,
      direction: denial.direction,
      port: denial.port,
      protocol: denial.protocol,
      isByRule: denial.isByRule,
      ...counts,
      policies: inOrder(
        own,
        () => 0,
        (object) => object,
      ),
      examples: examples.map(showExample),
    })),
    policies: inOrder(policies, byHits, ({ object, counts }) => ({ object, ...counts })),
    offenders: [...offenders]
      .map(([peer, counts]) => ({ peer, ...counts }))
      .sort((a, b) => byHits(a, b) || (a.peer < b.peer ? -1 : 1))
      .slice(0, mostOffenders),
    unknowns: inOrder(unknowns, byHits, ({ reason, sentence, counts, examples }) => ({
      reason,
      sentence,
      ...counts,
      examples: examples.map(showExample),
    })),
  }
}

type Group = {
  readonly denial: Denial
  readonly counts: OpenCounts
  readonly policies: Map<string, ObjectRef>
  readonly examples: KeptExample[]
}

type Grouped = {
  readonly groups: Map<string, Group>
  readonly policies: Map<string, { readonly object: ObjectRef; readonly counts: OpenCounts }>
  readonly offenders: Map<string, OpenCounts>
}

function groupVerdicts({ verdicts, policies }: Tally): Grouped {
  const grouped: Grouped = {
    groups: new Map(),
    policies: new Map(policies.map((object) => [textOfRef(object), { object, counts: none() }])),
    offenders: new Map(),
  }
  for (const counted of verdicts) if (counted !== undefined) addToGroups(grouped, counted)
  return grouped
}

/** A flow counts once in each of them, whatever the number of its denials. */
function addToGroups({ groups, policies, offenders }: Grouped, { verdict, counts, examples }: Counted): void {
  const { denials } = verdict
  for (const group of new Set(denials.map((denial) => groupOf(groups, denial)))) {
    add(group.counts, counts)
    for (const example of examples) insertExample(group.examples, example)
  }
  const denying = new Map(
    denials.flatMap((denial) => denial.policies.map((object) => [textOfRef(object), object] as const)),
  )
  for (const [text, object] of denying) {
    const known = policies.get(text) ?? { object, counts: none() }
    policies.set(text, known)
    add(known.counts, counts)
  }
  for (const other of new Set(denials.map((denial) => denial.other))) {
    const known = offenders.get(other) ?? none()
    offenders.set(other, known)
    add(known, counts)
  }
}

function groupOf(groups: Grouped['groups'], denial: Denial): Group {
  const key = `${denial.subject} ${denial.direction} ${denial.port} ${denial.protocol}`
  const known = groups.get(key) ?? { denial, counts: none(), policies: new Map(), examples: [] }
  groups.set(key, known)
  for (const object of denial.policies) known.policies.set(textOfRef(object), object)
  return known
}

function add(sum: OpenCounts, { flows, hits }: Counts): void {
  sum.flows += flows
  sum.hits += hits
}

function inOrder<Kept, Shown>(
  kept: ReadonlyMap<string, Kept>,
  compare: (a: Shown, b: Shown) => number,
  show: (kept: Kept) => Shown,
): readonly Shown[] {
  return [...kept]
    .map(([key, one]) => ({ key, shown: show(one) }))
    .sort((a, b) => compare(a.shown, b.shown) || (a.key < b.key ? -1 : 1))
    .map(({ shown }) => shown)
}

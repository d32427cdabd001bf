/**
 * Audit: recorded flows against policies, chunk by chunk. The state is taken over by each step and given back by it, so that a
 * file can be read through, and a broker can audit what arrives.
 */
import type { ObjectRef } from '#base/finding'
import { type Directory, type DirectoryIndex, indexDirectory } from '#flows/directory'
import type { Instant } from '#flows/instant'
import type { ObservedFlow } from '#flows/observed-flow'
import type { PolicyWorld } from '#trace/policy/policy-world'
import { type AuditJudge, type AuditVerdict, type Denial, judgeFlow, newJudge, textOfRef } from './audit-judge'

export type { AuditVerdict, Denial } from './audit-judge'
export { judgeFlow } from './audit-judge'

export type Counts = { readonly flows: number; readonly hits: number }

type OpenCounts = { flows: number; hits: number }

/** A flow that would be denied, as it was recorded. */
export type AuditExample = {
  readonly time: Instant
  readonly pod: string
  readonly peer: string
  readonly peerAddress: string | null
  readonly direction: ObservedFlow['direction']
  readonly hits: number
}

type Group = {
  readonly denial: Denial
  readonly counts: OpenCounts
  readonly policies: Map<string, ObjectRef>
  readonly examples: AuditExample[]
}

type UnknownGroup = {
  readonly reason: string
  readonly sentence: string
  readonly counts: OpenCounts
  readonly examples: AuditExample[]
}

type Tally = {
  readonly all: OpenCounts
  /** Not let through when they were seen, and not judged. */
  readonly dropped: OpenCounts
  readonly allowed: OpenCounts
  readonly denied: OpenCounts
  readonly unknown: OpenCounts
  readonly groups: Map<string, Group>
  readonly policies: Map<string, { readonly object: ObjectRef; readonly counts: OpenCounts }>
  readonly offenders: Map<string, OpenCounts>
  readonly unknowns: Map<string, UnknownGroup>
  readonly places: Map<AuditVerdict, Places>
}

export type Audit = { readonly judge: AuditJudge; readonly tally: Tally }

export function startAudit(world: PolicyWorld, directory: Directory): Audit {
  const index: DirectoryIndex = indexDirectory(directory)
  return { judge: newJudge(world, index), tally: newTally(world) }
}

function newTally({ policies }: PolicyWorld): Tally {
  const none = (): OpenCounts => ({ flows: 0, hits: 0 })
  const objects = new Map(policies.map(({ source }) => [textOfRef(source.object), source.object]))
  return {
    all: none(),
    dropped: none(),
    allowed: none(),
    denied: none(),
    unknown: none(),
    groups: new Map(),
    policies: new Map([...objects].map(([text, object]) => [text, { object, counts: none() }])),
    offenders: new Map(),
    unknowns: new Map(),
    places: new Map(),
  }
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

/** Where the flows of one verdict are counted: there are few verdicts, and many flows of each. */
type Places = { readonly groups: readonly Group[]; readonly counts: readonly OpenCounts[] }

function addDenied(tally: Tally, flow: ObservedFlow, verdict: Denied): void {
  const known = tally.places.get(verdict)
  const places = known ?? placesOf(tally, verdict)
  if (known === undefined) tally.places.set(verdict, places)
  for (const counts of places.counts) count(counts, flow)
  for (const { counts, examples } of places.groups) {
    count(counts, flow)
    keepExample(examples, flow, verdict.peer)
  }
}

function placesOf(tally: Tally, { denials }: Denied): Places {
  const groups = new Set(denials.map((denial) => groupOf(tally, denial)))
  const policies = new Map(
    denials.flatMap((denial) => denial.policies.map((object) => [textOfRef(object), object] as const)),
  )
  const others = new Set(denials.map(({ other }) => other))
  return {
    groups: [...groups],
    counts: [
      ...[...policies].map(([text, object]) => policyCounts(tally, text, object)),
      ...[...others].map((other) => offenderCounts(tally, other)),
    ],
  }
}

function policyCounts({ policies }: Tally, text: string, object: ObjectRef): OpenCounts {
  const known = policies.get(text) ?? { object, counts: { flows: 0, hits: 0 } }
  policies.set(text, known)
  return known.counts
}

function offenderCounts({ offenders }: Tally, other: string): OpenCounts {
  const known = offenders.get(other) ?? { flows: 0, hits: 0 }
  offenders.set(other, known)
  return known
}

function groupOf({ groups }: Tally, denial: Denial): Group {
  const key = `${denial.subject} ${denial.direction} ${denial.port} ${denial.protocol}`
  const known = groups.get(key) ?? { denial, counts: { flows: 0, hits: 0 }, policies: new Map(), examples: [] }
  groups.set(key, known)
  for (const object of denial.policies) known.policies.set(textOfRef(object), object)
  return known
}

/** Sentences name policies and pods, so that there may be many: the rest of a reason is counted in one group. */
const mostUnknowns = 100

function addUnknown(tally: Tally, flow: ObservedFlow, verdict: Extract<AuditVerdict, { kind: 'unknown' }>): void {
  const { reason, sentence } = verdict
  const isFull = tally.unknowns.size >= mostUnknowns && !tally.unknowns.has(sentence)
  const text = isFull ? `${reason}: of other pods or policies too` : sentence
  const known = tally.unknowns.get(text) ?? { reason, sentence: text, counts: { flows: 0, hits: 0 }, examples: [] }
  tally.unknowns.set(text, known)
  count(known.counts, flow)
  keepExample(known.examples, flow, flow.peer === null ? '' : `${flow.peer.namespace}/${flow.peer.name}`)
}

const mostExamples = 3

/** The newest, whatever the order in which they come. */
function keepExample(examples: AuditExample[], flow: ObservedFlow, peer: string): void {
  const last = examples.at(-1)
  if (examples.length >= mostExamples && last !== undefined && last.time > flow.lastSeen) return
  const { pod, peerAddress, direction, hits, lastSeen } = flow
  examples.push({ time: lastSeen, pod: `${pod.namespace}/${pod.name}`, peer, peerAddress, direction, hits })
  examples.sort((a, b) => b.time - a.time || compareExamples(a, b))
  examples.length = Math.min(examples.length, mostExamples)
}

function compareExamples(a: AuditExample, b: AuditExample): number {
  const text = ({ pod, peer, peerAddress, direction, hits }: AuditExample): string =>
    `${pod} ${peer} ${peerAddress} ${direction} ${hits}`
  return text(a) < text(b) ? -1 : 1
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
  const { all, dropped, allowed, denied, unknown, groups, policies, offenders, unknowns } = tally
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
      examples,
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
      examples,
    })),
  }
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

/** Policies in audit mode under /api/v1: what is known of each, their counters, and the report of an audit of recorded flows. */
import Type, { type Static } from 'typebox'
import { type Instant, printInstant } from '#flows/instant'
import type { AuditExample, AuditReport } from '#verify/policy/audit'
import { nullableText } from './schema-parts'

const identity = {
  kind: Type.String(),
  namespace: Type.String({ description: 'empty: cluster-scoped' }),
  name: Type.String(),
}

export const AuditPolicyRecord = Type.Object(
  {
    ...identity,
    uid: Type.String({ description: 'the manifest’s, or made from kind, namespace and name' }),
    semantics: Type.String({ description: 'k8s, cilium-1.18, …; empty of an object that is no policy' }),
    generation: Type.Integer({ description: 'of all policies, when this one came or changed last' }),
    updatedAt: Type.String({ format: 'date-time' }),
  },
  { description: 'A policy in audit mode, or an object that such policies read.' },
)

export const AuditPolicyList = Type.Object(
  { generation: Type.Integer({ description: 'grows with every change' }), items: Type.Array(AuditPolicyRecord) },
  { description: 'Everything in audit mode, by namespace, name and kind.' },
)

export const AuditPolicyWhole = Type.Object(
  {
    ...AuditPolicyRecord.properties,
    manifest: Type.Unsafe<Readonly<Record<string, unknown>>>({ type: 'object', description: 'as it was put' }),
  },
  { description: 'A policy in audit mode with its manifest.' },
)

const flowCounts = {
  evaluated: Type.Integer({ description: 'flows that were judged; of a policy those that it holds for' }),
  allowed: Type.Integer(),
  wouldDeny: Type.Integer(),
}

const SetRecord = Type.Object({
  semantics: Type.String(),
  flows: Type.Object({
    ...flowCounts,
    unknown: Type.Integer({ description: 'nobody can tell' }),
    dropped: Type.Integer({ description: 'dropped when they were seen, and not judged' }),
  }),
  judgedAt: nullableText('the last time'),
})

const Offender = Type.Object({
  peer: Type.String(),
  flows: Type.Integer(),
  lastSeen: Type.String({ format: 'date-time' }),
})

export const AuditSummaryRecord = Type.Object(
  {
    generation: Type.Integer(),
    waiting: Type.Integer({ description: 'flows that are not judged yet' }),
    sets: Type.Array(SetRecord, { description: 'policies that are judged together' }),
    policies: Type.Array(
      Type.Object({
        ...AuditPolicyRecord.properties,
        flows: Type.Object(flowCounts),
        offenders: Type.Array(Offender, { description: 'the 25 that most denied flows are with' }),
      }),
    ),
  },
  { description: 'What the policies in audit mode have come to so far.' },
)

const counts = { flows: Type.Integer(), hits: Type.Integer({ description: 'sightings' }) }
const Counts = Type.Object(counts)
const Ref = Type.Object({ kind: Type.String(), namespace: Type.Optional(Type.String()), name: Type.String() })
const Example = Type.Object({
  time: Type.String({ format: 'date-time' }),
  pod: Type.String(),
  peer: Type.String(),
  peerAddress: nullableText('as it was seen'),
  direction: Type.String(),
  hits: Type.Integer(),
})

export const AuditReportRecord = Type.Object(
  {
    all: Counts,
    dropped: Counts,
    allowed: Counts,
    denied: Counts,
    unknown: Counts,
    groups: Type.Array(
      Type.Object({
        subject: Type.String(),
        direction: Type.String(),
        port: Type.Integer(),
        protocol: Type.String(),
        isByRule: Type.Boolean({ description: 'false: no rule allows it' }),
        ...counts,
        policies: Type.Array(Ref),
        examples: Type.Array(Example),
      }),
      { description: 'what would be denied, by workload, direction and port' },
    ),
    policies: Type.Array(Type.Object({ object: Ref, ...counts })),
    offenders: Type.Array(Type.Object({ peer: Type.String(), ...counts })),
    unknowns: Type.Array(
      Type.Object({ reason: Type.String(), sentence: Type.String(), ...counts, examples: Type.Array(Example) }),
    ),
  },
  { description: 'Recorded flows against policies: the same as portolan policy audit -o json.' },
)

export type AuditPolicyRecord = Static<typeof AuditPolicyRecord>
export type AuditPolicyList = Static<typeof AuditPolicyList>
export type AuditPolicyWhole = Static<typeof AuditPolicyWhole>
export type AuditSummaryRecord = Static<typeof AuditSummaryRecord>

/** What the store’s objects have, without knowing the store. */
type PrintablePolicy = {
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly semantics: string
  readonly generation: number
  readonly updatedAt: Instant
}

export function printAuditPolicy(policy: PrintablePolicy): AuditPolicyRecord {
  const { kind, namespace, name, uid, semantics, generation, updatedAt } = policy
  return { kind, namespace, name, uid, semantics, generation, updatedAt: printInstant(updatedAt) }
}

type PrintableCounts = { readonly evaluated: number; readonly allowed: number; readonly wouldDeny: number }

type PrintableSummary = {
  readonly generation: number
  readonly waiting: number
  readonly sets: readonly (PrintableCounts & {
    readonly semantics: string
    readonly unknown: number
    readonly dropped: number
    readonly judgedAt: Instant | null
  })[]
  readonly policies: readonly (PrintablePolicy &
    PrintableCounts & {
      readonly offenders: readonly { readonly peer: string; readonly flows: number; readonly lastSeen: Instant }[]
    })[]
}

export function printAuditSummary({ generation, waiting, sets, policies }: PrintableSummary): AuditSummaryRecord {
  return {
    generation,
    waiting,
    sets: sets.map(({ semantics, judgedAt, ...flows }) => ({
      semantics,
      flows: { ...pickCounts(flows), unknown: flows.unknown, dropped: flows.dropped },
      judgedAt: judgedAt === null ? null : printInstant(judgedAt),
    })),
    policies: policies.map((policy) => ({
      ...printAuditPolicy(policy),
      flows: pickCounts(policy),
      offenders: policy.offenders.map(({ peer, flows, lastSeen }) => ({
        peer,
        flows,
        lastSeen: printInstant(lastSeen),
      })),
    })),
  }
}

function pickCounts({ evaluated, allowed, wouldDeny }: PrintableCounts): PrintableCounts {
  return { evaluated, allowed, wouldDeny }
}

/** Instants as texts; everything else as it is. */
export function printAuditReport(report: AuditReport): object {
  const withTimes = <Group extends { readonly examples: readonly AuditExample[] }>(group: Group): object => ({
    ...group,
    examples: group.examples.map((example) => ({ ...example, time: printInstant(example.time) })),
  })
  return { ...report, groups: report.groups.map(withTimes), unknowns: report.unknowns.map(withTimes) }
}

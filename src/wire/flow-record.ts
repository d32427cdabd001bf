/** A flow under /api/v1: everything that is known of it, with both ends and why the peer is who it is. */
import Type, { type Static } from 'typebox'
import type { PeerOutcome, StoredFlow } from '#flows/flow'
import { printInstant } from '#flows/instant'
import { nullableObject, nullableText, nullableWord, word } from './schema-parts'

export const WorkloadRecord = Type.Unsafe<{ readonly kind: string; readonly name: string } | null>({
  type: ['object', 'null'],
  properties: { kind: { type: 'string' }, name: { type: 'string' } },
  required: ['kind', 'name'],
  description: 'the controller that the pod belongs to in the end; null of a bare pod',
})

const portNumber = Type.Unsafe<number | null>({
  type: ['integer', 'null'],
  description: '0 or null: the client’s, or not told',
})

const Nearest = Type.Object({
  kind: word(['pod', 'node', 'service'], 'what it is'),
  namespace: Type.String(),
  name: Type.String(),
})

const Outcome = Type.Object(
  {
    kind: word(['resolved', 'rejected', 'never-held'], 'what the look-up found'),
    reason: Type.Optional(
      word(
        ['started-after', 'start-unknown', 'ended-before', 'end-unknown'],
        'why the nearest one cannot have been it',
      ),
    ),
    nearest: Type.Optional(Nearest),
  },
  { description: 'why the peer is who it is, or nobody' },
)

export const FlowRecord = Type.Object(
  {
    id: Type.String(),
    firstSeen: Type.String({ format: 'date-time' }),
    lastSeen: Type.String({ format: 'date-time' }),
    hits: Type.Integer({ description: 'how often it was seen on this UTC day' }),
    direction: word(['INGRESS', 'EGRESS'], 'as the pod saw it'),
    protocol: Type.String(),
    decision: Type.String(),
    pod: Type.Object({
      namespace: nullableText('its namespace'),
      name: Type.String(),
      uid: nullableText('its uid'),
      address: nullableText('its address'),
      port: portNumber,
      workload: WorkloadRecord,
      labels: nullableObject('labels that outlive a roll-out'),
    }),
    peer: Type.Object({
      address: nullableText('as it was seen'),
      port: portNumber,
      kind: nullableWord(['pod', 'node', 'service'], 'null: nobody is known to have held the address then'),
      namespace: nullableText('its namespace'),
      name: nullableText('its name'),
      uid: nullableText('its uid'),
      workload: WorkloadRecord,
      labels: nullableObject('labels that outlive a roll-out, as they were'),
      resolvedAt: nullableText('when this was decided'),
      outcome: Type.Union([Outcome, Type.Null()], { description: 'null on rows of older versions' }),
    }),
  },
  { description: 'Every sighting of one flow on one UTC day.' },
)

export type FlowRecord = Static<typeof FlowRecord>

export function printFlowRecord(flow: StoredFlow): FlowRecord {
  const { pod, peer } = flow
  return {
    id: flow.id,
    firstSeen: printInstant(flow.firstSeen),
    lastSeen: printInstant(flow.lastSeen),
    hits: flow.hits,
    direction: flow.direction,
    protocol: flow.protocol,
    decision: flow.decision,
    pod: {
      namespace: pod.namespace,
      name: pod.name,
      uid: pod.uid,
      address: pod.address,
      port: flow.ownPort,
      workload: pod.workload,
      labels: pod.labels,
    },
    peer: {
      address: flow.peerAddress,
      port: flow.peerPort,
      kind: peer?.kind ?? null,
      namespace: peer?.namespace ?? null,
      name: peer?.name ?? null,
      uid: peer?.uid ?? null,
      workload: peer?.workload ?? null,
      labels: peer?.labels ?? null,
      resolvedAt: peer === null ? null : printInstant(peer.resolvedAt),
      outcome: flow.outcome === null ? null : printOutcome(flow.outcome),
    },
  }
}

function printOutcome(outcome: PeerOutcome): Static<typeof Outcome> {
  return outcome.kind === 'rejected'
    ? { kind: outcome.kind, reason: outcome.reason, nearest: { ...outcome.nearest } }
    : { kind: outcome.kind }
}

/** An edge of the map, under /api/v1: one workload talks to another on one port. */
import Type, { type Static } from 'typebox'
import type { PeerKind, Workload } from '#flows/holder'
import { type Instant, printInstant } from '#flows/instant'
import { WorkloadRecord } from './flow-record'
import { nullableText, word } from './schema-parts'

const EdgeEnd = Type.Object({
  kind: word(
    ['pod', 'node', 'service', 'internet', 'private-network', 'unattributed'],
    'unattributed: somebody of the cluster held the address, but not at that time',
  ),
  namespace: nullableText('its namespace'),
  workload: WorkloadRecord,
  name: nullableText('of a Service, or of a pod without a workload'),
})

export const EdgeRecord = Type.Object(
  {
    from: EdgeEnd,
    to: EdgeEnd,
    protocol: Type.String(),
    port: Type.Integer(),
    decision: Type.String(),
    observedAt: word(['from', 'to'], 'the end it was observed at; between two watched pods it is seen at both'),
    hits: Type.Integer(),
    firstSeen: Type.String(),
    lastSeen: Type.String(),
  },
  { description: 'All flows between two workloads on one port, summed by the hour.' },
)

export type EdgeRecord = Static<typeof EdgeRecord>

type PrintableEnd = {
  readonly kind: PeerKind | 'internet' | 'private-network' | 'unattributed'
  readonly namespace: string | null
  readonly workload: Workload | null
  readonly name: string | null
}

export type PrintableEdge = {
  readonly from: PrintableEnd
  readonly to: PrintableEnd
  readonly protocol: string
  readonly port: number
  readonly decision: string
  readonly observedAt: 'from' | 'to'
  readonly hits: number
  readonly firstSeen: Instant
  readonly lastSeen: Instant
}

export function printEdge(edge: PrintableEdge): EdgeRecord {
  return { ...edge, firstSeen: printInstant(edge.firstSeen), lastSeen: printInstant(edge.lastSeen) }
}

/** Reads flows: pages by filter, and rows by their keys. */
import type { FlowFilter } from '#flows/filter'
import type { Direction, Peer, PeerOutcome, StoredFlow } from '#flows/flow'
import type { Labels, PeerKind, RejectionReason } from '#flows/holder'
import type { Instant } from '#flows/instant'
import { Conditions } from './conditions'
import { arrayText, type Session } from './engine'
import { addFilter } from './filter-sql'
import { limitOf, pageOf, readCursor } from './paging'
import { readWorkload } from './pod-rows'
import type { Page, PageRequest } from './store'

export type FlowRow = {
  readonly day: string
  readonly flow_key: string
  readonly flow_id: string
  readonly first_seen: Instant
  readonly last_seen: Instant
  readonly hits: number
  readonly pod_namespace: string | null
  readonly pod_name: string
  readonly pod_uid: string | null
  readonly pod_ip: string | null
  readonly pod_workload_kind: string | null
  readonly pod_workload_name: string | null
  readonly pod_labels: Labels | null
  readonly direction: Direction
  readonly protocol: string
  readonly own_port: number | null
  readonly peer_ip: string | null
  readonly peer_port: number | null
  readonly decision: string
  readonly peer_kind: PeerKind | null
  readonly peer_namespace: string | null
  readonly peer_name: string | null
  readonly peer_uid: string | null
  readonly peer_workload_kind: string | null
  readonly peer_workload_name: string | null
  readonly peer_labels: Labels | null
  readonly peer_resolved_at: Instant | null
  readonly peer_outcome: PeerOutcome['kind'] | null
  readonly rejected_reason: RejectionReason | null
  readonly rejected_kind: PeerKind | null
  readonly rejected_namespace: string | null
  readonly rejected_name: string | null
}

export const flowColumns = `f.day, f.flow_key, f.flow_id, f.first_seen, f.last_seen, f.hits, f.pod_namespace, f.pod_name, f.pod_uid, f.pod_ip,
  f.pod_workload_kind, f.pod_workload_name, f.direction, f.protocol, f.own_port, f.peer_ip, f.peer_port, f.decision, f.peer_kind,
  f.peer_namespace, f.peer_name, f.peer_uid, f.peer_workload_kind, f.peer_workload_name, f.peer_resolved_at, f.peer_outcome,
  f.rejected_reason, f.rejected_kind, f.rejected_namespace, f.rejected_name,
  (select l.labels from label_sets l where l.labels_id = f.pod_labels_id) as pod_labels,
  (select l.labels from label_sets l where l.labels_id = f.peer_labels_id) as peer_labels`

/** Ids are the senders', who may give one to many rows: the key makes the order a total one. */
export async function readFlows(session: Session, filter: FlowFilter, page: PageRequest): Promise<Page<StoredFlow>> {
  const limit = limitOf(page)
  const conditions = new Conditions()
  addFilter(conditions, filter)
  const place = readCursor(page.cursor, ['instant', 'uuid', 'uuid'])
  if (place !== undefined) {
    const [id, key] = [place[1], place[2]].map((part) => `${conditions.parameter(String(part))}::uuid`)
    conditions.add(`(f.first_seen, f.flow_id, f.flow_key) < (${conditions.instant(Number(place[0]))}, ${id}, ${key})`)
  }
  const { rows } = await session.query<FlowRow>({
    text: `select ${flowColumns} from flows f ${conditions.where}
      order by f.first_seen desc, f.flow_id desc, f.flow_key desc limit ${limit + 1}`,
    values: conditions.values,
  })
  return pageOf(rows, limit, { row: readFlow, place: (row) => [row.first_seen, row.flow_id, row.flow_key] })
}

/** Keys as `2026-07-23 <uuid>`. */
export async function flowsByKeys(session: Session, keys: readonly string[]): Promise<readonly StoredFlow[]> {
  if (keys.length === 0) return []
  const { rows } = await session.query<FlowRow>({
    text: `select ${flowColumns} from unnest($1::date[], $2::uuid[]) wanted(day, flow_key)
      join flows f on f.day = wanted.day and f.flow_key = wanted.flow_key order by f.first_seen, f.flow_id`,
    values: [arrayText(keys.map((key) => key.slice(0, 10))), arrayText(keys.map((key) => key.slice(11)))],
  })
  return rows.map(readFlow)
}

export function readFlow(row: FlowRow): StoredFlow {
  return {
    id: row.flow_id,
    day: row.day,
    firstSeen: row.first_seen,
    lastSeen: row.last_seen,
    hits: row.hits,
    pod: {
      namespace: row.pod_namespace,
      name: row.pod_name,
      uid: row.pod_uid,
      address: row.pod_ip,
      workload: readWorkload(row.pod_workload_kind, row.pod_workload_name),
      labels: row.pod_labels,
    },
    direction: row.direction,
    protocol: row.protocol,
    ownPort: row.own_port,
    peerAddress: row.peer_ip,
    peerPort: row.peer_port,
    decision: row.decision,
    peer: readPeer(row),
    outcome: readOutcome(row),
  }
}

function readPeer(row: FlowRow): Peer | null {
  if (row.peer_kind === null) return null
  return {
    kind: row.peer_kind,
    namespace: row.peer_namespace ?? '',
    name: row.peer_name ?? '',
    uid: row.peer_uid,
    workload: readWorkload(row.peer_workload_kind, row.peer_workload_name),
    labels: row.peer_labels,
    resolvedAt: row.peer_resolved_at ?? row.first_seen,
  }
}

function readOutcome(row: FlowRow): PeerOutcome | null {
  const { peer_outcome: kind, rejected_reason: reason, rejected_kind } = row
  if (kind !== 'rejected') return kind === null ? null : { kind }
  if (reason === null || rejected_kind === null) return null
  const nearest = {
    kind: rejected_kind,
    namespace: row.rejected_namespace ?? '',
    name: row.rejected_name ?? '',
  }
  return { kind, reason, nearest }
}

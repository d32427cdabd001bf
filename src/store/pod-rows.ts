/** Pods as the database has them, and as the store answers them. */
import type { DeathReason, Labels } from '#flows/holder'
import type { Instant } from '#flows/instant'
import type { StoredPod } from './store'

export type PodRow = {
  readonly pod_id: number
  readonly namespace: string
  readonly name: string
  readonly uid: string | null
  readonly addresses: readonly string[]
  readonly node_name: string | null
  readonly started_at: Instant | null
  readonly is_host_network: boolean | null
  readonly workload_kind: string | null
  readonly workload_name: string | null
  readonly identity: string | null
  readonly selector_labels: Labels | null
  readonly labels: Labels | null
  readonly record: unknown
  readonly first_seen: Instant
  readonly last_seen: Instant
  readonly is_dead: boolean
  readonly died_at: Instant | null
  readonly death_reason: DeathReason | null
}

/** Of `pods p`. */
export const podColumns = `p.pod_id, p.namespace, p.name, p.uid, p.addresses, p.node_name, p.started_at, p.is_host_network,
  p.workload_kind, p.workload_name, p.identity, p.selector_labels, p.record, p.first_seen, p.last_seen, p.is_dead, p.died_at,
  p.death_reason, (select l.labels from label_sets l where l.labels_id = p.labels_id) as labels`

export function readPod(row: PodRow): StoredPod {
  return {
    namespace: row.namespace,
    name: row.name,
    uid: row.uid,
    addresses: row.addresses,
    nodeName: row.node_name,
    startedAt: row.started_at,
    isHostNetwork: row.is_host_network,
    workload: readWorkload(row.workload_kind, row.workload_name),
    identity: row.identity,
    selectorLabels: row.selector_labels,
    stableLabels: row.labels,
    record: row.record,
    firstSeen: row.first_seen,
    lastSeen: row.last_seen,
    isDead: row.is_dead,
    diedAt: row.died_at,
    deathReason: row.death_reason,
  }
}

export function readWorkload(
  kind: string | null,
  name: string | null,
): { readonly kind: string; readonly name: string } | null {
  return kind === null || name === null ? null : { kind, name }
}

/** An instant as a parameter: `$n` in microseconds. */
export function instantSql(parameter: number): string {
  return `(timestamptz 'epoch' + $${parameter}::int8 * interval '1 microsecond')`
}

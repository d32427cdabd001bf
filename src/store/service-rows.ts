/** Services as the database has them, and as the store answers them. */
import type { Labels, ServiceAddressKind } from '#flows/holder'
import type { Instant } from '#flows/instant'
import type { NodePort, StoredService } from './store'

export type ServiceRow = {
  readonly service_id: number
  readonly namespace: string
  readonly name: string
  readonly uid: string | null
  readonly selector: Labels | null
  readonly labels: Labels | null
  readonly record: unknown
  readonly created_at: Instant | null
  readonly first_seen: Instant
  readonly last_seen: Instant
  readonly deleted_at: Instant | null
  readonly content_hash: string
  readonly addresses: readonly { readonly address: string; readonly kind: ServiceAddressKind }[] | null
  readonly node_ports: readonly NodePort[] | null
}

/** Of `services s`, with the addresses and node ports that it has, or had last when it is deleted. */
export const serviceColumns = `s.service_id, s.namespace, s.name, s.uid, s.selector, s.record, s.created_at, s.first_seen, s.last_seen,
  s.deleted_at, s.content_hash, (select l.labels from label_sets l where l.labels_id = s.labels_id) as labels,
  (select jsonb_agg(jsonb_build_object('address', a.address, 'kind', a.address_kind) order by a.address) from service_addresses a
    where a.service_id = s.service_id and (not a.is_dead or s.deleted_at is not null)) as addresses,
  (select jsonb_agg(jsonb_build_object('protocol', n.protocol, 'port', n.port) order by n.port, n.protocol) from node_ports n
    where n.service_id = s.service_id and (not n.is_dead or s.deleted_at is not null)) as node_ports`

export function readService(row: ServiceRow): StoredService {
  return {
    namespace: row.namespace,
    name: row.name,
    uid: row.uid,
    addresses: row.addresses ?? [],
    nodePorts: row.node_ports ?? [],
    selector: row.selector,
    stableLabels: row.labels,
    record: row.record,
    createdAt: row.created_at,
    firstSeen: row.first_seen,
    lastSeen: row.last_seen,
    deletedAt: row.deleted_at,
  }
}

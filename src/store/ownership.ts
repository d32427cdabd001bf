/** Who held an address: at a time, with the reason, and through all times. */
import { addressRange, canonicalAddress } from '#flows/address'
import type {
  DeathReason,
  Holder,
  HolderAnswer,
  Ownership,
  PeerKind,
  RejectionReason,
  ServiceAddressKind,
  Workload,
} from '#flows/holder'
import type { Instant } from '#flows/instant'
import { Conditions } from './conditions'
import type { Session } from './engine'
import { chosenHolder } from './holder-sql'
import { limitOf, pageOf, readCursor } from './paging'
import { instantSql, readWorkload } from './pod-rows'
import type { Page, PageRequest, PortTarget } from './store'

type Choice = {
  readonly pod_id: number | null
  readonly node_port_id: number | null
  readonly service_id: number | null
  readonly rejected_id: number | null
  readonly rejected_kind: PeerKind | null
  readonly rejected_reason: RejectionReason | null
}

export async function holderAt(
  session: Session,
  address: string,
  at: Instant,
  target?: PortTarget,
): Promise<HolderAnswer> {
  const canonical = canonicalAddress(address)
  const { rows } = await session.query<Choice>({
    text: `select chosen_pod.pod_id, chosen_node_port.service_id as node_port_id, chosen_service.service_id,
        rejected.holder_id as rejected_id, rejected.kind as rejected_kind, rejected.reason as rejected_reason
      from (select $1::text collate "C" as peer_ip, ${instantSql(2)} as seen, $3::text collate "C" as protocol,
        $4::int4 as target_port, $5::text as peer_range) l ${chosenHolder}`,
    values: [canonical, at, target?.protocol.toUpperCase() ?? null, target?.port ?? null, addressRange(canonical)],
  })
  const [choice] = rows
  if (choice === undefined) return { kind: 'never-held' }
  return explain(session, canonical, choice, target)
}

async function explain(
  session: Session,
  address: string,
  choice: Choice,
  target: PortTarget | undefined,
): Promise<HolderAnswer> {
  if (choice.node_port_id !== null && target !== undefined) {
    const holder = await nodePortHolder(session, choice.node_port_id, target)
    if (holder !== undefined) return { kind: 'resolved', peerKind: 'service', holder }
  }
  if (choice.pod_id !== null) {
    const holder = await podHolder(session, address, choice.pod_id)
    if (holder?.kind === 'pod') return { kind: 'resolved', peerKind: holder.isHostNetwork ? 'node' : 'pod', holder }
  }
  if (choice.service_id !== null) {
    const holder = await serviceHolder(session, address, choice.service_id)
    if (holder !== undefined) return { kind: 'resolved', peerKind: 'service', holder }
  }
  if (choice.rejected_id === null || choice.rejected_reason === null) return { kind: 'never-held' }
  const find = choice.rejected_kind === 'service' ? serviceHolder : podHolder
  const nearest = await find(session, address, choice.rejected_id)
  return nearest === undefined ? { kind: 'never-held' } : { kind: 'rejected', nearest, reason: choice.rejected_reason }
}

type PodHolderRow = {
  readonly namespace: string
  readonly name: string
  readonly uid: string | null
  readonly workload_kind: string | null
  readonly workload_name: string | null
  readonly is_host_network: boolean
  readonly started_at: Instant | null
  readonly last_seen: Instant
  readonly is_dead: boolean
  readonly died_at: Instant | null
  readonly death_reason: DeathReason | null
}

async function podHolder(session: Session, address: string, id: number): Promise<Holder | undefined> {
  const { rows } = await session.query<PodHolderRow>({
    text: `select a.* from pod_addresses a where a.address = $1 and a.pod_id = $2::int8`,
    values: [address, id],
  })
  const [row] = rows
  if (row === undefined) return undefined
  return {
    kind: 'pod',
    namespace: row.namespace,
    name: row.name,
    uid: row.uid,
    workload: readWorkload(row.workload_kind, row.workload_name),
    isHostNetwork: row.is_host_network,
    startedAt: row.started_at,
    lastSeen: row.last_seen,
    isDead: row.is_dead,
    diedAt: row.died_at,
    deathReason: row.death_reason,
  }
}

type ServiceHolderRow = {
  readonly namespace: string
  readonly name: string
  readonly uid: string | null
  readonly address_kind?: ServiceAddressKind
  readonly created_at: Instant | null
  readonly last_seen: Instant
  readonly is_dead: boolean
  readonly died_at: Instant | null
}

async function serviceHolder(session: Session, address: string, id: number): Promise<Holder | undefined> {
  const { rows } = await session.query<ServiceHolderRow>({
    text: 'select a.* from service_addresses a where a.address = $1 and a.service_id = $2::int8',
    values: [address, id],
  })
  return rows[0] === undefined ? undefined : readServiceHolder(rows[0])
}

async function nodePortHolder(session: Session, id: number, target: PortTarget): Promise<Holder | undefined> {
  const { rows } = await session.query<ServiceHolderRow>({
    text: 'select n.* from node_ports n where n.service_id = $1::int8 and n.protocol = $2 and n.port = $3::int4',
    values: [id, target.protocol.toUpperCase(), target.port],
  })
  return rows[0] === undefined ? undefined : readServiceHolder(rows[0])
}

function readServiceHolder(row: ServiceHolderRow): Holder {
  return {
    kind: 'service',
    namespace: row.namespace,
    name: row.name,
    uid: row.uid,
    addressKind: row.address_kind ?? 'node-port',
    createdAt: row.created_at,
    lastSeen: row.last_seen,
    isDead: row.is_dead,
    diedAt: row.died_at,
  }
}

type OwnershipRow = {
  readonly kind: PeerKind
  readonly holder_id: number
  readonly namespace: string
  readonly name: string
  readonly uid: string | null
  readonly workload_kind: string | null
  readonly workload_name: string | null
  readonly address_kind: ServiceAddressKind | null
  readonly held_from: Instant
  readonly held_until: Instant | null
  readonly last_seen: Instant
  readonly is_dead: boolean
  readonly death_reason: DeathReason | 'deleted' | null
}

/** Newest first. A dead pod held its address until the last moment that the guard would allow it. */
export async function ownershipHistory(session: Session, given: string, page: PageRequest): Promise<Page<Ownership>> {
  const limit = limitOf(page)
  const address = canonicalAddress(given)
  const conditions = new Conditions()
  const held = conditions.parameter(address)
  const place = readCursor(page.cursor, ['instant', 'text', 'whole'])
  if (place !== undefined) {
    const [from, kind, id] = place
    conditions.add(
      `(held_from, kind, holder_id) < (${conditions.instant(Number(from))}, ${conditions.parameter(String(kind))}, ${conditions.parameter(Number(id))}::int8)`,
    )
  }
  const { rows } = await session.query<OwnershipRow>({
    text: `select * from (
        select case when a.is_host_network then 'node' else 'pod' end as kind, a.pod_id as holder_id, a.namespace, a.name, a.uid,
          p.workload_kind, p.workload_name, null::text as address_kind, coalesce(a.held_from, a.last_seen) as held_from,
          case when a.is_dead then a.allowed_until end as held_until, a.last_seen, a.is_dead, a.death_reason
        from pod_addresses a join pods p on p.pod_id = a.pod_id where a.address = ${held}
        union all
        select 'service', s.service_id, s.namespace, s.name, s.uid, null, null, s.address_kind, s.held_from, s.died_at, s.last_seen,
          s.is_dead, case when s.is_dead then 'deleted' end
        from service_addresses s where s.address = ${held}
      ) held ${conditions.where} order by held_from desc, kind desc, holder_id desc limit ${limit + 1}`,
    values: conditions.values,
  })
  return pageOf(rows, limit, {
    row: (row) => readOwnership(address, row),
    place: (row) => [row.held_from, row.kind, row.holder_id],
  })
}

function readOwnership(address: string, row: OwnershipRow): Ownership {
  const workload: Workload | null = readWorkload(row.workload_kind, row.workload_name)
  return {
    address,
    holder: { kind: row.kind, namespace: row.namespace, name: row.name, uid: row.uid },
    workload,
    addressKind: row.address_kind,
    heldFrom: row.held_from,
    heldUntil: row.held_until,
    lastSeen: row.last_seen,
    isDead: row.is_dead,
    deathReason: row.death_reason,
  }
}

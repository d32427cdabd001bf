/** Takes a report of a Service, or of its deletion: which addresses and node ports are its own from now on. */
import { canonicalAddress } from '#flows/address'
import type { Instant } from '#flows/instant'
import { arrayText, type Engine, type Session } from './engine'
import { endId, hashUuid, jsonOrNull, jsonText, labelsId } from './name-sets'
import { instantSql } from './pod-rows'
import { readService, type ServiceRow, serviceColumns } from './service-rows'
import type { NodePort, ServicePost, ServiceTarget, StoredService } from './store'

type Report = Omit<ServicePost, 'uid' | 'createdAt'> & {
  readonly uid: string | null
  readonly createdAt: Instant | null
  readonly nodePorts: readonly NodePort[]
  readonly seenAt: Instant
  readonly hash: string
}

export async function putService(engine: Engine, post: ServicePost, now: Instant): Promise<StoredService | undefined> {
  const report = settle(post, now)
  if (report.name.trim() === '') return undefined
  if (report.addresses.length === 0 && report.nodePorts.length === 0) return undefined
  const row = await engine.transaction((session) => record(session, report))
  return readService(row)
}

export async function deleteService(engine: Engine, target: ServiceTarget, now: Instant): Promise<number> {
  const { rows } = await engine.query<{ ended: number }>({
    text: endText('s.namespace = $2 and s.name = $3 and ($4::text is null or s.uid = $4)'),
    values: [now, target.namespace, target.name, target.uid ?? null],
  })
  return rows[0]?.ended ?? 0
}

function settle(post: ServicePost, now: Instant): Report {
  const { seenAt, ...content } = post
  const addresses = new Map(
    post.addresses
      .filter(({ address }) => address.trim() !== '' && address !== 'None')
      .map(({ address, kind }) => [canonicalAddress(address), kind]),
  )
  const known = {
    ...content,
    uid: post.uid === undefined || post.uid === null || post.uid.trim() === '' ? null : post.uid,
    createdAt: post.createdAt ?? null,
    addresses: [...addresses].map(([address, kind]) => ({ address, kind })),
    nodePorts: (post.nodePorts ?? []).map(({ protocol, port }) => ({ protocol: protocol.toUpperCase(), port })),
  }
  return { ...known, seenAt: Math.min(seenAt ?? now, now), hash: hashUuid(jsonText(known)) }
}

async function record(session: Session, report: Report): Promise<ServiceRow> {
  await session.query({
    text: 'select pg_advisory_xact_lock(hashtextextended($1, 8))',
    values: [`service ${report.namespace}/${report.name}`],
  })
  const living = await session.query<ServiceRow>({
    text: `select ${serviceColumns} from services s where namespace = $1 and name = $2 and deleted_at is null
      order by last_seen desc`,
    values: [report.namespace, report.name],
  })
  const same = living.rows.find((row) => row.uid === null || report.uid === null || row.uid === report.uid)
  const successor = same === undefined ? successorOf(living.rows, report) : undefined
  if (successor !== undefined) return recordEarlier(session, report, successor)
  for (const { service_id } of living.rows.filter((row) => row !== same)) {
    await session.query({ text: endText('s.service_id = $2::int8'), values: [report.seenAt, service_id] })
  }
  const id = await write(session, report, same)
  await endAddresses(session, report, id)
  await keepAddresses(session, report, id)
  if (report.isComplete) await endNodePorts(session, report, id)
  await keepNodePorts(session, report, id)
  return readRow(session, id)
}

async function readRow(session: Session, id: number): Promise<ServiceRow> {
  const { rows } = await session.query<ServiceRow>({
    text: `select ${serviceColumns} from services s where service_id = $1::int8`,
    values: [id],
  })
  return rows[0] as ServiceRow
}

/** When the Service that has the name now was created, if the report is of one before it; both times are the API server's. */
function successorOf(living: readonly ServiceRow[], { createdAt }: Report): Instant | undefined {
  const later = living.flatMap(({ created_at }) =>
    created_at !== null && createdAt !== null && created_at > createdAt ? [created_at] : [],
  )
  return later.length === 0 ? undefined : Math.min(...later)
}

/** A report that came late, of a Service that is gone: where it is the first of it, it is kept as that, and takes nothing from anybody. */
async function recordEarlier(session: Session, report: Report, successor: Instant): Promise<ServiceRow> {
  const known = await session.query<ServiceRow>({
    text: `select ${serviceColumns} from services s where namespace = $1 and name = $2 and uid = $3
      order by last_seen desc limit 1`,
    values: [report.namespace, report.name, report.uid],
  })
  if (known.rows[0] !== undefined) return known.rows[0]
  const told = { ...report, seenAt: Math.min(report.seenAt, successor) }
  const id = await write(session, told, undefined)
  await keepAddresses(session, told, id)
  await keepNodePorts(session, told, id)
  await session.query({ text: endText('s.service_id = $2::int8'), values: [successor, id] })
  return readRow(session, id)
}

async function write(session: Session, report: Report, same: ServiceRow | undefined): Promise<number> {
  const values = [
    report.namespace,
    report.name,
    report.uid,
    jsonOrNull(report.selector),
    await labelsId(session, report.labels),
    await labelsId(session, report.selector),
    await endId(session, { kind: 'service', namespace: report.namespace, workload: null, name: report.name }),
    jsonOrNull(report.record),
    report.hash,
    report.createdAt,
    report.seenAt,
  ]
  const { rows } =
    same === undefined
      ? await session.query<{ service_id: number }>({ text: insertText, values })
      : await session.query<{ service_id: number }>({ text: updateText, values: [...values, same.service_id] })
  return rows[0]?.service_id ?? 0
}

const insertText = `insert into services (namespace, name, uid, selector, labels_id, selector_id, end_id, record, content_hash,
    created_at, first_seen, last_seen)
  values ($1, $2, $3, $4::jsonb, $5::integer, $6::integer, $7::integer, $8::jsonb, $9, ${instantSql(10)}, ${instantSql(11)},
    ${instantSql(11)})
  returning service_id`

const updateText = `update services set uid = coalesce($3, uid), selector = coalesce($4::jsonb, selector),
    labels_id = coalesce($5::integer, labels_id), selector_id = coalesce($6::integer, selector_id), end_id = $7::integer,
    record = coalesce($8::jsonb, record), content_hash = $9, created_at = coalesce(${instantSql(10)}, created_at),
    last_seen = greatest(last_seen, ${instantSql(11)})
  where service_id = $12::int8 and namespace = $1 and name = $2 returning service_id`

/** A ClusterIP belongs to one Service at a time; external and load-balancer addresses may be shared by several. */
async function endAddresses(session: Session, report: Report, id: number): Promise<void> {
  const addresses = arrayText(report.addresses.map(({ address }) => address))
  if (report.isComplete) {
    await session.query({
      text: `update service_addresses set is_dead = true, died_at = ${instantSql(2)}
        where service_id = $1::int8 and not is_dead and address <> all($3::text[])`,
      values: [id, report.seenAt, addresses],
    })
  }
  await session.query({
    text: `update service_addresses set is_dead = true, died_at = ${instantSql(2)}
      where address = any($3::text[]) and service_id <> $1::int8 and not is_dead and address_kind = 'cluster'`,
    values: [
      id,
      report.seenAt,
      arrayText(report.addresses.filter(({ kind }) => kind === 'cluster').map(({ address }) => address)),
    ],
  })
}

async function keepAddresses(session: Session, report: Report, id: number): Promise<void> {
  const addresses = arrayText(report.addresses.map(({ address }) => address))
  await session.query({
    text: `insert into service_addresses as a (address, address_kind, service_id, namespace, name, uid, created_at, held_from, last_seen)
      select given.address, given.kind, s.service_id, s.namespace, s.name, s.uid, s.created_at,
        coalesce(s.created_at, ${instantSql(2)}), ${instantSql(2)}
      from services s, unnest($3::text[], $4::text[]) given(address, kind) where s.service_id = $1::int8
      on conflict (service_id, address) do update set address_kind = excluded.address_kind, uid = excluded.uid,
        created_at = excluded.created_at, last_seen = greatest(a.last_seen, excluded.last_seen), is_dead = false, died_at = null`,
    values: [id, report.seenAt, addresses, arrayText(report.addresses.map(({ kind }) => kind))],
  })
}

function nodePortLists({ nodePorts }: Report): readonly [string, string] {
  return [arrayText(nodePorts.map(({ protocol }) => protocol)), arrayText(nodePorts.map(({ port }) => port))]
}

async function endNodePorts(session: Session, report: Report, id: number): Promise<void> {
  await session.query({
    text: `update node_ports n set is_dead = true, died_at = ${instantSql(2)}
      where service_id = $1::int8 and not is_dead and not exists (
        select from unnest($3::text[], $4::int4[]) given(protocol, port) where given.protocol = n.protocol and given.port = n.port)`,
    values: [id, report.seenAt, ...nodePortLists(report)],
  })
}

async function keepNodePorts(session: Session, report: Report, id: number): Promise<void> {
  await session.query({
    text: `insert into node_ports as n (protocol, port, service_id, namespace, name, uid, created_at, last_seen)
      select distinct given.protocol, given.port, s.service_id, s.namespace, s.name, s.uid, s.created_at, ${instantSql(2)}
      from services s, unnest($3::text[], $4::int4[]) given(protocol, port) where s.service_id = $1::int8
      on conflict (service_id, protocol, port) do update set uid = excluded.uid, created_at = excluded.created_at,
        last_seen = greatest(n.last_seen, excluded.last_seen), is_dead = false, died_at = null`,
    values: [id, report.seenAt, ...nodePortLists(report)],
  })
}

/** Ends the living Services that fit, with all that they hold; `$1` is when. */
function endText(condition: string): string {
  return `with gone as (
      update services s set deleted_at = ${instantSql(1)} where s.deleted_at is null and ${condition} returning s.service_id
    ), addresses as (
      update service_addresses a set is_dead = true, died_at = ${instantSql(1)}
      from gone where a.service_id = gone.service_id and not a.is_dead
    ), ports as (
      update node_ports n set is_dead = true, died_at = ${instantSql(1)}
      from gone where n.service_id = gone.service_id and not n.is_dead
    ) select count(*) as ended from gone`
}

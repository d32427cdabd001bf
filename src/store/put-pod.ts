/** Takes a report of a pod: which incarnation it speaks of, what it changes, and who has gone since. */
import { canonicalAddresses } from '#flows/address'
import type { Instant } from '#flows/instant'
import { arrayText, type Engine, type Session } from './engine'
import { endId, hashUuid, jsonOrNull, jsonText, labelsId } from './name-sets'
import { instantSql, type PodRow, podColumns, readPod } from './pod-rows'
import type { PodPost, StoredPod } from './store'

/** The report with its addresses canonical, blanks gone and its time settled. */
type Report = Omit<PodPost, 'uid' | 'startedAt'> & {
  readonly uid: string | null
  readonly startedAt: Instant | null
  readonly seenAt: Instant
  readonly hash: string
}

export async function putPod(engine: Engine, post: PodPost, now: Instant): Promise<StoredPod | undefined> {
  if (post.name.trim() === '') return undefined
  const report = settle(post, now)
  const row = (await seeAgain(engine, report)) ?? (await engine.transaction((session) => record(session, report)))
  return readPod(row)
}

function settle(post: PodPost, now: Instant): Report {
  const { seenAt, ...content } = post
  const known = {
    ...content,
    uid: post.uid === undefined || post.uid === null || post.uid.trim() === '' ? null : post.uid,
    startedAt: post.startedAt ?? null,
    addresses: canonicalAddresses(post.addresses),
    hostAddresses: canonicalAddresses(post.hostAddresses ?? []),
  }
  return { ...known, seenAt: Math.min(seenAt ?? now, now), hash: hashUuid(jsonText(known)) }
}

/** The usual report says what the last one said, of a pod that lives: then only the time of the report changes. */
async function seeAgain(session: Session, { namespace, name, hash, seenAt }: Report): Promise<PodRow | undefined> {
  const { rows } = await session.query<PodRow>({
    name: 'see-pod-again',
    text: `with p as (
        update pods set last_seen = greatest(last_seen, ${instantSql(4)})
        where namespace = $1 and name = $2 and content_hash = $3 and not is_dead returning *
      ), held as (
        update pod_addresses a set last_seen = greatest(a.last_seen, p.last_seen) from p where a.pod_id = p.pod_id and not a.is_dead
      ) select ${podColumns} from p`,
    values: [namespace, name, hash, seenAt],
  })
  return rows[0]
}

async function record(session: Session, report: Report): Promise<PodRow> {
  await session.query({
    text: 'select pg_advisory_xact_lock(hashtextextended($1, 7))',
    values: [`pod ${report.namespace}/${report.name}`],
  })
  const known = await session.query<PodRow>({
    text: `select ${podColumns} from pods p where namespace = $1 and name = $2
      order by is_dead, started_at desc nulls last, last_seen desc limit 100`,
    values: [report.namespace, report.name],
  })
  const before = chooseIncarnation(known.rows, report)
  const successor = successorOf(known.rows, report, before)
  const told = successor === undefined ? report : { ...report, seenAt: Math.min(report.seenAt, successor) }
  const after = await write(session, told, before)
  await holdAddresses(session, told, after)
  await endPredecessors(session, told, after)
  await noteNode(session, told, after)
  return successor === undefined ? after : endReplaced(session, after, successor)
}

/**
 * When the living pod that has the name now started, if the report is of one before it: that came late, and its pod is gone. A pod
 * that is dead replaces nobody, so that clocks of nodes that differ put a living pod aside for no longer than that.
 */
function successorOf(known: readonly PodRow[], report: Report, before: number | undefined): Instant | undefined {
  const start = report.startedAt ?? known.find(({ pod_id }) => pod_id === before)?.started_at ?? null
  if (start === null) return undefined
  const later = known.flatMap(({ pod_id, is_dead, started_at }) =>
    pod_id !== before && !is_dead && started_at !== null && started_at > start ? [started_at] : [],
  )
  return later.length === 0 ? undefined : Math.min(...later)
}

async function endReplaced(session: Session, { pod_id }: PodRow, at: Instant): Promise<PodRow> {
  const { rows } = await session.query<PodRow>({
    text: `with p as (
        update pods set is_dead = true, died_at = ${instantSql(2)}, death_reason = 'replaced',
          allowed_until = greatest(last_seen, ${instantSql(2)})
        where pod_id = $1::int8 returning *
      ), held as (
        update pod_addresses set is_dead = true, died_at = ${instantSql(2)}, death_reason = 'replaced',
          allowed_until = greatest(last_seen, ${instantSql(2)})
        where pod_id = $1::int8 and not is_dead
      ) select ${podColumns} from p`,
    values: [pod_id, at],
  })
  return rows[0] as PodRow
}

/**
 * By uid where both sides know one. A report without a uid speaks of the incarnation with its start; without a start as well, of
 * the newest there is. A record that knew less than the report, neither uid nor start, is the same pod seen earlier.
 */
export function chooseIncarnation(
  known: readonly Pick<PodRow, 'pod_id' | 'uid' | 'started_at' | 'is_dead'>[],
  report: { readonly uid: string | null; readonly startedAt: Instant | null },
): number | undefined {
  const { uid, startedAt } = report
  const isUnnamed = (row: (typeof known)[number]): boolean => row.uid === null && !row.is_dead
  const chosen =
    uid !== null
      ? (known.find((row) => row.uid === uid) ??
        known.find(
          (row) => isUnnamed(row) && (row.started_at === null || startedAt === null || row.started_at === startedAt),
        ))
      : startedAt !== null
        ? (known.find((row) => row.started_at === startedAt) ??
          known.find((row) => row.started_at === null && !row.is_dead))
        : known[0]
  return chosen?.pod_id
}

async function write(session: Session, report: Report, before: number | undefined): Promise<PodRow> {
  const isNode = report.isHostNetwork === true
  const end = await endId(session, {
    kind: isNode ? 'node' : 'pod',
    namespace: report.namespace,
    workload: report.workload ?? null,
    name: report.workload ? null : report.name,
  })
  const key = report.uid ?? `${report.namespace}/${report.name}/${report.startedAt ?? 'unknown'}`
  const values = [
    report.namespace,
    report.name,
    report.uid,
    arrayText(report.addresses),
    report.nodeName ?? null,
    report.startedAt,
    report.isHostNetwork ?? null,
    report.workload?.kind ?? null,
    report.workload?.name ?? null,
    report.identity ?? null,
    jsonOrNull(report.selectorLabels),
    await labelsId(session, report.labels),
    end,
    jsonOrNull(report.record),
    report.hash,
    report.seenAt,
  ]
  const { rows } =
    before === undefined
      ? await session.query<PodRow>({ text: insertText, values: [...values, key] })
      : await session.query<PodRow>({ text: updateText, values: [...values, before, report.workload === undefined] })
  return rows[0] as PodRow
}

/** Two pods without uid and start may come to have one key; the later report is then of the same pod. */
const insertText = `with p as (
    insert into pods (namespace, name, uid, addresses, node_name, started_at, is_host_network, workload_kind, workload_name, identity,
      selector_labels, labels_id, end_id, record, content_hash, first_seen, last_seen, pod_key)
    values ($1, $2, $3, $4::text[], $5, ${instantSql(6)}, $7::boolean, $8, $9, $10, $11::jsonb, $12::integer, $13::integer, $14::jsonb,
      $15, ${instantSql(16)}, ${instantSql(16)}, $17)
    on conflict (pod_key) do update set addresses = excluded.addresses, content_hash = excluded.content_hash,
      last_seen = greatest(pods.last_seen, excluded.last_seen), is_dead = false, died_at = null, death_reason = null,
      allowed_until = 'infinity'
    returning *
  ) select ${podColumns} from p`

/** What the report does not say stays as it was. */
const updateText = `with p as (
    update pods set uid = coalesce($3, uid), addresses = case when $4::text[] = '{}' then addresses else $4::text[] end,
      node_name = coalesce($5, node_name), started_at = coalesce(${instantSql(6)}, started_at),
      is_host_network = coalesce($7::boolean, is_host_network),
      workload_kind = case when $18::boolean then workload_kind else $8 end,
      workload_name = case when $18::boolean then workload_name else $9 end,
      end_id = case when $18::boolean then end_id else $13::integer end,
      identity = coalesce($10, identity), selector_labels = coalesce($11::jsonb, selector_labels),
      labels_id = coalesce($12::integer, labels_id), record = coalesce($14::jsonb, record), content_hash = $15,
      last_seen = greatest(last_seen, ${instantSql(16)}), is_dead = false, died_at = null, death_reason = null,
      allowed_until = 'infinity'
    where pod_id = $17::int8 and namespace = $1 and name = $2 returning *
  ) select ${podColumns} from p`

async function holdAddresses(session: Session, report: Report, pod: PodRow): Promise<void> {
  if (report.addresses.length > 0) {
    await session.query({
      text: `update pod_addresses set is_dead = true, died_at = ${instantSql(2)}, death_reason = 'address-left',
          allowed_until = last_seen
        where pod_id = $1::int8 and not is_dead and address <> all($3::text[])`,
      values: [pod.pod_id, report.seenAt, arrayText(report.addresses)],
    })
  }
  await session.query({
    text: `insert into pod_addresses as a (address, pod_id, namespace, name, uid, workload_kind, workload_name, labels_id, end_id,
        is_host_network, started_at, held_from, last_seen)
      select given.address, p.pod_id, p.namespace, p.name, p.uid, p.workload_kind, p.workload_name, p.labels_id, p.end_id, coalesce(p.is_host_network, false), p.started_at,
        coalesce(p.started_at, ${instantSql(2)}), ${instantSql(2)}
      from pods p, unnest(p.addresses) given(address) where p.pod_id = $1::int8
      on conflict (pod_id, address) do update set uid = excluded.uid, workload_kind = excluded.workload_kind,
        workload_name = excluded.workload_name, labels_id = excluded.labels_id, end_id = excluded.end_id,
        is_host_network = excluded.is_host_network, started_at = excluded.started_at, held_from = coalesce(excluded.started_at, a.held_from),
        last_seen = greatest(a.last_seen, excluded.last_seen), is_dead = false, died_at = null, death_reason = null,
        allowed_until = 'infinity'`,
    values: [pod.pod_id, report.seenAt],
  })
}

/** A name is free again only when its pod is gone: those of before this one ended when this one started, or earlier. */
async function endPredecessors(session: Session, report: Report, pod: PodRow): Promise<void> {
  const ended = `coalesce(least(${instantSql(4)}, ${instantSql(5)}), ${instantSql(5)})`
  await session.query({
    text: `with gone as (
        update pods set is_dead = true, died_at = ${ended}, death_reason = 'replaced', allowed_until = greatest(last_seen, ${ended})
        where namespace = $1 and name = $2 and pod_id <> $3::int8 and not is_dead
          and ($4::int8 is null or started_at is null or started_at < ${instantSql(4)})
        returning pod_id
      )
      update pod_addresses a set is_dead = true, died_at = ${ended}, death_reason = 'replaced',
        allowed_until = greatest(a.last_seen, ${ended})
      from gone where a.pod_id = gone.pod_id and not a.is_dead`,
    values: [pod.namespace, pod.name, pod.pod_id, pod.started_at, report.seenAt],
  })
}

/** A host-network pod has its node's addresses. */
async function noteNode(session: Session, report: Report, pod: PodRow): Promise<void> {
  const addresses = [...(report.hostAddresses ?? []), ...(pod.is_host_network === true ? report.addresses : [])]
  if (addresses.length === 0) return
  await session.query({
    text: `insert into node_addresses (address, last_seen) select distinct address, ${instantSql(2)} from unnest($1::text[]) given(address)
      order by 1 on conflict (address) do update set last_seen = greatest(node_addresses.last_seen, excluded.last_seen)`,
    values: [arrayText(addresses), report.seenAt],
  })
}

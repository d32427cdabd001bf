/** The late pass: flows that came before their peer's pod was reported get their peer, once, within a window. */
import { type Instant, microsPerSecond, printDay } from '#flows/instant'
import { edgeBatchSql } from './edge-batch-sql'
import type { Engine } from './engine'
import { chosenHolder, flowKeySql, stampColumns } from './holder-sql'
import { type PassSession, runOnce } from './pass-lock'
import { instantSql } from './pod-rows'
import type { PassAnswer, StorePasses } from './store'

type Done = { readonly examined: number; readonly resolved: number; readonly merged: number }
type Settings = Parameters<StorePasses['lateResolve']>[1]

const mostChunkRows = 5000

/** Newest first, chunk by chunk until the window is covered: rows that never resolve keep none of the others waiting. */
export function lateResolve(engine: Engine, now: Instant, settings: Settings): Promise<PassAnswer<Done>> {
  return runOnce(engine, 'late-resolve', async (session) => {
    const total = { examined: 0, resolved: 0, merged: 0 }
    if (settings.windowSeconds <= 0) return total
    const chunkRows = Math.min(mostChunkRows, Math.max(1, settings.chunkRows ?? mostChunkRows))
    const oldest = now - settings.windowSeconds * microsPerSecond
    let place: Place | undefined
    for (;;) {
      const chunk = await resolveChunk(session, { now, oldest, chunkRows, place })
      total.examined += chunk.examined
      total.resolved += chunk.resolved
      total.merged += chunk.merged
      const { time, id, key } = chunk
      if (chunk.examined < chunkRows || time === null || id === null || key === null) return total
      place = { time, id, key }
    }
  })
}

type Place = { readonly time: Instant; readonly id: string; readonly key: string }
type Chunk = Done & { readonly [Part in keyof Place]: Place[Part] | null }

async function resolveChunk(
  session: PassSession,
  part: {
    readonly now: Instant
    readonly oldest: Instant
    readonly chunkRows: number
    readonly place: Place | undefined
  },
): Promise<Chunk> {
  const { now, oldest, chunkRows, place } = part
  const { rows } = await session.transaction(async (inside) => {
    // Rows without a peer are few until they are many, and statistics come late: a planner that expects one row compares each
    // with each, which takes half a minute. The look-ups of addresses have no other way and keep theirs.
    await inside.query({ text: 'set local enable_nestloop = off' })
    return inside.query<Chunk>({
      name: 'late-resolve',
      text: chunkText,
      values: [printDay(oldest), oldest, place?.time ?? null, place?.id ?? null, chunkRows, now, place?.key ?? null],
    })
  })
  return rows[0] ?? { examined: 0, resolved: 0, merged: 0, time: null, id: null, key: null }
}

const looked = `peer_kind, peer_namespace, peer_name, peer_uid, peer_workload_kind, peer_workload_name, peer_labels_id, peer_outcome,
  rejected_reason, rejected_kind, rejected_namespace, rejected_name, peer_end`
const kept = `day, flow_id, first_seen, last_seen, hits, pod_namespace, pod_name, pod_uid, pod_ip, pod_workload_kind, pod_workload_name,
  pod_labels_id, pod_end, direction, protocol, own_port, peer_ip, peer_port, decision, peer_range`

/** The rows of the chunk lie in one stretch of the index of those that wait. */
const waiting = `f.peer_kind is null and f.day >= $1::date
    and f.first_seen between (select min(seen) from chunk) and (select max(seen) from chunk)`

/**
 * A row that gets a peer gets another key, so it is taken out and put in again, where it may meet the same flow, stamped when it
 * arrived: then their counts are added. A row that still has none learns why, if that has changed. Edges follow both, and a row
 * that waits to be audited waits under its new key, unless it went into another, which is audited by itself.
 */
const chunkText = `
with chunk as (
  select f.*, f.first_seen as seen, case when f.direction = 'EGRESS' then f.peer_port end as target_port
  from flows f
  where f.peer_kind is null and f.peer_ip is not null and f.day >= $1::date and f.first_seen >= ${instantSql(2)}
    and ($3::int8 is null or (f.first_seen, f.flow_id, f.flow_key) < (${instantSql(3)}, $4::uuid, $7::uuid))
  order by f.first_seen desc, f.flow_id desc, f.flow_key desc limit $5::int4
), asked as (
  select distinct peer_ip, peer_range, seen, protocol, target_port from chunk
), answered as materialized (
  select l.*, ${stampColumns} from asked l ${chosenHolder}
), changed as (
  select c.day, c.flow_key, c.peer_end as old_end, ${prefixed('a', looked)}
  from chunk c join answered a on a.peer_ip = c.peer_ip and a.seen = c.seen and a.protocol = c.protocol
    and a.target_port is not distinct from c.target_port
  where a.peer_kind is not null or (a.peer_outcome, a.rejected_reason, a.rejected_namespace, a.rejected_name)
    is distinct from (c.peer_outcome, c.rejected_reason, c.rejected_namespace, c.rejected_name)
), taken as (
  delete from flows f using changed c
  where f.day = c.day and f.flow_key = c.flow_key and c.peer_kind is not null and ${waiting}
  returning ${prefixed('f', kept)}, f.flow_key as old_key, f.peer_end as old_end, ${prefixed('c', looked)}
), keyed as materialized (
  select ${flowKeySql('t')} as new_key, t.* from taken t
), stamped as (
  insert into flows as e (${kept}, flow_key, peer_resolved_at, ${looked})
  select ${kept}, new_key, ${instantSql(6)}, ${looked} from keyed order by new_key, day
  on conflict (day, flow_key) do update set hits = e.hits + excluded.hits, is_repeated = true,
    first_seen = least(e.first_seen, excluded.first_seen), last_seen = greatest(e.last_seen, excluded.last_seen)
  returning is_repeated, day, flow_key
), unqueued as (
  delete from audit_queue q using keyed k where q.day = k.day and q.flow_key = k.old_key returning k.day, k.new_key, q.scope
), requeued as (
  insert into audit_queue (day, flow_key, scope)
  select u.day, u.new_key, u.scope from unqueued u join stamped s on s.day = u.day and s.flow_key = u.new_key
  where not s.is_repeated
), explained as (
  update flows f set peer_outcome = c.peer_outcome, rejected_reason = c.rejected_reason, rejected_kind = c.rejected_kind,
    rejected_namespace = c.rejected_namespace, rejected_name = c.rejected_name, peer_end = c.peer_end
  from changed c
  where f.day = c.day and f.flow_key = c.flow_key and c.peer_kind is null and ${waiting}
  returning f.day, f.first_seen, f.last_seen, f.hits, f.pod_namespace, f.pod_name, f.pod_end, f.direction, f.protocol, f.own_port,
    f.peer_port, f.decision, c.old_end, f.peer_end
), moved as (
  select day, first_seen, last_seen, hits, pod_namespace, pod_name, pod_end, direction, protocol, own_port, peer_port, decision,
    old_end, peer_end from taken
  union all
  select day, first_seen, last_seen, hits, pod_namespace, pod_name, pod_end, direction, protocol, own_port, peer_port, decision,
    old_end, peer_end from explained
), rolled as (
  ${edgeBatchSql(`(
    select m.pod_end, m.pod_namespace, m.pod_name, m.direction, m.protocol, m.own_port, m.peer_port, m.decision, side.end_id as peer_end,
      side.seen, side.hits
    from moved m cross join lateral (values (m.old_end, m.first_seen, -m.hits), (m.peer_end, m.first_seen, m.hits),
      (m.peer_end, m.last_seen, 0)) side(end_id, seen, hits)
    where m.old_end is not null and m.old_end <> m.peer_end
  ) s`)}
)
select (select count(*) from chunk) as examined, (select count(*) from stamped) as resolved,
  (select count(*) from stamped where is_repeated) as merged, last.seen as time, last.flow_id as id, last.flow_key as key
from (select 1) one left join lateral (select seen, flow_id, flow_key from chunk order by seen, flow_id, flow_key limit 1) last on true`

function prefixed(table: string, columns: string): string {
  return columns
    .split(',')
    .map((column) => `${table}.${column.trim()}`)
    .join(', ')
}

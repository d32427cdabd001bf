/** Retention: days of flows are dropped whole, after what is still being seen is carried to a day that stays. */
import { type Instant, microsPerSecond, printDay } from '#flows/instant'
import { errorCode } from './database-failure'
import type { Engine, Session } from './engine'
import { dropDay, ensureDays, listDays, lockForPartitions, microsPerDay } from './partitions'
import { type PassSession, runOnce } from './pass-lock'
import { instantSql } from './pod-rows'
import type { PassAnswer, RetentionSettings } from './store'

type Done = { readonly droppedDays: readonly string[]; readonly carriedFlows: number; readonly deletedPods: number }

/** A batch's answer is kept as long as a client may still repeat the batch. */
const replaySeconds = 86_400

export function retain(engine: Engine, now: Instant, settings: RetentionSettings): Promise<PassAnswer<Done>> {
  return runOnce(engine, 'retain', async (session) => {
    const batchRows = Math.min(100_000, Math.max(100, settings.batchRows ?? 5000))
    const { droppedDays, carriedFlows } = await retainFlows(session, now, settings.flowDays)
    const deletedPods = await retainPods(session, now, { days: settings.podDays, batchRows })
    await deleteSome(session, 'ingest_batches', `stored_at < ${instantSql(1)}`, {
      values: [now - replaySeconds * microsPerSecond],
      batchRows,
    })
    if (settings.flowDays > 0) {
      const values = [printDay(now - settings.flowDays * microsPerDay)]
      await deleteSome(session, 'edges', 'day < $1::date', { values, batchRows })
    }
    if ((settings.verdictDays ?? 0) > 0) {
      const values = [now - (settings.verdictDays ?? 0) * microsPerDay]
      await deleteSome(session, 'audit_verdicts', `observed_at < ${instantSql(1)}`, { values, batchRows })
    }
    return { droppedDays, carriedFlows, deletedPods }
  })
}

async function retainFlows(
  session: PassSession,
  now: Instant,
  flowDays: number,
): Promise<Pick<Done, 'droppedDays' | 'carriedFlows'>> {
  const droppedDays: string[] = []
  let carriedFlows = 0
  if (flowDays <= 0) return { droppedDays, carriedFlows }
  const cutoff = printDay(now - flowDays * microsPerDay)
  const today = printDay(now)
  await ensureDays(session, [today])
  for (const day of await listDays(session)) {
    if (day >= cutoff) continue
    const carried = await dropAfterCarrying(session, day, today)
    if (carried === undefined) break
    carriedFlows += carried
    droppedDays.push(day)
  }
  return { droppedDays, carriedFlows }
}

/** Undefined when a long read holds the partition: ingest must not wait behind us, so the next pass tries again. */
async function dropAfterCarrying(session: PassSession, day: string, today: string): Promise<number | undefined> {
  try {
    return await session.transaction(async (inside) => {
      await lockForPartitions(inside)
      await inside.query({ text: `set local lock_timeout = '5s'` })
      await inside.query({ text: 'set local statement_timeout = 0' })
      const carried = await carry(inside, day, today)
      await dropDay(inside, day)
      return carried
    })
  } catch (error) {
    if (errorCode(error) === '55P03') return undefined
    throw error
  }
}

/**
 * A flow is still being seen when the pod that it was observed at lives, or was only not heard of and has its record yet, as after a
 * time in which no broker ran, and no newer row says the same of the same workload. A
 * node or nobody as the peer is never superseded: there the address is all there is. Where a newer day has the same flow, the two
 * become one row there.
 */
async function carry(session: Session, day: string, today: string): Promise<number> {
  const newer = (await listDays(session)).filter((one) => one > day)
  const { affected } = await session.query({
    text: `insert into flows as f (${carriedColumns}, day)
      select ${carriedColumns}, coalesce((
          select max(d.day) from unnest($2::date[]) d(day)
          where exists (select from flows n where n.day = d.day and n.flow_key = o.flow_key)
        ), $3::date)
      from flows o
      where o.day = $1::date
        and exists (select from pods p where (not p.is_dead or p.death_reason = 'stale') and p.namespace = o.pod_namespace and p.name = o.pod_name
          and (o.pod_uid is null or p.uid is null or p.uid = o.pod_uid)
          and (p.started_at is null or p.started_at <= o.last_seen))
        and not (coalesce(o.peer_kind in ('pod', 'service'), false) and exists (
          select from flows n where n.day > $1::date and n.pod_name = o.pod_name and n.pod_namespace = o.pod_namespace
            and (n.pod_uid is null or o.pod_uid is null or n.pod_uid = o.pod_uid)
            and n.direction = o.direction and n.protocol = o.protocol and n.decision = o.decision
            and case o.direction when 'INGRESS' then n.own_port is not distinct from o.own_port
              else n.peer_port is not distinct from o.peer_port end
            and n.peer_kind in ('pod', 'service') and n.peer_namespace = o.peer_namespace
            and coalesce(n.peer_workload_name, n.peer_name) = coalesce(o.peer_workload_name, o.peer_name)
            and n.first_seen > o.first_seen))
      order by flow_key
      on conflict (day, flow_key) do update set hits = f.hits + excluded.hits, is_repeated = true,
        first_seen = least(f.first_seen, excluded.first_seen), last_seen = greatest(f.last_seen, excluded.last_seen)`,
    values: [day, `{${newer.join(',')}}`, today],
  })
  return affected
}

const carriedColumns = `flow_key, flow_id, first_seen, last_seen, hits, pod_namespace, pod_name, pod_uid, pod_ip, direction, protocol,
  own_port, peer_ip, peer_port, decision, peer_range, is_repeated, pod_workload_kind, pod_workload_name, pod_labels_id, peer_kind,
  peer_namespace, peer_name, peer_uid, peer_workload_kind, peer_workload_name, peer_resolved_at, peer_labels_id, peer_outcome,
  rejected_reason, rejected_kind, rejected_namespace, rejected_name, pod_end, peer_end`

/** Dead pods, deleted Services, and node addresses that no pod has shown for as long. */
async function retainPods(
  session: PassSession,
  now: Instant,
  settings: { readonly days: number; readonly batchRows: number },
): Promise<number> {
  if (settings.days <= 0) return 0
  const how = { values: [now - settings.days * microsPerDay], batchRows: settings.batchRows }
  await deleteSome(session, 'services', `deleted_at < ${instantSql(1)}`, how)
  await deleteSome(session, 'node_addresses', `last_seen < ${instantSql(1)}`, how)
  return deleteSome(session, 'pods', `is_dead and allowed_until < ${instantSql(1)}`, how)
}

/** In batches, so that no lock is held for long. */
async function deleteSome(
  session: Session,
  table: 'pods' | 'services' | 'node_addresses' | 'ingest_batches' | 'edges' | 'audit_verdicts',
  condition: string,
  { values, batchRows }: { readonly values: readonly (string | number)[]; readonly batchRows: number },
): Promise<number> {
  let deleted = 0
  for (;;) {
    const { affected } = await session.query({
      text: `delete from ${table} where ctid = any(array(select ctid from ${table} where ${condition} limit ${batchRows})) and ${condition}`,
      values,
    })
    deleted += affected
    if (affected < batchRows) return deleted
  }
}

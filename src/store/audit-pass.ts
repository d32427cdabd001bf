/**
 * The audit pass: flows that wait are judged, chunk by chunk. A chunk's verdicts and counters are written, and its flows taken
 * from the queue, in one transaction, so that each flow is judged once, whoever is killed, and by how many brokers.
 */
import { type Instant, microsPerSecond, printDay } from '#flows/instant'
import { keyLists, readAuditObjects } from './audit-objects'
import type { AuditObjects, AuditPassDone, AuditPassSettings, JudgedFlows, WaitingFlow } from './audit-store'
import { arrayText, type Engine, type Session } from './engine'
import { hashUuid } from './name-sets'
import { microsPerDay } from './partitions'
import { type PassSession, runOnce } from './pass-lock'
import { instantSql } from './pod-rows'
import { type FlowRow, flowColumns, readFlow } from './read-flows'
import type { PassAnswer } from './store'

const usualChunkRows = 2000

export function auditPass(
  engine: Engine,
  now: Instant,
  settings: AuditPassSettings,
): Promise<PassAnswer<AuditPassDone>> {
  return runOnce(engine, 'audit', async (session) => {
    const done = { judged: 0, verdicts: 0, lost: 0 }
    await backfill(session, now)
    let objects = await readAuditObjects(session)
    if (!objects.objects.some(({ semantics }) => semantics !== '')) return done
    let judge: Awaited<ReturnType<AuditPassSettings['prepare']>> | undefined
    const chunkRows = settings.chunkRows ?? usualChunkRows
    for (let last = 0; ; ) {
      const waiting = await readWaiting(session, { last, chunkRows, dueBefore: dueBefore(now, settings) })
      if (waiting.length === 0) break
      judge ??= await settings.prepare(objects)
      const judged = judge(waiting)
      if (!(await record(session, { objects, waiting, judged, now }))) {
        // Policies have changed, or somebody else took these flows: they are looked at anew.
        objects = await readAuditObjects(session)
        judge = undefined
        if (objects.objects.length === 0) break
        continue
      }
      done.judged += waiting.filter(({ flow }) => flow !== undefined).length
      done.lost += waiting.filter(({ flow }) => flow === undefined).length
      done.verdicts += judged.verdicts.length
      last = waiting.at(-1)?.queueId ?? last
    }
    if (done.judged > 0) await pruneOffenders(session)
    return done
  })
}

function dueBefore(now: Instant, { windowSeconds }: AuditPassSettings): Instant {
  return now - windowSeconds * microsPerSecond
}

/**
 * A flow that is seen again and again has a row since the morning and never comes into the queue again: for a new policy the
 * rows of the last 24 hours are put there once. Done here and not when the policy is put, so that flows that were arriving then are there.
 */
async function backfill(session: PassSession, now: Instant): Promise<void> {
  await session.transaction(async (inside) => {
    const { rows } = await inside.query<{ backfill_from: number | null }>({
      text: 'select backfill_from from audit_state for update',
    })
    const from = rows[0]?.backfill_from ?? null
    if (from === null) return
    await inside.query({
      text: `insert into audit_queue (day, flow_key, scope) select f.day, f.flow_key, $2::int8 from flows f
        where f.day >= $1::date and f.last_seen >= ${instantSql(3)}
          and not exists (select from audit_queue q where q.day = f.day and q.flow_key = f.flow_key)`,
      values: [printDay(now - microsPerDay), from, now - microsPerDay],
    })
    await inside.query({ text: 'update audit_state set backfill_from = null' })
  })
}

type Wanted = { readonly last: number; readonly chunkRows: number; readonly dueBefore: Instant }

type WaitingRow = FlowRow & { readonly queue_id: number; readonly scope: number; readonly found: boolean }

async function readWaiting(
  session: Session,
  { last, chunkRows, dueBefore: due }: Wanted,
): Promise<readonly WaitingFlow[]> {
  const { rows } = await session.query<WaitingRow>({
    text: `select q.queue_id, q.scope, f.flow_id is not null as found, ${flowColumns}
      from audit_queue q left join flows f on f.day = q.day and f.flow_key = q.flow_key
      where q.queue_id > $1::int8
        and (f.flow_id is null or f.peer_kind is not null or f.peer_ip is null or f.first_seen < ${instantSql(2)})
      order by q.queue_id limit ${Math.trunc(chunkRows)}`,
    values: [last, due],
  })
  return rows.map((row) => ({
    queueId: row.queue_id,
    scope: row.scope,
    flow: row.found ? readFlow(row) : undefined,
  }))
}

type Chunk = {
  readonly objects: AuditObjects
  readonly waiting: readonly WaitingFlow[]
  readonly judged: JudgedFlows
  readonly now: Instant
}

class Stale extends Error {}

/** False when nothing was written. */
async function record(session: PassSession, chunk: Chunk): Promise<boolean> {
  try {
    await session.transaction((inside) => write(inside, chunk))
    return true
  } catch (error) {
    if (error instanceof Stale) return false
    throw error
  }
}

async function write(session: Session, { objects, waiting, judged, now }: Chunk): Promise<void> {
  const { rows } = await session.query<{ generation: number }>({
    text: 'select generation from audit_state for share',
  })
  if (rows[0]?.generation !== objects.generation) throw new Stale()
  const { affected } = await session.query({
    text: 'delete from audit_queue where queue_id = any($1::int8[])',
    values: [arrayText(waiting.map(({ queueId }) => queueId))],
  })
  if (affected !== waiting.length) throw new Stale()
  await addVerdicts(session, judged.verdicts)
  await addCounts(session, judged, now)
}

async function addVerdicts(session: Session, verdicts: JudgedFlows['verdicts']): Promise<void> {
  if (verdicts.length === 0) return
  const list = (pick: (verdict: JudgedFlows['verdicts'][number]) => string | number | null): string =>
    arrayText(verdicts.map(pick))
  await session.query({
    text: `insert into audit_verdicts (policy_uid, policy_namespace, policy_name, direction, src_namespace, src_pod,
        dst_namespace, dst_pod, dst_port, protocol, reason, observed_at, verdict)
      select u, ns, n, d, sn, sp, dn, dp, port, p, r, timestamptz 'epoch' + t * interval '1 microsecond', v
      from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
        $9::int4[], $10::text[], $11::text[], $12::int8[], $13::text[]) as x(u, ns, n, d, sn, sp, dn, dp, port, p, r, t, v)`,
    values: [
      list(({ policyUid }) => policyUid),
      list(({ policyNamespace }) => policyNamespace),
      list(({ policyName }) => policyName),
      list(({ direction }) => direction),
      list(({ source }) => source.namespace),
      list(({ source }) => source.pod),
      list(({ destination }) => destination.namespace),
      list(({ destination }) => destination.pod),
      list(({ destination }) => destination.port),
      list(({ protocol }) => protocol),
      list(({ reason }) => reason),
      list(({ observedAt }) => observedAt),
      list(({ verdict }) => verdict),
    ],
  })
}

async function addCounts(session: Session, { sets, policies, offenders }: JudgedFlows, now: Instant): Promise<void> {
  await session.query({
    text: `insert into audit_sets as s (semantics, evaluated, allowed, would_deny, unknown, dropped, judged_at)
      select x.*, ${instantSql(7)} from unnest($1::text[], $2::int8[], $3::int8[], $4::int8[], $5::int8[], $6::int8[]) x
      on conflict (semantics) do update set evaluated = s.evaluated + excluded.evaluated, allowed = s.allowed + excluded.allowed,
        would_deny = s.would_deny + excluded.would_deny, unknown = s.unknown + excluded.unknown,
        dropped = s.dropped + excluded.dropped, judged_at = excluded.judged_at`,
    values: [
      arrayText(sets.map(({ semantics }) => semantics)),
      arrayText(sets.map(({ evaluated }) => evaluated)),
      arrayText(sets.map(({ allowed }) => allowed)),
      arrayText(sets.map(({ wouldDeny }) => wouldDeny)),
      arrayText(sets.map(({ unknown }) => unknown)),
      arrayText(sets.map(({ dropped }) => dropped)),
      now,
    ],
  })
  await session.query({
    text: `insert into audit_counters as c (kind, namespace, name, evaluated, allowed, would_deny)
      select * from unnest($1::text[], $2::text[], $3::text[], $4::int8[], $5::int8[], $6::int8[])
      on conflict (kind, namespace, name) do update set evaluated = c.evaluated + excluded.evaluated,
        allowed = c.allowed + excluded.allowed, would_deny = c.would_deny + excluded.would_deny`,
    values: [
      ...keyLists(policies),
      arrayText(policies.map(({ evaluated }) => evaluated)),
      arrayText(policies.map(({ allowed }) => allowed)),
      arrayText(policies.map(({ wouldDeny }) => wouldDeny)),
    ],
  })
  await session.query({
    text: `insert into audit_offenders as o (kind, namespace, name, peer, peer_hash, flows, last_seen)
      select k, ns, n, p, h, f, timestamptz 'epoch' + t * interval '1 microsecond'
      from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::uuid[], $6::int8[], $7::int8[]) as x(k, ns, n, p, h, f, t)
      on conflict (kind, namespace, name, peer_hash) do update set flows = o.flows + excluded.flows,
        last_seen = greatest(o.last_seen, excluded.last_seen)`,
    values: [
      ...keyLists(offenders),
      arrayText(offenders.map(({ peer }) => peer)),
      arrayText(offenders.map(({ peer }) => hashUuid(peer))),
      arrayText(offenders.map(({ flows }) => flows)),
      arrayText(offenders.map(({ lastSeen }) => lastSeen)),
    ],
  })
}

/** Scanners of a port bring a new address each time: of one policy so many peers are kept, those with most flows. */
const mostPeers = 1000

async function pruneOffenders(session: Session): Promise<void> {
  await session.query({
    text: `delete from audit_offenders o using (
        select kind, namespace, name, peer_hash, row_number() over (partition by kind, namespace, name
          order by flows desc, last_seen desc, peer) as place from audit_offenders
      ) ranked
      where ranked.place > ${mostPeers} and o.kind = ranked.kind and o.namespace = ranked.namespace and o.name = ranked.name
        and o.peer_hash = ranked.peer_hash`,
  })
}

/** The ends of pods: told by whoever saw them go, or taken from their silence. */
import { canonicalAddress } from '#flows/address'
import { type Instant, microsPerSecond } from '#flows/instant'
import type { Engine } from './engine'
import { type PassSession, runOnce } from './pass-lock'
import { instantSql } from './pod-rows'
import type { DeadMark, PassAnswer } from './store'

export async function markDead(engine: Engine, mark: DeadMark, now: Instant): Promise<number> {
  if (mark.name.trim() === '') return 0
  const address = mark.address === undefined || mark.address.trim() === '' ? null : canonicalAddress(mark.address)
  const { rows } = await engine.query<{ died: number }>({
    text: `with gone as (
        update pods p set is_dead = true, died_at = ${instantSql(5)}, death_reason = 'marked',
          allowed_until = greatest(p.last_seen, ${instantSql(5)})
        where p.name = $1 and not p.is_dead and ($2::text is null or p.namespace = $2) and ($3::text is null or p.uid = $3)
          and ($4::text is null or exists (
            select from pod_addresses a where a.pod_id = p.pod_id and a.address = $4 and not a.is_dead))
        returning p.pod_id
      ), held as (
        update pod_addresses a set is_dead = true, died_at = ${instantSql(5)}, death_reason = 'marked',
          allowed_until = greatest(a.last_seen, ${instantSql(5)})
        from gone where a.pod_id = gone.pod_id and not a.is_dead
      ) select count(*) as died from gone`,
    values: [mark.name, mark.namespace ?? null, mark.uid ?? null, address, now],
  })
  return rows[0]?.died ?? 0
}

/** Pods that nobody has reported for too long die, and come back with the next report; when they were last seen stays. */
export function sweepStale(
  engine: Engine,
  now: Instant,
  settings: { readonly staleSeconds: number },
): Promise<PassAnswer<{ readonly died: number }>> {
  return runOnce(engine, 'sweep-stale', async (session) => {
    let died = 0
    if (settings.staleSeconds <= 0) return { died }
    const before = now - settings.staleSeconds * microsPerSecond
    for (;;) {
      const swept = await sweepSome(session, now, before)
      died += swept
      if (swept < chunkRows) return { died }
    }
  })
}

const chunkRows = 5000

async function sweepSome(session: PassSession, now: Instant, before: Instant): Promise<number> {
  const { rows } = await session.query<{ died: number }>({
    text: `with gone as (
        update pods p set is_dead = true, died_at = ${instantSql(1)}, death_reason = 'stale', allowed_until = p.last_seen
        where p.pod_id in (select pod_id from pods where not is_dead and last_seen < ${instantSql(2)} limit ${chunkRows})
          and not p.is_dead and p.last_seen < ${instantSql(2)}
        returning p.pod_id
      ), held as (
        update pod_addresses a set is_dead = true, died_at = ${instantSql(1)}, death_reason = 'stale', allowed_until = a.last_seen
        from gone where a.pod_id = gone.pod_id and not a.is_dead
      ) select count(*) as died from gone`,
    values: [now, before],
  })
  return rows[0]?.died ?? 0
}

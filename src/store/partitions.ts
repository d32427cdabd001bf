/** Partitions of the flows: one a UTC day, made ahead of time and on demand, dropped whole. */
import { invariant } from '#base/invariant'
import { type Instant, microsPerSecond, printDay } from '#flows/instant'
import type { Engine, Session } from './engine'
import { lockForTransaction } from './pass-lock'

export const microsPerDay = 86_400 * microsPerSecond

/** Makes the partitions that are missing; returns how many were. */
export async function ensureDays(
  engine: Pick<Engine, 'transaction' | 'query'>,
  days: readonly string[],
): Promise<number> {
  const there = new Set(await listDays(engine))
  const missing = [...new Set(days)].filter((day) => !there.has(day)).sort()
  let made = 0
  for (const day of missing) made += await engine.transaction((session) => makePartition(session, day))
  return made
}

export function daysFrom(now: Instant, count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => printDay(now + index * microsPerDay))
}

/** The days that have a partition, oldest first. */
export async function listDays(session: Session): Promise<readonly string[]> {
  const { rows } = await session.query<{ relname: string }>({
    text: `select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
      where i.inhparent = 'flows'::regclass order by c.relname`,
  })
  return rows.map(({ relname }) => relname.replace(/^flows_(\d{4})(\d\d)(\d\d)$/, '$1-$2-$3'))
}

export async function dropDay(session: Session, day: string): Promise<void> {
  await session.query({ text: `drop table if exists ${partitionName(day)}` })
}

/** The name is built of digits alone: SQL has no parameters for names. */
export function partitionName(day: string): string {
  invariant(/^\d{4}-\d\d-\d\d$/.test(day), 'a day is written as 2026-07-23')
  return `flows_${day.replaceAll('-', '')}`
}

export function lockForPartitions(session: Session): Promise<void> {
  return lockForTransaction(session, 'partitions')
}

/** Attached rather than created in place: that takes a lock which lets the other partitions be written meanwhile. */
async function makePartition(session: Session, day: string): Promise<number> {
  await lockForPartitions(session)
  const name = partitionName(day)
  const { rows } = await session.query({
    text: 'select to_regclass($1) as found where to_regclass($1) is not null',
    values: [name],
  })
  if (rows.length > 0) return 0
  // Room for updates in place: a row's counts change while its keys do not.
  await session.query({
    text: `create table ${name} (like flows including defaults including constraints) with (fillfactor = 90)`,
  })
  await session.query({
    text: `alter table flows attach partition ${name} for values from ('${day}') to ('${nextDay(day)}')`,
  })
  return 1
}

function nextDay(day: string): string {
  return new Date(Date.parse(`${day}T00:00:00Z`) + 86_400_000).toISOString().slice(0, 10)
}

/** Passes run once at a time: by an advisory lock among brokers of one PostgreSQL, by a list of names in one process. */
import { type Engine, inTransaction, type Session } from './engine'
import type { PassAnswer } from './store'

/** Advisory locks are numbers; these are this product's in a database that others may share. */
const lockClass = 1_886_351_476
const lockNumbers = {
  partitions: 1,
  'late-resolve': 2,
  'sweep-stale': 3,
  retain: 4,
  'fold-edges': 5,
  vacuum: 6,
  'ensure-partitions': 7,
  audit: 8,
} as const

export type LockName = keyof typeof lockNumbers

/** What a pass works with: on PostgreSQL the connection that holds the lock, so that a lost lock ends the work. */
export type PassSession = Session & Pick<Engine, 'transaction'>

const running = new WeakMap<Engine, Set<LockName>>()

export async function runOnce<Done>(
  engine: Engine,
  name: LockName,
  work: (session: PassSession) => Promise<Done>,
): Promise<PassAnswer<Done>> {
  return engine.kind === 'embedded' ? runAlone(engine, name, work) : runLocked(engine, name, work)
}

export async function lockForTransaction(session: Session, name: LockName): Promise<void> {
  await session.query({
    text: 'select pg_advisory_xact_lock($1::int4, $2::int4)',
    values: [lockClass, lockNumbers[name]],
  })
}

/** The embedded database has one connection, which a pass must not keep from the rest of the broker. */
async function runAlone<Done>(
  engine: Engine,
  name: LockName,
  work: (session: PassSession) => Promise<Done>,
): Promise<PassAnswer<Done>> {
  const names = running.get(engine) ?? new Set()
  running.set(engine, names)
  if (names.has(name)) return { kind: 'held-elsewhere' }
  names.add(name)
  try {
    return { kind: 'done', done: await work(engine) }
  } finally {
    names.delete(name)
  }
}

function runLocked<Done>(
  engine: Engine,
  name: LockName,
  work: (session: PassSession) => Promise<Done>,
): Promise<PassAnswer<Done>> {
  return engine.session(async (session) => {
    const values = [lockClass, lockNumbers[name]]
    const { rows } = await session.query<{ locked: boolean }>({
      text: 'select pg_try_advisory_lock($1::int4, $2::int4) as locked',
      values,
    })
    if (rows[0]?.locked !== true) return { kind: 'held-elsewhere' }
    try {
      const done = await work({ query: session.query, transaction: (inside) => inTransaction(session, inside) })
      return { kind: 'done', done }
    } finally {
      // A connection that is gone has let go of its locks.
      await session.query({ text: 'select pg_advisory_unlock($1::int4, $2::int4)', values }).catch(() => undefined)
    }
  })
}

/** What both databases offer the rest of this room: statements, transactions and sessions. */

import type { Failure } from '#base/failure'

/** Lists go as array literals; `arrayText` writes them. Objects go as JSON text. */
export type Value = string | number | boolean | null

export type Statement = {
  readonly text: string
  readonly values?: readonly Value[]
  /** Statements with a name are planned once a connection, where the engine can. */
  readonly name?: string
}

export type Answer<Row> = { readonly rows: readonly Row[]; readonly affected: number }

/** One connection: statements run one after the other. */
export type Session = {
  readonly query: <Row = Readonly<Record<string, unknown>>>(statement: Statement) => Promise<Answer<Row>>
}

export type Engine = Session & {
  readonly kind: 'embedded' | 'postgres'
  /** The same connection for as long as the work takes. */
  readonly session: <Result>(work: (session: Session) => Promise<Result>) => Promise<Result>
  /** Commits what the work did, or nothing of it. */
  readonly transaction: <Result>(work: (session: Session) => Promise<Result>) => Promise<Result>
  /** For large batches: few connections of their own. More at once are slower, and reads need not wait behind them. */
  readonly bulk: Pick<Engine, 'query' | 'transaction'>
  /** Resolves when the database answers, without waiting for the work before it. */
  readonly ping: () => Promise<void>
  /** Resolves when the database has ended for good and only another process can open it again. */
  readonly lost: Promise<Failure>
  readonly gauges: () => { readonly idle: number; readonly waiting: number; readonly max: number }
  readonly close: () => Promise<void>
}

export async function inTransaction<Result>(
  session: Session,
  work: (session: Session) => Promise<Result>,
): Promise<Result> {
  await session.query({ text: 'begin' })
  try {
    const result = await work(session)
    await session.query({ text: 'commit' })
    return result
  } catch (error) {
    // The connection may be what failed; the first reason is the one to tell.
    await session.query({ text: 'rollback' }).catch(() => undefined)
    throw error
  }
}

/** A list as PostgreSQL reads it; quicker than what the drivers write, and the same for both. */
export function arrayText(items: readonly (string | number | boolean | null)[]): string {
  const parts = items.map((item) => (item === null ? 'NULL' : typeof item === 'string' ? quoted(item) : item))
  return `{${parts.join(',')}}`
}

function quoted(text: string): string {
  return /["\\]/.test(text) ? `"${text.replace(/["\\]/g, '\\$&')}"` : `"${text}"`
}

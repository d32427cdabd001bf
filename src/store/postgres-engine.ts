/** PostgreSQL by a pool of connections. */
import { Client, Pool, type PoolClient, types } from 'pg'
import { columnParsers } from './column-parsers'
import { asFailure } from './database-failure'
import { type Answer, type Engine, inTransaction, type Session, type Statement } from './engine'

export type PostgresOptions = {
  readonly database: string
  readonly poolSize: number
  /** How many batches are stored at once, each on a connection besides `poolSize`. */
  readonly batchConnections: number
  readonly statementTimeoutMillis: number
}

type Queryable = Pick<PoolClient, 'query'>

/** pg's own parsers for every other type. */
const typeParsers = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    format === 'binary' ? types.getTypeParser(oid, 'binary') : (columnParsers[oid] ?? types.getTypeParser(oid)),
}

export function openPostgres(options: PostgresOptions): Engine {
  const pool = openPool(options, options.poolSize)
  const bulk = openPool(options, options.batchConnections)
  // Health is asked when the pool is busiest, so it does not wait in its queue.
  const pinging = new Pool({
    connectionString: options.database,
    max: 1,
    connectionTimeoutMillis: 2000,
    application_name: 'portolan-health',
    query_timeout: 2000,
  })
  pinging.on('error', () => undefined)
  return {
    kind: 'postgres',
    ...statementsOn(pool),
    session: (work) => withClient(pool, work),
    bulk: statementsOn(bulk),
    ping: async () => {
      await ask(pinging as Queryable, { text: 'select 1' })
    },
    // A server that is away may come back.
    lost: new Promise(() => undefined),
    gauges: () => ({
      idle: pool.idleCount + bulk.idleCount,
      waiting: pool.waitingCount + bulk.waitingCount,
      max: options.poolSize + options.batchConnections,
    }),
    close: async () => {
      await Promise.all([pool.end(), bulk.end(), pinging.end()])
    },
  }
}

function openPool({ database, statementTimeoutMillis }: PostgresOptions, max: number): Pool {
  const pool = new Pool({
    connectionString: database,
    max,
    connectionTimeoutMillis: 5000,
    idleTimeoutMillis: 60_000,
    keepAlive: true,
    application_name: 'portolan',
    types: typeParsers as never,
    // The pool waits for what this returns, which its types do not say.
    onConnect: (client) => client.query(sessionSettings(statementTimeoutMillis)),
  })
  // An idle connection that breaks is thrown away by the pool; without a listener the process would end.
  pool.on('error', () => undefined)
  pool.on('connect', (client) => {
    client.on('error', () => undefined)
  })
  return pool
}

function statementsOn(pool: Pool): Engine['bulk'] {
  return {
    query: (statement) => ask(pool as Queryable, statement),
    transaction: (work) => withClient(pool, (session) => inTransaction(session, work)),
  }
}

/** A connection of its own that waits for notifications; `onLost` is called once when it breaks. */
export async function openListener(
  database: string,
  channel: string,
  on: { readonly payload: (text: string) => void; readonly lost: () => void },
): Promise<{ readonly close: () => Promise<void> }> {
  const client = new Client({ connectionString: database, application_name: listenerName, keepAlive: true })
  let isClosing = false
  const lose = (): void => {
    if (isClosing) return
    isClosing = true
    on.lost()
  }
  client.on('error', lose)
  client.on('end', lose)
  client.on('notification', (message) => on.payload(message.payload ?? ''))
  try {
    await client.connect()
    await client.query(`listen ${channel}`)
  } catch (error) {
    isClosing = true
    await client.end().catch(() => undefined)
    throw asFailure(error)
  }
  return {
    close: async () => {
      isClosing = true
      await client.end().catch(() => undefined)
    },
  }
}

/** Brokers look for connections of this name to know whether anybody listens. */
export const listenerName = 'portolan-listen'

function sessionSettings(statementTimeoutMillis: number): string {
  const timeout = Math.max(0, Math.trunc(statementTimeoutMillis))
  return `set timezone = 'UTC'; set work_mem = '64MB'; set statement_timeout = ${timeout}; set jit = off`
}

async function withClient<Result>(pool: Pool, work: (session: Session) => Promise<Result>): Promise<Result> {
  const client = await pool.connect().catch((error: unknown) => {
    throw asFailure(error)
  })
  let isBroken = false
  const session: Session = {
    query: async (statement) => {
      try {
        return await ask(client, statement)
      } catch (error) {
        isBroken ||= error instanceof Error && !('severity' in error && error.severity === 'ERROR')
        throw error
      }
    },
  }
  try {
    return await work(session)
  } finally {
    client.release(isBroken)
  }
}

async function ask<Row>(on: Queryable, { text, values, name }: Statement): Promise<Answer<Row>> {
  try {
    const query = { text, values: values === undefined ? [] : [...values], ...(name === undefined ? {} : { name }) }
    const answer = await on.query(query)
    return { rows: answer.rows as Row[], affected: answer.rowCount ?? 0 }
  } catch (error) {
    throw asFailure(error)
  }
}

/** Kysely over this room's engines, for the migrations: the same ones, by the same code, on both databases. */
import {
  CompiledQuery,
  type DatabaseConnection,
  type Driver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type QueryResult,
} from 'kysely'
import type { Session, Value } from './engine'

/** Of one session: a migration runs in one transaction on one connection. */
export function kyselyOf(session: Session): Kysely<unknown> {
  return new Kysely<unknown>({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => new SessionDriver(session),
      createIntrospector: (database) => new PostgresIntrospector(database),
      createQueryCompiler: () => new PostgresQueryCompiler(),
    },
  })
}

class SessionDriver implements Driver {
  readonly #connection: DatabaseConnection
  constructor(session: Session) {
    this.#connection = connectionOf(session)
  }
  async init(): Promise<void> {}
  async acquireConnection(): Promise<DatabaseConnection> {
    return this.#connection
  }
  async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('begin'))
  }
  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('commit'))
  }
  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('rollback'))
  }
  async releaseConnection(): Promise<void> {}
  async destroy(): Promise<void> {}
}

function connectionOf(session: Session): DatabaseConnection {
  return {
    async executeQuery<Row>({ sql, parameters }: CompiledQuery): Promise<QueryResult<Row>> {
      const answer = await session.query<Row>({ text: sql, values: parameters as readonly Value[] })
      return { rows: [...answer.rows], numAffectedRows: BigInt(answer.affected) }
    },
    // Migrations stream nothing.
    async *streamQuery<Row>(): AsyncIterableIterator<QueryResult<Row>> {},
  }
}

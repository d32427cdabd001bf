/** Brings a database's schema up to date; several brokers that start at once wait for one of them. */
import { Migrator } from 'kysely'
import { Failure } from '#base/failure'
import { asFailure } from './database-failure'
import type { Engine } from './engine'
import { kyselyOf } from './kysely-dialect'
import { migrations } from './migrations'

/** `until` names the last step to take, for a database as an older version left it. */
export async function migrate(engine: Engine, until?: string): Promise<readonly string[]> {
  return engine.session(async (session) => {
    const before = await session.query<{ statement_timeout: string }>({ text: 'show statement_timeout' })
    await session.query({ text: 'set statement_timeout = 0' })
    try {
      const migrator = new Migrator({
        db: kyselyOf(session),
        provider: { getMigrations: async () => ({ ...migrations }) },
      })
      const { error, results } =
        until === undefined ? await migrator.migrateToLatest() : await migrator.migrateTo(until)
      if (error !== undefined) throw explain(error)
      return (results ?? []).map((result) => result.migrationName)
    } finally {
      const values = [before.rows[0]?.statement_timeout ?? '0']
      await session.query({ text: `select set_config('statement_timeout', $1, false)`, values })
    }
  })
}

function explain(error: unknown): unknown {
  const failure = asFailure(error)
  if (failure instanceof Failure) return failure
  const reason = error instanceof Error ? error.message : String(error)
  return new Failure('database-refused', `the schema could not be brought up to date: ${reason}`, error)
}

/** A PostgreSQL of the bench’s own, with the broker’s schema, and room enough not to be what is measured. */
import type { Engine } from '#store/engine'
import { migrate } from '#store/migrate'
import { openPostgres } from '#store/postgres-engine'
import { findPostgres, startPostgres } from '../test/store/postgres'

export type BenchRows = readonly (readonly string[])[]

export type BenchDatabase = { readonly engine: Engine; readonly url: string }

type Bench = { readonly subject: string; readonly connections: number; readonly say: (sentence: string) => void }

/** What the work returns, or no rows with a sentence why `subject` is not measured. */
export async function onPostgres(
  { subject, connections, say }: Bench,
  work: (database: BenchDatabase) => Promise<BenchRows>,
): Promise<BenchRows> {
  const found = findPostgres()
  if (!found.ok) {
    say(`${subject} not measured: ${found.reason}`)
    return []
  }
  const postgres = await startPostgres(['shared_buffers=512MB', 'max_wal_size=4GB', 'checkpoint_timeout=30min'])
  const engine = openPostgres({
    database: postgres.url(),
    poolSize: connections,
    batchConnections: 2,
    statementTimeoutMillis: 0,
  })
  try {
    await migrate(engine)
    return await work({ engine, url: postgres.url() })
  } finally {
    await engine.close()
    postgres.remove()
  }
}

/** The two databases that every suite of the broker runs on. */
import { afterAll, beforeAll, describe } from 'vitest'
import { findPostgres, startPostgres, type TestPostgres } from '../store/postgres'
import { openBroker, type TestBroker, type TestBrokerOptions } from './running-broker'

const engines = ['embedded', 'postgres'] as const

/** A suite for each engine, with a broker of its own whose clock stands still; skipped, with the reason, where there is no PostgreSQL. */
export function describeBroker(options: TestBrokerOptions, suite: (broker: () => TestBroker) => void): void {
  const found = findPostgres()
  for (const engine of engines) {
    const isMissing = engine === 'postgres' && !found.ok
    const title = isMissing ? `${engine}: ${found.reason}` : engine
    describe.skipIf(isMissing)(title, () => {
      let server: TestPostgres | undefined
      let broker: TestBroker | undefined
      beforeAll(async () => {
        server = engine === 'postgres' ? await startPostgres() : undefined
        broker = await openBroker({ ...options, ...(server !== undefined && { database: server.url() }) })
      }, 60_000)
      afterAll(async () => {
        await broker?.stop()
        server?.remove()
      }, 60_000)
      suite(() => {
        if (broker === undefined) throw new RangeError('the broker did not start')
        return broker
      })
    })
  }
}

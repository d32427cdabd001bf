/** Runs one suite on both databases: the embedded one in memory, and a PostgreSQL of its own, or why there is none. */
import { afterAll, beforeAll, beforeEach, describe } from 'vitest'
import { openEmbedded } from '#store/embedded-engine'
import type { Engine } from '#store/engine'
import { migrate } from '#store/migrate'
import { storeOf } from '#store/open-store'
import { openPostgres } from '#store/postgres-engine'
import type { Store } from '#store/store'
import { findPostgres, startPostgres, type TestPostgres } from './postgres'

export type OpenStore = {
  readonly engine: Engine
  readonly store: Store
  /** Undefined of the embedded database. */
  readonly postgres: TestPostgres | undefined
}

/** Each test begins with an empty database. */
export function describeStores(title: string, suite: (opened: () => OpenStore) => void): void {
  describe(`${title}, embedded`, () => open(suite, async () => ({ engine: await openEmbedded() })))
  describePostgres(`${title}, PostgreSQL`, suite)
}

export function describePostgres(title: string, suite: (opened: () => OpenStore) => void): void {
  const found = findPostgres()
  if (!found.ok) {
    console.warn(`tests on PostgreSQL are skipped: ${found.reason}`)
    describe.skip(`${title} (skipped: ${found.reason})`, () => suite(neverOpen))
    return
  }
  describe(title, () =>
    open(suite, async () => {
      const postgres = await startPostgres()
      const engine = openPostgres({ database: postgres.url(), poolSize: 8, statementTimeoutMillis: 30_000 })
      return { engine, postgres }
    }),
  )
}

function neverOpen(): never {
  throw new Error('the suite is skipped')
}

function open(
  suite: (opened: () => OpenStore) => void,
  start: () => Promise<{ readonly engine: Engine; readonly postgres?: TestPostgres }>,
): void {
  let opened: OpenStore | undefined
  beforeAll(async () => {
    const { engine, postgres } = await start()
    await migrate(engine)
    opened = { engine, postgres, store: storeOf(engine, [], postgres?.url()) }
  })
  beforeEach(async () => {
    if (opened !== undefined) await empty(opened.engine)
  })
  afterAll(async () => {
    await opened?.store.close()
    opened?.postgres?.remove()
  })
  suite(() => opened ?? neverOpen())
}

async function empty(engine: Engine): Promise<void> {
  await engine.query({
    text: `truncate flows, pods, pod_addresses, node_addresses, services, service_addresses, node_ports, ingest_batches, edge_deltas,
      edges, label_sets restart identity cascade`,
  })
  await engine.query({ text: 'delete from edge_ends where end_id > 3' })
}

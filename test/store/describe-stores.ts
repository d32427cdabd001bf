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

type Kind = 'embedded' | 'postgres'

/** Opened once a file: opening is what takes longest. */
const openedStores = new Map<Kind, OpenStore>()

afterAll(async () => {
  for (const { store, postgres } of openedStores.values()) {
    await store.close()
    postgres?.remove()
  }
  openedStores.clear()
})

/** Each test begins with an empty database. */
export function describeStores(title: string, suite: (opened: () => OpenStore) => void): void {
  describe(`${title}, embedded`, () => onStore('embedded', suite))
  describePostgres(`${title}, PostgreSQL`, suite)
}

export function describePostgres(title: string, suite: (opened: () => OpenStore) => void): void {
  const found = findPostgres()
  if (found.ok) {
    describe(title, () => onStore('postgres', suite))
    return
  }
  console.warn(`tests on PostgreSQL are skipped: ${found.reason}`)
  describe.skip(`${title} (skipped: ${found.reason})`, () => suite(neverOpen))
}

function neverOpen(): never {
  throw new Error('no database is open')
}

function onStore(kind: Kind, suite: (opened: () => OpenStore) => void): void {
  beforeAll(async () => {
    if (!openedStores.has(kind)) openedStores.set(kind, await open(kind))
  })
  beforeEach(async () => {
    const opened = openedStores.get(kind)
    if (opened !== undefined) await empty(opened.engine)
  })
  suite(() => openedStores.get(kind) ?? neverOpen())
}

async function open(kind: Kind): Promise<OpenStore> {
  const postgres = kind === 'postgres' ? await startPostgres() : undefined
  const engine =
    postgres === undefined
      ? await openEmbedded()
      : openPostgres({ database: postgres.url(), poolSize: 8, batchConnections: 4, statementTimeoutMillis: 30_000 })
  await migrate(engine)
  return { engine, postgres, store: storeOf(engine, [], postgres?.url()) }
}

async function empty(engine: Engine): Promise<void> {
  await engine.query({
    text: `truncate flows, pods, pod_addresses, node_addresses, services, service_addresses, node_ports, ingest_batches, edge_batches,
      edges, label_sets, audit_objects, audit_queue, audit_sets, audit_counters, audit_offenders, audit_verdicts restart identity cascade`,
  })
  await engine.query({ text: 'delete from edge_ends where end_id > 3' })
  await engine.query({ text: 'update audit_state set generation = 0, backfill_from = null' })
}

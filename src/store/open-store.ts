/** Opens the store: a directory of its own, in memory, or a PostgreSQL by its URL. */
import { Failure } from '#base/failure'
import type { Instant } from '#flows/instant'
import { hasAuditPolicies, putAuditObjects, readAuditObjects, removeAuditObjects } from './audit-objects'
import { auditPass } from './audit-pass'
import { readAuditSummary } from './audit-summary'
import { streamConnections } from './connections'
import { foldEdges, readEdges } from './edges'
import { openEmbedded } from './embedded-engine'
import type { Engine } from './engine'
import { watchHealth } from './health'
import { ingest } from './ingest'
import { lateResolve } from './late-resolve'
import { makeLiveEvents } from './live-events'
import { markDead, sweepStale } from './mark-dead'
import { migrate } from './migrate'
import { openDirectory } from './open-directory'
import { holderAt, ownershipHistory } from './ownership'
import { streamPages } from './paging'
import { daysFrom, ensureDays } from './partitions'
import { runOnce } from './pass-lock'
import { openPostgres } from './postgres-engine'
import { putPod } from './put-pod'
import { deleteService, putService } from './put-service'
import { readFlows } from './read-flows'
import { podAt, podByName, podByUid, readExtent, readPods } from './read-pods'
import { readServices, serviceByAddress, serviceByName } from './read-services'
import { readVerdicts } from './read-verdicts'
import { retain } from './retain'
import type { Store, StorePasses } from './store'
import { vacuum } from './vacuum'

export type StoreOptions =
  /** `:memory:` keeps nothing. */
  | { readonly data: string }
  | {
      /** `postgres://…` */
      readonly database: string
      /** Connections: 8. */
      readonly poolSize?: number
      /** Batches stored at once: 2. */
      readonly batchConnections?: number
      /** 0: none. 30 000 when absent. */
      readonly statementTimeoutMillis?: number
    }

export async function openStore(options: StoreOptions): Promise<Store> {
  const { engine, notices } = 'data' in options ? await openData(options.data) : await openDatabase(options)
  try {
    await migrate(engine)
    await ensureDays(engine, daysFrom(Date.now() * 1000, daysAhead))
    return storeOf(engine, notices, 'database' in options ? options.database : undefined)
  } catch (error) {
    await engine.close().catch(() => undefined)
    throw error
  }
}

/** Today, tomorrow and the day after. */
const daysAhead = 3
const healthMillis = 500

type Opened = { readonly engine: Engine; readonly notices: readonly string[] }

async function openData(data: string): Promise<Opened> {
  if (data !== ':memory:') return openDirectory(data)
  return { engine: await openEmbedded(), notices: ['the database is in memory: nothing outlives the process'] }
}

async function openDatabase(options: Extract<StoreOptions, { database: string }>): Promise<Opened> {
  const engine = openPostgres({
    database: options.database,
    poolSize: options.poolSize ?? 8,
    batchConnections: options.batchConnections ?? 2,
    statementTimeoutMillis: options.statementTimeoutMillis ?? 30_000,
  })
  try {
    const { rows } = await engine.query<{ version: number }>({
      text: `select current_setting('server_version_num')::int as version`,
    })
    const version = Math.trunc((rows[0]?.version ?? 0) / 10_000)
    if (version >= 15) return { engine, notices: [] }
    throw new Failure('database-refused', `PostgreSQL ${version} is too old: Portolan needs 15 or later`)
  } catch (error) {
    await engine.close().catch(() => undefined)
    throw error
  }
}

/** Of a database whose schema is up to date. */
export function storeOf(opened: Engine, notices: readonly string[], database: string | undefined): Store {
  const { engine, health } = watchHealth(opened)
  const events = makeLiveEvents(engine, database)
  return {
    engine: engine.kind,
    notices,
    ingest: async (batch) => {
      const { keys, ...answer } = await ingest(engine, batch, events.isWanted())
      if (keys.length > 0) events.publish(keys)
      return answer
    },
    putPod: (post, now) => putPod(engine, post, now),
    markDead: (mark, now) => markDead(engine, mark, now),
    putService: (post, now) => putService(engine, post, now),
    deleteService: (target, now) => deleteService(engine, target, now),
    flows: (filter, page) => readFlows(engine, filter, page),
    streamFlows: (filter) => streamPages((page) => readFlows(engine, filter, page)),
    streamConnections: (filter) => streamConnections(engine, filter),
    pods: (query, page) => readPods(engine, query, page),
    streamPods: (query) => streamPages((page) => readPods(engine, query, page)),
    podByName: (name, namespace) => podByName(engine, name, namespace),
    extent: () => readExtent(engine),
    podByUid: (uid) => podByUid(engine, uid),
    podAt: (address, at) => podAt(engine, address, at),
    holderAt: (address, at, target) => holderAt(engine, address, at, target),
    ownershipHistory: (address, page) => ownershipHistory(engine, address, page),
    services: (query, page) => readServices(engine, query, page),
    streamServices: (query) => streamPages((page) => readServices(engine, query, page)),
    serviceByAddress: (address) => serviceByAddress(engine, address),
    serviceByName: (namespace, name) => serviceByName(engine, namespace, name),
    edges: (query, page) => readEdges(engine, query, page),
    verdicts: (query, limit) => readVerdicts(engine, query, limit),
    audit: {
      objects: () => readAuditObjects(engine),
      put: (objects, how) => putAuditObjects(engine, objects, how),
      remove: (keys) => removeAuditObjects(engine, keys),
      summary: () => readAuditSummary(engine),
      hasPolicies: () => hasAuditPolicies(engine),
    },
    passes: passesOf(engine),
    listen: events.listen,
    health: (waitMillis) => health(waitMillis ?? healthMillis),
    poolGauges: engine.gauges,
    lost: engine.lost,
    close: async () => {
      await events.close()
      await engine.close()
    },
  }
}

function passesOf(engine: Engine): StorePasses {
  return {
    lateResolve: (now, settings) => lateResolve(engine, now, settings),
    sweepStale: (now, settings) => sweepStale(engine, now, settings),
    retain: (now, settings) => retain(engine, now, settings),
    foldEdges: () => foldEdges(engine),
    ensurePartitions: (now: Instant) =>
      runOnce(engine, 'ensure-partitions', async (session) => ({
        made: await ensureDays(session, daysFrom(now, daysAhead)),
      })),
    vacuum: () => vacuum(engine),
    audit: (now, settings) => auditPass(engine, now, settings),
  }
}

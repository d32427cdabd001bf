/** What the broker tells Prometheus: the names of the compatible API, and its own under `portolan_broker_`. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

export type DatabaseState = { readonly isReachable: boolean; readonly isSchemaReady: boolean }

export type PoolState = { readonly idle: number; readonly most: number; readonly waiting: number }

export type MetricSources = {
  readonly uptimeSeconds: () => number
  readonly database: () => Promise<DatabaseState>
  readonly pool: () => PoolState
  readonly openStreams: () => number
  readonly openConnections: () => Promise<number>
  readonly isAuditing: () => Promise<boolean>
  readonly freeAudits: () => number
}

export type Metrics = ReturnType<typeof buildMetrics>

export function buildMetrics(sources: MetricSources) {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  addDatabaseGauges(registry, sources)
  addAuditGauges(registry, sources)
  gauge(registry, 'broker_uptime_seconds', 'Seconds since the broker started.', sources.uptimeSeconds)
  gauge(registry, 'portolan_broker_streams', 'Live streams that are open.', sources.openStreams)
  gauge(registry, 'portolan_broker_connections', 'Connections that are open.', sources.openConnections)
  const count = (name: string, help: string, labelNames: readonly string[] = []) =>
    new Counter({ name: `portolan_broker_${name}`, help, labelNames: [...labelNames], registers: [registry] })
  return {
    registry,
    flowRows: count('flow_rows_total', 'Flow rows received, by what became of them.', ['outcome']),
    batches: count('batches_total', 'Batches received, by whether they were repeated.', ['kind']),
    refusals: count('refusals_total', 'Requests refused, by problem code.', ['code']),
    droppedStreams: count('dropped_streams_total', 'Live streams cut off because their client was too slow.'),
    liveFlows: count('live_flows_total', 'Flows that live streams were offered.'),
    auditDropped: new Counter({
      name: 'broker_audit_dropped_total',
      help: 'Audits refused because others were running, and flows that were gone before they were judged.',
      registers: [registry],
    }),
    passRuns: count('pass_runs_total', 'Background passes, by name and outcome.', ['pass', 'outcome']),
    passRows: count('pass_rows_total', 'Rows that background passes changed.', ['pass']),
    passSeconds: count('pass_seconds_total', 'Seconds spent in background passes.', ['pass']),
    requestSeconds: new Histogram({
      name: 'portolan_broker_request_seconds',
      help: 'Time to answer, by method, route and status.',
      labelNames: ['method', 'route', 'status'],
      buckets: [0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30],
      registers: [registry],
    }),
  }
}

function gauge(registry: Registry, name: string, help: string, read: () => number | Promise<number>): void {
  new Gauge({
    name,
    help,
    registers: [registry],
    async collect() {
      this.set(await read())
    },
  })
}

function addDatabaseGauges(registry: Registry, sources: MetricSources): void {
  const state = async (): Promise<DatabaseState> => sources.database()
  gauge(registry, 'broker_db_reachable', '1 while the database answers.', async () =>
    Number((await state()).isReachable),
  )
  gauge(registry, 'broker_db_schema_ready', '1 when every migration has run.', async () =>
    Number((await state()).isSchemaReady),
  )
  gauge(registry, 'broker_db_pool_idle', 'Database connections that wait for work.', () => sources.pool().idle)
  gauge(registry, 'broker_db_pool_max', 'Database connections there may be.', () => sources.pool().most)
  gauge(
    registry,
    'portolan_broker_db_waiting',
    'Statements that wait for a connection to the database.',
    () => sources.pool().waiting,
  )
}

function addAuditGauges(registry: Registry, { isAuditing, freeAudits }: MetricSources): void {
  gauge(registry, 'broker_audit_enabled', '1 when policies are in audit mode.', async () => Number(await isAuditing()))
  gauge(registry, 'broker_audit_inflight_available', 'Audits of recorded flows that may start now.', freeAudits)
}

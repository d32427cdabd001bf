/** A broker, from its settings to an open port, and its orderly end. */
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { Failure } from '#base/failure'
import { printEndpoint } from '#base/ip'
import type { Store } from '#store/store'
import { type Guard, isLoopbackAddress, isLoopbackName } from './access'
import type { App } from './app'
import { addAuditRoutes, takeYaml } from './audit-routes'
import { addAuditRunRoute } from './audit-run-route'
import { auditSlots } from './audit-slots'
import type { Broker } from './broker'
import { buildServer } from './build-server'
import type { Clock } from './clock'
import { addFlowReads } from './flow-routes'
import { buildLiveFlows } from './live-flows'
import type { Logger } from './log'
import { buildMetrics, type MetricSources } from './metrics'
import { addOwnerRoutes } from './owner-routes'
import { addPodRoutes } from './pod-routes'
import { startPasses } from './run-passes'
import { addServiceRoutes } from './service-routes'
import type { Settings } from './settings'
import { addStatusRoutes } from './status-routes'
import { addStreamRoute } from './stream-route'
import type { TokenBook } from './tokens'
import { addTrafficRoutes } from './traffic-routes'
import { addVerdictRoutes } from './verdict-routes'

export type BrokerOptions = {
  readonly listen: { readonly address: string; readonly port: number }
  /** Opened by the caller; closed by the broker when it ends. */
  readonly store: Store
  readonly settings: Settings
  readonly tokens: TokenBook
  /** Beyond this machine without a token. */
  readonly isInsecure: boolean
  readonly allowedOrigins: readonly string[]
  readonly version: string
  readonly clock: Clock
  readonly log: Logger
}

export type RunningBroker = {
  readonly url: string
  readonly port: number
  readonly stop: () => Promise<void>
}

/** How long requests that are under way may take when the broker ends. */
const farewellMs = 10_000
/** Audits of recorded flows at once. */
const mostAudits = 2

export async function startBroker(options: BrokerOptions): Promise<RunningBroker> {
  refuseOpenDoor(options)
  const { store, settings, clock, log } = options
  const live = buildLiveFlows(store.listen)
  const audits = auditSlots(mostAudits)
  let app: App | undefined
  const metrics = buildMetrics(
    metricSources(options, { openStreams: live.count, server: () => app?.server, freeAudits: audits.available }),
  )
  const broker: Broker = { store, clock, settings, log, metrics, live, audits, version: options.version }
  const server = await buildServer(
    {
      settings,
      log,
      metrics,
      guard: guardOf(options),
      version: options.version,
      allowedOrigins: options.allowedOrigins,
    },
    (routes) => addRoutes(routes, broker),
  )
  app = server
  const port = await openPort(server, options.listen)
  const passes = startPasses(broker)
  return {
    url: `http://${printEndpoint(options.listen.address, port)}`,
    port,
    stop: async () => {
      await live.end()
      await Promise.all([closeServer(server), passes.stop()])
      await store.close()
    },
  }
}

function addRoutes(app: App, broker: Broker): void {
  addTrafficRoutes(app, broker)
  addPodRoutes(app, broker)
  addServiceRoutes(app, broker)
  addVerdictRoutes(app, broker)
  addStatusRoutes(app, broker)
  addFlowReads(app, broker)
  addStreamRoute(app, broker)
  addOwnerRoutes(app, broker)
  app.register(async (inner) => {
    const scope = inner as App
    takeYaml(scope)
    addAuditRoutes(scope, broker)
    addAuditRunRoute(scope, broker)
  })
}

/** Before anything is opened: a door that everybody can walk through is not opened by accident. */
export function refuseOpenDoor({
  listen,
  tokens,
  isInsecure,
}: Pick<BrokerOptions, 'listen' | 'tokens' | 'isInsecure'>): void {
  if (isLoopbackAddress(listen.address) || !tokens.isOpen || isInsecure) return
  throw new Failure(
    'usage.bad-argument',
    `${listen.address} can be reached from other machines, and no token is set; set BROKER_TOKEN_INGEST and ` +
      'BROKER_TOKEN_READ, or say --insecure if everybody may read and write',
  )
}

function guardOf({ listen, tokens }: BrokerOptions): Guard {
  const isPrivate = tokens.isOpen && isLoopbackAddress(listen.address)
  return { tokens, hostsAllowed: isPrivate ? isLoopbackName : undefined }
}

type Openings = {
  readonly openStreams: () => number
  readonly server: () => App['server'] | undefined
  readonly freeAudits: () => number
}

function metricSources({ store, clock }: BrokerOptions, { openStreams, server, freeAudits }: Openings): MetricSources {
  const started = clock.now()
  return {
    uptimeSeconds: () => Math.max(0, (clock.now() - started) / 1e6),
    database: async () => {
      const { reachable, schemaReady } = await store.health(100)
      return { isReachable: reachable, isSchemaReady: schemaReady }
    },
    pool: () => {
      const { idle, max, waiting } = store.poolGauges()
      return { idle, most: max, waiting }
    },
    openStreams,
    freeAudits,
    isAuditing: async () => (await store.audit.hasPolicies().catch(() => false)) === true,
    openConnections: () =>
      new Promise((done) => {
        const listening = server()
        if (listening === undefined) done(0)
        else listening.getConnections((error, count) => done(error ? 0 : count))
      }),
  }
}

async function openPort(app: App, { address, port }: BrokerOptions['listen']): Promise<number> {
  try {
    await app.listen({ host: address, port })
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw new Failure(
      'usage.bad-argument',
      `cannot listen on ${printEndpoint(address, port)}: ${adviceFor(code) ?? message}`,
      error,
    )
  }
  return (app.server.address() as AddressInfo).port
}

function adviceFor(code: string | undefined): string | undefined {
  if (code === 'EADDRINUSE') return 'something listens there already; end it, or choose another port with --listen'
  if (code === 'EACCES') return 'ports below 1024 need privileges; choose another with --listen'
  if (code === 'EADDRNOTAVAIL') return 'this machine does not have the address; choose another with --listen'
  return undefined
}

async function closeServer(app: App): Promise<void> {
  const patience = new AbortController()
  const force = sleep(farewellMs, undefined, { signal: patience.signal, ref: false }).then(
    () => app.server.closeAllConnections(),
    () => {},
  )
  await app.close()
  patience.abort()
  await force
}

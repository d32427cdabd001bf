/** The demo's broker: on the embedded database, with a clock that stands where the recorded day is, and then goes on. */
import { Failure } from '#base/failure'
import { type Clock, systemClock } from '#broker/clock'
import { openLog } from '#broker/log'
import { readSettings, type Settings } from '#broker/settings'
import { type RunningBroker, startBroker } from '#broker/start-broker'
import { buildTokenBook } from '#broker/tokens'
import { type Instant, parseInstant } from '#flows/instant'
import { openStore } from '#store/open-store'
import type { Store } from '#store/store'
import type { DayMessage } from './demo-day'
import type { Io } from './io'
import { version } from './version'

export type DemoBroker = {
  readonly url: string
  readonly play: (messages: readonly DayMessage[]) => Promise<Played>
  readonly stop: () => Promise<void>
}

export type Played = { readonly pods: number; readonly services: number; readonly flows: number }

export type DemoBrokerOptions = {
  readonly data: string
  readonly listen: { readonly address: string; readonly port: number }
  /** Another port is taken when this one is not free. */
  readonly mayMove: boolean
}

/** It tells its own time: from a moment on that a message or a caller sets. */
type PlayedClock = Clock & { readonly set: (time: Instant) => void }

function playedClock(): PlayedClock {
  let offset = 0
  return {
    now: () => systemClock.now() + offset,
    after: systemClock.after,
    set: (time) => {
      offset = time - systemClock.now()
    },
  }
}

/** After the day nobody reports its pods any more: they do not count as dead for that. Who puts a policy sees what it does soon. */
const settings: Settings = { ...readSettings({}).settings, staleAliveSeconds: 0, auditIntervalSeconds: 2 }

export async function startDemoBroker(io: Io, options: DemoBrokerOptions): Promise<DemoBroker> {
  const clock = playedClock()
  const store = await openStore({ data: options.data })
  try {
    const broker = await startOn(io, { store, clock }, options)
    return {
      url: broker.url,
      play: (messages) => playDay({ store, clock, url: broker.url }, messages),
      stop: broker.stop,
    }
  } catch (error) {
    await store.close()
    throw error
  }
}

type Parts = { readonly store: Store; readonly clock: PlayedClock }

async function startOn(io: Io, parts: Parts, { listen, mayMove }: DemoBrokerOptions): Promise<RunningBroker> {
  const start = (port: number): Promise<RunningBroker> =>
    startBroker({
      ...parts,
      listen: { address: listen.address, port },
      settings,
      tokens: buildTokenBook([]),
      isInsecure: false,
      allowedOrigins: [],
      version,
      log: openLog(io.err, 'error'),
    })
  try {
    return await start(listen.port)
  } catch (error) {
    if (mayMove && error instanceof Failure && /EADDRINUSE/.test(String(error.cause))) return start(0)
    throw error
  }
}

type Player = Parts & { readonly url: string }

/** A message that was told once is not counted again when the day is played into the same database. */
async function playDay(player: Player, messages: readonly DayMessage[]): Promise<Played> {
  const played = { pods: 0, services: 0, flows: 0 }
  for (const message of messages) {
    const now = parseInstant(message.at) ?? 0
    player.clock.set(now)
    if (message.told === 'late-pass') {
      await player.store.passes.lateResolve(now, { windowSeconds: settings.lateResolveWindowSeconds })
      continue
    }
    await post(player.url, message)
    if (message.told === 'pod') played.pods++
    else if (message.told === 'service') played.services++
    else if (message.told === 'flows') played.flows += sightings(message.body)
  }
  await player.store.passes.foldEdges(player.clock.now())
  return played
}

function sightings(rows: unknown): number {
  return (rows as readonly { readonly hits: number }[]).reduce((sum, { hits }) => sum + hits, 0)
}

async function post(url: string, { path, body, at }: DayMessage): Promise<void> {
  const response = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'Idempotency-Key': `demo ${at}` },
    body: JSON.stringify(body),
  })
  if (response.ok) return void (await response.arrayBuffer())
  throw new Failure('broker.refused', `${path} was refused (${response.status}): ${await response.text()}`)
}

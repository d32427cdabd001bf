/** The live stream of flows: what was missed first, then each flow as it arrives. */
import type { FastifyReply } from 'fastify'
import Type from 'typebox'
import type { FlowFilter } from '#flows/filter'
import type { StoredFlow } from '#flows/flow'
import { type Instant, microsPerSecond, parseInstant, printInstant } from '#flows/instant'
import { printFlowRecord } from '#wire/flow-record'
import { Problem } from '#wire/problem'
import { sendProblem } from './answer-problem'
import type { App } from './app'
import type { Broker } from './broker'
import { type EventStream, openEventStream } from './event-stream'
import type { FlowListener } from './live-flows'
import { takeRows } from './read-limit'
import { headersOf } from './stream-answer'
import { closedQuery, flowParameters, readFlowFilter, v1Read } from './v1-parts'

/** A flow is reported some time after it was seen: a client that comes back is told so much twice rather than not at all. */
const resumeOverlapSeconds = 60
/** Of what was missed; a client that was away longer is told that there was more. */
const mostReplayed = 5000

export function addStreamRoute(app: App, broker: Broker): void {
  app.get(
    '/api/v1/flows/stream',
    {
      config: v1Read,
      exposeHeadRoute: false,
      schema: {
        tags: ['v1'],
        summary: 'Flows as they arrive, as server-sent events; Last-Event-ID or since goes on from a time',
        querystring: closedQuery(flowParameters),
        headers: Type.Object({ 'last-event-id': Type.Optional(Type.String()) }),
        response: {
          200: { description: 'Events.', content: { 'text/event-stream': { schema: Type.String() } } },
          400: Problem,
          503: Problem,
        },
      },
    },
    async (request, reply) => {
      const filter = readFlowFilter(request.query, broker, reply)
      if (filter === undefined) return reply
      if (broker.live.count() >= broker.settings.maxStreams) {
        return sendProblem(
          reply,
          'unavailable',
          `${broker.settings.maxStreams} live streams are open, and no more may be; try later`,
        )
      }
      const since = resumeTime(request.headers['last-event-id']) ?? filter.since
      return follow(broker, reply, { ...filter, ...(since !== undefined && { since }) })
    },
  )
}

/** Undefined for an id that is none of ours: then the query decides. */
function resumeTime(lastEventId: string | undefined): Instant | undefined {
  const instant = parseInstant(lastEventId ?? '')
  return instant === undefined ? undefined : instant - resumeOverlapSeconds * microsPerSecond
}

async function follow(broker: Broker, reply: FastifyReply, filter: FlowFilter): Promise<FastifyReply> {
  const { store, clock } = broker
  const { since, ...live } = filter
  const recent = { ...live, since: clock.now() - resumeOverlapSeconds * microsPerSecond }
  const gate = buildGate()
  const leave = await broker.live.add({ filter: live, ...gate.listener })
  try {
    // Read before the answer begins, so that a database that is away is still told as 503.
    const known = await takeRows(store.streamFlows(recent), mostReplayed)
    const told = new Set(['', ...known.map(sightingOf)])
    const past = since === undefined ? [] : await takeRows(store.streamFlows(filter), mostReplayed)
    reply.hijack()
    const stream = openStream(broker, reply, leave)
    if (past.length === mostReplayed) stream.send({ name: 'missed', data: { flows: null } })
    for (const flow of past.toReversed()) {
      if (!(await stream.drain())) return reply
      told.add(sightingOf(flow))
      sendFlow(broker, stream, flow)
    }
    const tell = tellOnce(broker, stream, told)
    await gate.open(stream, tell)
    if (store.engine === 'postgres') catchUp(broker, stream, { recent, tell, done: () => told.clear() })
    else told.clear()
  } catch (error) {
    leave()
    throw error
  }
  return reply
}

type Tell = (flow: StoredFlow) => void

/** `told` always holds something until the catch-up is over, and then nothing. */
function tellOnce(broker: Broker, stream: EventStream, told: Set<string>): Tell {
  return (flow) => {
    const sighting = sightingOf(flow)
    if (told.has(sighting)) return
    if (told.size > 0) told.add(sighting)
    sendFlow(broker, stream, flow)
  }
}

/** Other brokers learn within two seconds that somebody listens here; what they stored until then is read once. */
const catchUpMs = 3000

type CatchUp = { readonly recent: FlowFilter; readonly tell: Tell; readonly done: () => void }

function catchUp({ store, clock, log }: Broker, stream: EventStream, { recent, tell, done }: CatchUp): void {
  clock.after(catchUpMs, () => {
    if (!stream.isOpen()) return
    takeRows(store.streamFlows(recent), mostReplayed)
      .then((rows) => tellAll(stream, rows.toReversed(), tell))
      .catch((error: unknown) =>
        log.warn({ err: error }, 'a live stream may lack what other brokers stored as it began'),
      )
      .finally(done)
  })
}

/** No faster than the client reads. */
async function tellAll(stream: EventStream, flows: readonly StoredFlow[], tell: Tell): Promise<void> {
  for (const flow of flows) {
    if (!(await stream.drain())) return
    tell(flow)
  }
}

type Gate = {
  readonly listener: Pick<FlowListener, 'take' | 'miss' | 'end'>
  readonly open: (stream: EventStream, tell: Tell) => Promise<void>
}

/** Holds what arrives until what was there before has been told. */
function buildGate(): Gate {
  const waiting: StoredFlow[] = []
  let missed = 0
  let through: { readonly stream: EventStream; readonly tell: Tell } | undefined
  return {
    listener: {
      take: (flow) => {
        if (through !== undefined) through.tell(flow)
        else if (waiting.length < mostReplayed) waiting.push(flow)
        else missed++
      },
      miss: (count) => {
        if (through === undefined) missed += count
        else through.stream.send({ name: 'missed', data: { flows: count } })
      },
      end: () => through?.stream.close(),
    },
    open: async (stream, tell) => {
      while (waiting.length > 0) await tellAll(stream, waiting.splice(0), tell)
      if (missed > 0) stream.send({ name: 'missed', data: { flows: missed } })
      through = { stream, tell }
    },
  }
}

/** Of one row, the same sighting twice says nothing new. */
function sightingOf({ id, hits, lastSeen }: StoredFlow): string {
  return `${id} ${hits} ${lastSeen}`
}

function openStream({ clock, settings, metrics, log }: Broker, reply: FastifyReply, leave: () => void): EventStream {
  return openEventStream(reply.raw, {
    clock,
    heartbeatMs: settings.heartbeatSeconds * 1000,
    bufferBytes: settings.streamBufferBytes,
    headers: headersOf(reply),
    ended: (why) => {
      leave()
      if (why === 'gone') return
      metrics.droppedStreams.inc()
      log.warn('a live stream was cut off: its client does not read fast enough')
    },
  })
}

function sendFlow({ clock, metrics }: Broker, stream: EventStream, flow: StoredFlow): void {
  metrics.liveFlows.inc()
  stream.send({ id: printInstant(clock.now()), name: 'flow', data: printFlowRecord(flow) })
}

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
        response: { 200: Type.String({ description: 'text/event-stream' }), 400: Problem, 503: Problem },
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
  const waiting: StoredFlow[] = []
  let missed = 0
  let stream: EventStream | undefined
  const { since: _since, ...live } = filter
  const leave = broker.live.add({
    filter: live,
    take: (flow) => {
      if (stream !== undefined) sendFlow(broker, stream, flow)
      else if (waiting.length < mostReplayed) waiting.push(flow)
      else missed++
    },
    miss: (count) => {
      if (stream === undefined) missed += count
      else stream.send({ name: 'missed', data: { flows: count } })
    },
    end: () => stream?.close(),
  })
  try {
    // Read before the answer begins, so that a database that is away is still told as 503.
    const past = filter.since === undefined ? [] : await takeRows(broker.store.streamFlows(filter), mostReplayed)
    reply.hijack()
    stream = openStream(broker, reply, leave)
    if (past.length === mostReplayed) stream.send({ name: 'missed', data: { flows: null } })
    const told = new Set(past.map(sightingOf))
    for (const flow of past.toReversed()) {
      if (!(await stream.drain())) return reply
      sendFlow(broker, stream, flow)
    }
    for (const flow of waiting) if (!told.has(sightingOf(flow))) sendFlow(broker, stream, flow)
    if (missed > 0) stream.send({ name: 'missed', data: { flows: missed } })
  } catch (error) {
    leave()
    throw error
  }
  return reply
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

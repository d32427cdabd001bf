/** Flows and the edges of the map, under /api/v1. */
import Type from 'typebox'
import { microsPerSecond } from '#flows/instant'
import { EdgeRecord, printEdge } from '#wire/edge-record'
import { parseTimeOrAge, timeParameter } from '#wire/flow-query'
import { FlowRecord, printFlowRecord } from '#wire/flow-record'
import { Problem } from '#wire/problem'
import { listPage } from '#wire/schema-parts'
import { answerPage, pageParameters } from './answer-page'
import type { App } from './app'
import type { Broker } from './broker'
import { ndjsonMediaType, streamAnswer } from './stream-answer'
import { closedQuery, flowParameters, readFlowFilter, refuseTime, v1Read } from './v1-parts'

const tags = ['v1']

export function addFlowReads(app: App, broker: Broker): void {
  addFlows(app, broker)
  addConnections(app, broker)
  addEdges(app, broker)
}

function addFlows(app: App, broker: Broker): void {
  const { store, log } = broker
  app.get(
    '/api/v1/flows',
    {
      config: v1Read,
      schema: {
        tags,
        summary: 'Flows, newest first; repeated filters are alternatives, different ones must all hold',
        querystring: closedQuery({ ...flowParameters, ...pageParameters }),
        response: { 200: listPage(FlowRecord, 'Flows, newest first.'), 400: Problem },
      },
    },
    async (request, reply) => {
      const filter = readFlowFilter(request.query, broker, reply)
      if (filter === undefined) return reply
      return answerPage(request, reply, {
        page: (page) => store.flows(filter, page),
        stream: () => store.streamFlows(filter),
        print: printFlowRecord,
        log,
      })
    },
  )
}

/** Always as lines: how many there are is known when all rows have been read. */
function addConnections(app: App, broker: Broker): void {
  const { store, log } = broker
  app.get(
    '/api/v1/connections',
    {
      config: v1Read,
      schema: {
        tags,
        summary: 'Flows added up for policies, as JSON lines: pods of one workload with the same labels count as one',
        querystring: closedQuery(flowParameters),
        response: {
          200: {
            description: 'One of the rows for each, with the hits and times of all of them, a line each.',
            content: { [ndjsonMediaType]: { schema: FlowRecord } },
          },
          400: Problem,
        },
      },
    },
    async (request, reply) => {
      const filter = readFlowFilter(request.query, broker, reply)
      if (filter === undefined) return reply
      return streamAnswer(reply, { pages: store.streamConnections(filter), print: printFlowRecord, as: 'lines', log })
    },
  )
}

const secondsPerDay = 86_400

function addEdges(app: App, { store, clock, log }: Broker): void {
  const parameters = {
    since: timeParameter('from this time on, by the hour; a day ago when absent'),
    until: timeParameter('before this time; now when absent'),
    namespace: Type.Optional(
      Type.Unsafe<string | string[]>({
        anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' }, maxItems: 100 }],
        description: 'edges with an end in one of these',
      }),
    ),
    verdict: Type.Optional(Type.String({ description: 'ALLOW or DROP' })),
    ...pageParameters,
  }
  app.get(
    '/api/v1/edges',
    {
      config: v1Read,
      schema: {
        tags,
        summary: 'Who talks to whom, workload to workload and port by port',
        querystring: closedQuery(parameters),
        response: { 200: listPage(EdgeRecord, 'Edges of the map.'), 400: Problem },
      },
    },
    async (request, reply) => {
      const { query } = request
      const now = clock.now()
      const since =
        query.since === undefined ? now - secondsPerDay * microsPerSecond : parseTimeOrAge(query.since as string, now)
      const until = query.until === undefined ? now + microsPerSecond : parseTimeOrAge(query.until as string, now)
      if (since === undefined || until === undefined) return refuseTime(reply, since === undefined ? 'since' : 'until')
      const namespaces = query.namespace === undefined ? undefined : [query.namespace].flat()
      const edges = {
        since,
        until,
        ...(namespaces !== undefined && { namespaces }),
        ...(query.verdict !== undefined && { decision: query.verdict.toUpperCase() }),
      }
      return answerPage(request, reply, { page: (page) => store.edges(edges, page), print: printEdge, log })
    },
  )
}

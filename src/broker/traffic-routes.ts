/** Flows on the compatible paths, and the same batch under /api/v1 with its whole answer. */
import type { FastifyReply, FastifyRequest, FastifySchemaCompiler } from 'fastify'
import Type from 'typebox'
import { everyFlow } from '#flows/filter'
import { BatchAnswer, batchHeaders } from '#wire/batch-answer'
import { Problem } from '#wire/problem'
import { blankAsNull, PostedTrafficRow, printTrafficRow, TrafficRow } from '#wire/traffic-row'
import { refuseFields, sendProblem } from './answer-problem'
import type { App } from './app'
import type { Broker } from './broker'
import { ingestBatch } from './ingest-batch'
import { readLimit, takeRows, wholeNumber } from './read-limit'

const batchBody = Type.Array(PostedTrafficRow)
const idempotencyHeaders = Type.Object({
  'idempotency-key': Type.Optional(
    Type.String({
      maxLength: 200,
      description: 'a repeated batch with the same key stores nothing and gets the first answer',
    }),
  ),
})
const wholeAnswer = Type.Integer({ description: 'flows that are new' })
const limitRule = { fallback: 5000, least: 1, most: 20_000 }

/** Each row is checked by itself, so that one bad row does not cost the others. */
const checkArray = (value: unknown) =>
  Array.isArray(value)
    ? { value }
    : { error: [{ keyword: 'type', instancePath: '', params: {}, message: 'must be array' }] }
const takeAny = (value: unknown) => ({ value })
const compileForBatch: FastifySchemaCompiler<unknown> = ({ httpPart }) =>
  (httpPart === 'body' ? checkArray : takeAny) as never

export function addTrafficRoutes(app: App, broker: Broker): void {
  const schema = { tags: ['compatible'], headers: idempotencyHeaders }
  app.post(
    '/pod/traffic/batch',
    {
      config: { access: 'ingest' },
      schema: { ...schema, summary: 'Store a batch', body: batchBody, response: { 200: wholeAnswer, 413: Problem } },
      validatorCompiler: compileForBatch,
    },
    async (request, reply) => {
      const answer = await takeBatch(broker, request, reply)
      return answer === undefined ? reply : reply.headers(batchHeaders(answer)).send(answer.stored)
    },
  )
  app.post(
    '/pod/traffic',
    {
      config: { access: 'ingest' },
      schema: {
        ...schema,
        summary: 'Store one flow',
        body: PostedTrafficRow,
        response: { 200: wholeAnswer, 422: Problem },
      },
      validatorCompiler: () => takeAny,
    },
    async (request, reply) => {
      const answer = await ingestOnce(broker, [request.body], request, reply)
      if (answer === undefined) return reply
      const [bad] = answer.bad
      if (bad === undefined) return reply.headers(batchHeaders(answer)).send(answer.stored)
      const field = bad.field === '' ? 'body' : `body.${bad.field}`
      return refuseFields(reply, [{ field, message: bad.message }])
    },
  )
  app.post(
    '/api/v1/flows',
    {
      config: { access: 'ingest' },
      schema: {
        tags: ['v1'],
        headers: idempotencyHeaders,
        summary: 'Store a batch, and learn what became of each bad row',
        body: batchBody,
        response: { 200: BatchAnswer, 413: Problem },
      },
      validatorCompiler: compileForBatch,
    },
    async (request, reply) => (await takeBatch(broker, request, reply)) ?? reply,
  )
  addTrafficReads(app, broker)
}

/** Undefined when the request was refused. */
async function takeBatch(
  broker: Broker,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<BatchAnswer | undefined> {
  const rows = request.body as readonly unknown[]
  const most = broker.settings.batchLimitRows
  if (rows.length > most) {
    sendProblem(reply, 'too-large', `the batch has ${rows.length} rows, and ${most} is the most; send it in parts`)
    return undefined
  }
  return ingestOnce(broker, rows, request, reply)
}

const longestKey = 200

/** Undefined when the request was refused. */
async function ingestOnce(
  broker: Broker,
  rows: readonly unknown[],
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<BatchAnswer | undefined> {
  const key = keyOf(request)
  if (key === undefined || key.length <= longestKey) return ingestBatch(broker, rows, key)
  sendProblem(reply, 'bad-request', `the Idempotency-Key has more than ${longestKey} characters; send a UUID`)
  return undefined
}

function keyOf({ headers }: FastifyRequest): string | undefined {
  const key = headers['idempotency-key']
  const text = (Array.isArray(key) ? key[0] : key)?.trim()
  return text === undefined || text === '' ? undefined : text
}

function addTrafficReads(app: App, { store }: Broker): void {
  app.get(
    '/pod/traffic',
    {
      config: { access: 'read' },
      schema: {
        tags: ['compatible'],
        summary: 'The newest flows',
        querystring: Type.Object({ limit: wholeNumber('1 to 20000; 5000 when absent') }),
        response: { 200: Type.Array(TrafficRow), 400: Problem },
      },
    },
    async ({ query }) =>
      (await takeRows(store.streamFlows(everyFlow), readLimit(query.limit, limitRule))).map(printTrafficRow),
  )
  app.get(
    '/pod/traffic/:name',
    {
      config: { access: 'read' },
      schema: {
        tags: ['compatible'],
        summary: 'The newest flows of pods of one name, in any namespace',
        params: Type.Object({ name: Type.String() }),
        querystring: Type.Object({ namespace: Type.Optional(Type.String({ description: 'only of this one' })) }),
        response: { 200: Type.Array(TrafficRow) },
      },
    },
    async ({ params: { name }, query: { namespace } }) => {
      const given = blankAsNull(namespace)
      const reporter = { field: 'reporter' as const, name, ...(given !== null && { namespace: given }) }
      const rows = await takeRows(store.streamFlows({ terms: [{ anyOf: [reporter] }] }), limitRule.most)
      return rows.map(printTrafficRow)
    },
  )
}

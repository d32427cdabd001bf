/** Pods, Services and who had an address, under /api/v1. */
import type { FastifyReply } from 'fastify'
import Type from 'typebox'
import { canonicalIp, explainBadIp } from '#base/ip'
import { parsePort } from '#base/port-range'
import { canonicalAddress } from '#flows/address'
import { checkDeletion } from '#wire/check-report'
import { parseTimeOrAge, timeParameter } from '#wire/flow-query'
import {
  AddressAnswer,
  OwnershipRecord,
  PodAnswer,
  printAddressAnswer,
  printOwnership,
  printPodAnswer,
  printServiceAnswer,
  ServiceAnswer,
} from '#wire/owner-record'
import { Problem } from '#wire/problem'
import { listPage } from '#wire/schema-parts'
import { PostedDeletion } from '#wire/service-record'
import { answerPage, pageParameters } from './answer-page'
import { hasErrors, refuseFields, sendProblem } from './answer-problem'
import type { App } from './app'
import type { Broker } from './broker'
import { closedQuery, refuseTime, v1Read } from './v1-parts'

const tags = ['v1']

export function addOwnerRoutes(app: App, broker: Broker): void {
  addPods(app, broker)
  addServices(app, broker)
  addServiceDeletion(app, broker)
  addAddresses(app, broker)
}

const nameParams = Type.Object({ namespace: Type.String(), name: Type.String() })

function addPods(app: App, { store, log }: Broker): void {
  const parameters = {
    namespace: Type.Optional(Type.String()),
    name: Type.Optional(Type.String({ description: 'the whole name' })),
    node: Type.Optional(Type.String()),
    dead: Type.Optional(Type.Unsafe<'true' | 'false'>({ enum: ['true', 'false'], description: 'both when absent' })),
    ...pageParameters,
  }
  app.get(
    '/api/v1/pods',
    {
      config: v1Read,
      schema: {
        tags,
        summary: 'Pods, every incarnation, by namespace and name',
        querystring: closedQuery(parameters),
        response: { 200: listPage(PodAnswer, 'Pods.'), 400: Problem },
      },
    },
    async (request, reply) => {
      const { namespace, name, node, dead } = request.query
      const query = {
        ...(namespace !== undefined && { namespace }),
        ...(name !== undefined && { name }),
        ...(node !== undefined && { nodeName: node }),
        ...(dead !== undefined && { isDead: dead === 'true' }),
      }
      return answerPage(request, reply, {
        page: (page) => store.pods(query, page),
        stream: () => store.streamPods(query),
        print: printPodAnswer,
        log,
      })
    },
  )
  app.get(
    '/api/v1/pods/:namespace/:name',
    {
      config: v1Read,
      schema: {
        tags,
        summary: 'The newest pod of a name',
        params: nameParams,
        response: { 200: PodAnswer, 404: Problem },
      },
    },
    async ({ params: { namespace, name } }, reply) => {
      const pod = await store.podByName(name, namespace)
      return pod === undefined
        ? sendProblem(reply, 'not-found', `no pod ${namespace}/${name} is known`)
        : printPodAnswer(pod)
    },
  )
}

function addServices(app: App, { store, log }: Broker): void {
  const parameters = {
    namespace: Type.Optional(Type.String()),
    name: Type.Optional(Type.String()),
    deleted: Type.Optional(
      Type.Unsafe<'true' | 'false'>({ enum: ['true', 'false'], description: 'true: the deleted ones too' }),
    ),
    ...pageParameters,
  }
  app.get(
    '/api/v1/services',
    {
      config: v1Read,
      schema: {
        tags,
        summary: 'Services, by namespace and name',
        querystring: closedQuery(parameters),
        response: { 200: listPage(ServiceAnswer, 'Services.'), 400: Problem },
      },
    },
    async (request, reply) => {
      const { namespace, name, deleted } = request.query
      const query = {
        ...(namespace !== undefined && { namespace }),
        ...(name !== undefined && { name }),
        ...(deleted === 'true' && { withDeleted: true }),
      }
      return answerPage(request, reply, {
        page: (page) => store.services(query, page),
        stream: () => store.streamServices(query),
        print: printServiceAnswer,
        log,
      })
    },
  )
  app.get(
    '/api/v1/services/:namespace/:name',
    {
      config: v1Read,
      schema: { tags, summary: 'A Service', params: nameParams, response: { 200: ServiceAnswer, 404: Problem } },
    },
    async ({ params: { namespace, name } }, reply) => {
      const service = await store.serviceByName(namespace, name)
      if (service !== undefined) return printServiceAnswer(service)
      return sendProblem(reply, 'not-found', `no Service ${namespace}/${name} is known`)
    },
  )
}

function addServiceDeletion(app: App, { store, clock }: Broker): void {
  app.post(
    '/api/v1/services/delete',
    {
      config: { access: 'ingest' },
      schema: {
        tags,
        summary: 'Report that a Service is no more',
        body: PostedDeletion,
        response: { 200: Type.Object({ deleted: Type.Integer() }), 422: Problem },
      },
    },
    async ({ body }, reply) => {
      const errors = checkDeletion(body)
      return hasErrors(errors) ? refuseFields(reply, errors) : { deleted: await store.deleteService(body, clock.now()) }
    },
  )
}

function addAddresses(app: App, { store, clock, log }: Broker): void {
  const params = Type.Object({ ip: Type.String() })
  app.get(
    '/api/v1/addresses/:ip',
    {
      config: v1Read,
      schema: {
        tags,
        summary: 'Who had an address at a time, and why that is known',
        params,
        querystring: closedQuery({
          at: timeParameter('now when absent'),
          port: Type.Optional(
            Type.String({
              description: 'that was connected to: on a node’s address it may be the node port of a Service',
            }),
          ),
          protocol: Type.Optional(Type.String({ maxLength: 20, description: 'TCP when absent; only with a port' })),
        }),
        response: { 200: AddressAnswer, 400: Problem },
      },
    },
    async ({ params: { ip }, query }, reply) => {
      const address = readAddress(ip)
      if (address === undefined) return refuseAddress(reply, ip)
      const port = query.port === undefined ? undefined : parsePort(String(query.port)) || undefined
      if (query.port !== undefined && port === undefined)
        return refuseQuery(reply, 'port', 'must be a port from 1 to 65535')
      if (query.protocol !== undefined && port === undefined)
        return refuseQuery(reply, 'protocol', 'is asked with a port')
      const given = (query.at as string | undefined)?.trim() ?? ''
      const at = given === '' ? clock.now() : parseTimeOrAge(given, clock.now())
      if (at === undefined) return refuseTime(reply, 'at')
      const target = port === undefined ? undefined : { port, protocol: String(query.protocol ?? 'TCP') }
      return printAddressAnswer(address, at, await store.holderAt(address, at, target))
    },
  )
  app.get(
    '/api/v1/addresses/:ip/history',
    {
      config: v1Read,
      schema: {
        tags,
        summary: 'Everybody who had an address, newest first',
        params,
        querystring: closedQuery(pageParameters),
        response: { 200: listPage(OwnershipRecord, 'Times of holding.'), 400: Problem },
      },
    },
    async (request, reply) => {
      const address = readAddress(request.params.ip)
      if (address === undefined) return refuseAddress(reply, request.params.ip)
      return answerPage(request, reply, {
        page: (page) => store.ownershipHistory(address, page),
        print: printOwnership,
        log,
      })
    },
  )
}

function refuseQuery(reply: FastifyReply, name: string, message: string): FastifyReply {
  const error = { field: `query.${name}`, message }
  return sendProblem(reply, 'bad-request', `${error.field} ${message}`, [error])
}

function readAddress(text: string): string | undefined {
  return canonicalIp(canonicalAddress(text))
}

function refuseAddress(reply: FastifyReply, ip: string): FastifyReply {
  return sendProblem(reply, 'bad-request', explainBadIp(ip), [{ field: 'path.ip', message: 'must be one IP address' }])
}

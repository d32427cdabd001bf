/** Services on the compatible paths. */
import Type from 'typebox'
import { canonicalAddress } from '#flows/address'
import type { StoredService } from '#store/store'
import { checkService } from '#wire/check-report'
import { Problem } from '#wire/problem'
import {
  hasServiceAddress,
  PostedService,
  printServiceRecord,
  readPostedService,
  ServiceRecord,
} from '#wire/service-record'
import { hasErrors, refuseFields } from './answer-problem'
import type { App } from './app'
import type { Broker } from './broker'
import { noDataFound } from './pod-routes'
import { streamAnswer } from './stream-answer'

const tags = ['compatible']

export function addServiceRoutes(app: App, { store, clock, log }: Broker): void {
  app.post(
    '/svc/spec',
    {
      config: { access: 'ingest' },
      schema: {
        tags,
        summary: 'Report a Service, one post for each of its addresses',
        body: PostedService,
        response: { 200: Type.Union([ServiceRecord, PostedService]), 422: Problem },
      },
    },
    async ({ body }, reply) => {
      const service = readPostedService(body)
      if (!hasServiceAddress(body) || service.name === '') {
        log.warn({ service: service.name }, 'a Service without an address or a name was posted; it is not stored')
        return body
      }
      const errors = checkService(service)
      if (hasErrors(errors)) return refuseFields(reply, errors)
      const stored = await store.putService(service, clock.now())
      return stored === undefined ? body : printServiceRecord(stored, canonicalAddress(body.svc_ip.trim()))
    },
  )
  app.get(
    '/svc/info',
    {
      config: { access: 'read' },
      schema: {
        tags,
        summary: 'Every Service, one record for each cluster address',
        response: { 200: Type.Array(ServiceRecord) },
      },
    },
    async (_request, reply) =>
      streamAnswer(reply, {
        pages: oneForEachAddress(store.streamServices({})),
        print: ({ service, address }) => printServiceRecord(service, address),
        as: 'array',
        log,
      }),
  )
  app.get(
    '/svc/ip/:ip',
    {
      config: { access: 'read' },
      schema: {
        tags,
        summary: 'The Service that has an address',
        params: Type.Object({ ip: Type.String() }),
        response: { 200: ServiceRecord, 404: Type.String() },
      },
    },
    async ({ params: { ip } }, reply) => {
      const address = canonicalAddress(ip)
      const service = await store.serviceByAddress(address)
      if (service !== undefined && service.deletedAt === null) return printServiceRecord(service, address)
      return reply.code(404).type('text/plain').serializer(String).send(noDataFound)
    },
  )
}

type AddressOfService = { readonly service: StoredService; readonly address: string }

async function* oneForEachAddress(
  pages: AsyncIterable<readonly StoredService[]>,
): AsyncGenerator<readonly AddressOfService[]> {
  for await (const services of pages) {
    yield services.flatMap((service) =>
      service.addresses
        .filter(({ kind }) => kind === 'cluster')
        .map(({ address }) => ({ service, address }))
        .toSorted((left, right) => (left.address < right.address ? -1 : 1)),
    )
  }
}

/** The HTTP server: limits, guard, problems, documentation, and then the routes. */
import type { Socket } from 'node:net'
import rateLimit from '@fastify/rate-limit'
import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import Fastify, { type FastifyBaseLogger, type FastifySchemaCompiler, LogController } from 'fastify'
import type { TSchema } from 'typebox'
import { Compile } from 'typebox/compile'
import { buildProblem, problemMediaType } from '#wire/problem'
import { type Guard, mayPass } from './access'
import { addAllowedOrigins } from './allow-origins'
import { answerError, sendProblem } from './answer-problem'
import type { App } from './app'
import { documentRoute } from './document-route'
import type { Logger } from './log'
import type { Metrics } from './metrics'
import type { Settings } from './settings'

export type ServerParts = {
  readonly settings: Settings
  readonly guard: Guard
  readonly log: Logger
  readonly metrics: Metrics
  readonly version: string
  /** Web pages of these origins may read answers; none by default. */
  readonly allowedOrigins: readonly string[]
}

export async function buildServer(parts: ServerParts, addRoutes: (app: App) => void): Promise<App> {
  const { settings, log } = parts
  const app: App = Fastify({
    loggerInstance: log as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: settings.bodyLimitBytes,
    requestTimeout: settings.requestTimeoutSeconds * 1000,
    handlerTimeout: settings.requestTimeoutSeconds * 1000,
    // A client that neither reads nor writes is gone; live streams have their signs of life.
    connectionTimeout: Math.max(2 * settings.requestTimeoutSeconds, 4 * settings.heartbeatSeconds) * 1000,
    forceCloseConnections: 'idle',
    onProtoPoisoning: 'remove',
    onConstructorPoisoning: 'ignore',
    http: {
      headersTimeout: settings.headerTimeoutSeconds * 1000,
      connectionsCheckingInterval: 1000,
      maxHeaderSize: 16_384,
    },
    routerOptions: { maxParamLength: 1024 },
    frameworkErrors: (error, request, reply) => {
      answerError(error, request, reply)
    },
    clientErrorHandler: (error, socket) => refuseOnSocket(error, socket),
  }).withTypeProvider<TypeBoxTypeProvider>()
  app.server.maxConnections = settings.maxConnections
  app.setValidatorCompiler(compileValidator as FastifySchemaCompiler<TSchema>)
  // Answers are built from our own types: their schemas document them, and tests hold them to it.
  app.setSerializerCompiler(() => (value) => JSON.stringify(value))
  app.setErrorHandler((error, request, reply) => answerError(error, request, reply))
  takeJsonAlone(app)
  countRequests(app, parts.metrics)
  addAllowedOrigins(app, parts.allowedOrigins)
  await limitRate(app, settings)
  app.addHook('preParsing', async (request, reply, payload) => {
    if (!mayPass(parts.guard, request, reply)) return reply as never
    return payload
  })
  refuseUnreadable(app)
  await addDocumentation(app, parts.version)
  addRoutes(app)
  return app
}

function compileValidator({ schema }: { readonly schema: TSchema }) {
  const validator = Compile(schema)
  return (value: unknown) => (validator.Check(value) ? { value } : { error: validator.Errors(value) })
}

/** Fastify would take text too; a page of another origin can send that without being asked. */
function takeJsonAlone(app: App): void {
  app.removeContentTypeParser('text/plain')
}

/** Compressed bodies, which would be taken for broken JSON, and NUL in a path or query, which no database takes. */
function refuseUnreadable(app: App): void {
  app.addHook('preParsing', async (request, reply, payload) => {
    const encoding = request.headers['content-encoding']?.trim().toLowerCase() ?? ''
    if (encoding === '' || encoding === 'identity') return payload
    sendProblem(reply, 'not-json', `the body is written in ${encoding}; send it as it is, without Content-Encoding`)
    return reply as never
  })
  app.addHook('preValidation', async (request, reply) => {
    for (const [part, values] of Object.entries({ path: request.params ?? {}, query: request.query ?? {} })) {
      for (const [name, value] of Object.entries(values)) {
        if (![value].flat().some((text) => String(text).includes('\0'))) continue
        const error = { field: `${part}.${name}`, message: 'holds a NUL character' }
        return sendProblem(reply, 'bad-request', `${error.field} ${error.message}`, [error])
      }
    }
    return undefined
  })
}

function countRequests(app: App, metrics: Metrics): void {
  app.addHook('onResponse', async (request, reply) => {
    const labels = { method: request.method, route: request.routeOptions.url ?? 'unknown', status: reply.statusCode }
    metrics.requestSeconds.observe(labels, reply.elapsedTime / 1000)
    if (reply.statusCode >= 400) metrics.refusals.inc({ code: reply.statusCode })
  })
}

async function limitRate(app: App, { requestsPerMinute }: Settings): Promise<void> {
  if (requestsPerMinute > 0) {
    await app.register(rateLimit, {
      global: true,
      max: requestsPerMinute,
      timeWindow: 60_000,
      cache: 10_000,
      errorResponseBuilder: (_request, { after }) =>
        buildProblem('too-many-requests', `too many requests from this address; try again in ${after}`),
    })
  }
  app.setNotFoundHandler(requestsPerMinute > 0 ? { preHandler: app.rateLimit() } : {}, (request, reply) => {
    const [path] = request.url.split('?')
    sendProblem(reply, 'not-found', `${request.method} ${path} is not served here; /docs lists what is`)
  })
}

async function addDocumentation(app: App, version: string): Promise<void> {
  app.addHook('onRoute', (route) => {
    if (/^\/docs(\/|$)/.test(route.url)) route.config = { ...route.config, access: 'open' }
  })
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Portolan broker',
        version,
        description: 'Flows of a cluster, each with the peer that held the address at that moment.',
      },
      components: { securitySchemes: { token: { type: 'http', scheme: 'bearer' } } },
    },
    transform: documentRoute,
  })
  await app.register(swaggerUi, { routePrefix: '/docs' })
  app.get('/openapi.json', { config: { access: 'open' }, schema: { hide: true } }, () => app.swagger())
}

/** What is refused before there is a request: the socket gets a whole answer and is closed. */
function refuseOnSocket(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy()
  const problem =
    error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
      ? buildProblem('timed-out', 'the request did not arrive in time; send it faster')
      : error.code === 'HPE_HEADER_OVERFLOW'
        ? buildProblem('header-too-large', 'the request’s header is too long; send less than 16 KiB')
        : buildProblem('bad-request', 'this is not an HTTP request')
  const body = JSON.stringify(problem)
  socket.end(
    `HTTP/1.1 ${problem.status} ${problem.title}\r\nContent-Type: ${problemMediaType}\r\n` +
      `Content-Length: ${new TextEncoder().encode(body).length}\r\nConnection: close\r\n\r\n${body}`,
  )
}

/** What an agent serves over HTTP: its metrics, and whether it is well. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { Failure } from '#base/failure'
import { printEndpoint } from '#base/ip'
import { buildMetricsRegistry, type MetricsRegistry, type ReadView } from './metrics-registry'

export const metricsPort = 9179

export type MetricsOptions = {
  readonly view: ReadView
  readonly version: string
  /** By default port 9179 of 127.0.0.1; port 0 is any free one. */
  readonly listen?: { readonly address: string; readonly port: number }
  /** Why the agent is not well; undefined when it is. */
  readonly trouble?: () => string | undefined
}

export type RunningMetrics = {
  readonly url: string
  readonly port: number
  readonly stop: () => Promise<void>
}

export async function startMetrics(options: MetricsOptions): Promise<RunningMetrics> {
  const { view, version, listen = { address: '127.0.0.1', port: metricsPort }, trouble = () => undefined } = options
  const registry = buildMetricsRegistry(view, version)
  const server = createServer((request, response) => {
    void answer(request, { registry, trouble }).then((said) => send(request, response, said))
  })
  const port = await openPort(server, listen)
  return {
    url: `http://${printEndpoint(listen.address, port)}`,
    port,
    stop: () =>
      new Promise((done) => {
        server.close(() => done())
        server.closeAllConnections()
      }),
  }
}

type Served = { readonly registry: MetricsRegistry; readonly trouble: () => string | undefined }
type Answer = { readonly status: number; readonly type: string; readonly body: string }

async function answer({ method = '', url = '' }: IncomingMessage, { registry, trouble }: Served): Promise<Answer> {
  if (method !== 'GET' && method !== 'HEAD') return say(405, `${method} is not answered here; use GET`)
  const [path] = url.split('?')
  if (path === '/healthz') {
    const why = trouble()
    return why === undefined ? say(200, 'ok') : say(503, why)
  }
  if (path !== '/metrics') return say(404, 'there are /metrics and /healthz')
  try {
    return { status: 200, type: registry.contentType, body: await registry.scrape() }
  } catch (error) {
    return say(500, `the metrics cannot be read: ${error instanceof Error ? error.message : String(error)}`)
  }
}

function say(status: number, sentence: string): Answer {
  return { status, type: 'text/plain; charset=utf-8', body: `${sentence}\n` }
}

const compress = promisify(gzip)
/** Thousands of series repeat their labels: the least effort saves most of it. */
const effort = { level: 1 }

async function send(request: IncomingMessage, response: ServerResponse, said: Answer): Promise<void> {
  const takesGzip = /\bgzip\b/.test(String(request.headers['accept-encoding'] ?? ''))
  const isLong = said.body.length > 10_000
  const bytes = takesGzip && isLong ? await compress(said.body, effort) : Buffer.from(said.body)
  response.writeHead(said.status, {
    'content-type': said.type,
    'content-length': bytes.length,
    ...(takesGzip && isLong && { 'content-encoding': 'gzip' }),
    ...(said.status === 405 && { allow: 'GET, HEAD' }),
  })
  response.end(request.method === 'HEAD' ? undefined : bytes)
}

async function openPort(server: Server, { address, port }: { address: string; port: number }): Promise<number> {
  try {
    await new Promise<void>((done, fail) => {
      server.once('error', fail)
      server.listen(port, address, done)
    })
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw new Failure(
      'usage.bad-argument',
      `cannot serve metrics on ${printEndpoint(address, port)}: ${adviceFor(code) ?? message}`,
      error,
    )
  }
  return (server.address() as AddressInfo).port
}

function adviceFor(code: string | undefined): string | undefined {
  if (code === 'EADDRINUSE')
    return 'something listens there already; end it, or choose another port with --metrics-listen'
  if (code === 'EACCES') return 'ports below 1024 need privileges; choose another with --metrics-listen'
  if (code === 'EADDRNOTAVAIL') return 'this machine does not have the address; choose another with --metrics-listen'
  return undefined
}

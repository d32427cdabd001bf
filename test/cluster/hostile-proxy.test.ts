/** Proxies on the way to a cluster: what they may see, and what becomes of those that are slow or lie. */
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type ApiServer, readSamples, startApiServer } from './api-server'
import { type Certificates, makeCertificates } from './certificates'
import { read } from './serving'

const folder = mkdtempSync(join(tmpdir(), 'portolan-proxy-'))
const token = 'SECRET-token-of-jane'
let made: Certificates
let server: ApiServer

beforeAll(async () => {
  made = makeCertificates(folder, 'api.example')
  server = await startApiServer({ objects: await readSamples('samples/traffic-policy'), tls: made, token })
})
afterAll(async () => {
  await server.close()
  rmSync(folder, { recursive: true })
})

type Proxy = {
  readonly url: string
  readonly asked: readonly string[]
  readonly headers: readonly IncomingHttpHeaders[]
}

async function proxying<T>(
  onConnect: (socket: Duplex, url: string) => void,
  work: (proxy: Proxy) => Promise<T>,
): Promise<T> {
  const asked: string[] = []
  const headers: IncomingHttpHeaders[] = []
  const sockets: Duplex[] = []
  const proxy: Server = createServer()
  proxy.on('connect', (request, socket) => {
    asked.push(request.url ?? '')
    headers.push(request.headers)
    sockets.push(socket)
    onConnect(socket, request.url ?? '')
  })
  await new Promise<void>((ready) => proxy.listen(0, '127.0.0.1', ready))
  try {
    return await work({ url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, asked, headers })
  } finally {
    for (const socket of sockets) socket.destroy()
    proxy.closeAllConnections()
    await new Promise((done) => proxy.close(done))
  }
}

function lead(socket: Duplex, url: string): void {
  const [host = '', port = ''] = url.split(':')
  const there = connect(Number(port), host, () => socket.write('HTTP/1.1 200 OK\r\n\r\n'))
  there.pipe(socket).pipe(there)
  const end = (): void => {
    there.destroy()
    socket.destroy()
  }
  for (const one of [there, socket]) one.on('error', end).on('close', end)
}

const kinds = ['TrafficPolicy']
const own = (proxy: string, rest: object = {}): object => ({
  cluster: {
    'certificate-authority-data': Buffer.from(made.authority).toString('base64'),
    'tls-server-name': 'api.example',
    'proxy-url': proxy,
    ...rest,
  },
  user: { token },
})

describe('through a proxy', () => {
  test('tls-server-name is what the server’s certificate is of, and the token is the server’s alone', async () => {
    await proxying(lead, async ({ url, headers }) => {
      const { cluster } = await read(server.url, { folder, kinds, parts: own(url) })
      expect(cluster.trafficPolicies.size).toBe(3)
      expect(headers.length).toBeGreaterThan(0)
      expect(headers.filter(({ authorization }) => authorization !== undefined)).toEqual([])
      await expect(
        read(server.url, { folder, kinds, parts: own(url, { 'tls-server-name': undefined }) }),
      ).rejects.toThrow(/its certificate is of another name/)
    })
  })

  test('the password of the proxy is sent to it, and the authorities of this machine count where none is named', async () => {
    await proxying(lead, async ({ url, headers }) => {
      const parts = own(url.replace('http://', 'http://jane:p%40ss@'), { 'certificate-authority-data': undefined })
      const environment = { SSL_CERT_FILE: join(folder, 'ca.crt') }
      const { cluster } = await read(server.url, { folder, kinds, parts, environment })
      expect(cluster.trafficPolicies.size).toBe(3)
      expect(headers[0]?.['proxy-authorization']).toBe(`Basic ${Buffer.from('jane:p@ss').toString('base64')}`)
    })
  })

  test('an http server is asked, and is sent no token', async () => {
    const open = await startApiServer({ objects: await readSamples('samples/traffic-policy') })
    await proxying(lead, async ({ url, asked }) => {
      const { cluster } = await read(open.url, { folder, kinds, parts: own(url) })
      expect(cluster.trafficPolicies.size).toBe(3)
      expect(asked).toContain(open.url.replace('http://', ''))
    })
    await open.close()
    expect(new Set(open.tokens)).toEqual(new Set(['']))
  })

  test.each<[string, (socket: Duplex) => void, RegExp]>([
    ['says nothing', () => undefined, /cannot be asked: no connection came about in 0\.5 s; check that it runs/],
    ['hangs up', (socket) => void socket.destroy(), /, by way of the proxy 127\.0\.0\.1:\d+; /],
    ['leads nowhere', (socket) => void socket.write('HTTP/1.1 200 OK\r\n\r\n'), /no connection came about in 0\.5 s/],
    ['speaks no HTTP', (socket) => void socket.end('SSH-2.0-OpenSSH\r\n\r\n'), /127\.0\.0\.1:\d+; /],
  ])('that %s, the reading ends with a sentence', async (_, onConnect, sentence) => {
    await proxying(onConnect, async ({ url }) => {
      const started = performance.now()
      const limits = { connectMilliseconds: 500 }
      await expect(read(server.url, { folder, kinds, parts: own(url), limits })).rejects.toThrow(sentence)
      expect(performance.now() - started).toBeLessThan(8000)
    })
  })
})

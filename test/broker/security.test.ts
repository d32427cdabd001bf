/** Who may do what: tokens and scopes, paths written in other ways, names of the host, and what the log never shows. */
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openLog } from '../../src/broker/log'
import { readSettings } from '../../src/broker/settings'
import { startBroker } from '../../src/broker/start-broker'
import { buildTokenBook, type GivenToken } from '../../src/broker/tokens'
import type { Problem } from '../../src/wire/problem'
import { flowPost } from './messages'
import { openBroker, type TestBroker } from './running-broker'

const secrets = { read: 'read-secret-0123456789', ingest: 'ingest-secret-0123456789', admin: 'admin-secret-0123456789' }
const supplyChain = 'supply-chain-secret-0123456789'
const tokens: readonly GivenToken[] = [
  { source: 'BROKER_TOKEN_READ', value: secrets.read, scopes: ['read'] },
  { source: 'BROKER_TOKEN_INGEST', value: secrets.ingest, scopes: ['ingest', 'read'] },
  { source: 'BROKER_TOKEN_ADMIN', value: secrets.admin, scopes: ['admin', 'ingest', 'read'] },
  { source: 'BROKER_TOKEN_SUPPLYCHAIN', value: supplyChain, scopes: [] },
]
const bearer = (token: string): Record<string, string> => ({ Authorization: `Bearer ${token}` })

describe('with tokens', () => {
  let broker: TestBroker
  beforeAll(async () => {
    broker = await openBroker({ tokens })
  })
  afterAll(() => broker?.stop())

  const batch = [flowPost({ peer: '203.0.113.1', time: '2026-09-10T11:00:00' })]

  test('33: a read token may not post, no token gets 401, and health is open', async () => {
    const read = await broker.post('/pod/traffic/batch', batch, bearer(secrets.read))
    expect([read.status, await read.json()]).toMatchObject([403, { code: 'not-allowed' }])
    const none = await broker.post('/pod/traffic/batch', batch)
    expect([none.status, none.headers.get('www-authenticate')]).toEqual([401, 'Bearer'])
    expect(read.headers.get('www-authenticate')).toBe('Bearer error="insufficient_scope", scope="ingest"')
    expect(none.headers.get('content-type')).toMatch(/^application\/problem\+json/)
    for (const open of ['/health', '/metrics', '/openapi.json', '/docs/'])
      expect((await broker.get(open)).status).toBe(200)
  })

  test('no token, another kind of one and a wrong one are told apart', async () => {
    const asked = async (headers: Record<string, string>): Promise<readonly unknown[]> => {
      const response = await broker.get('/pod/traffic', headers)
      const { detail } = (await response.json()) as Problem
      return [response.status, response.headers.get('www-authenticate'), detail]
    }
    expect(await asked({})).toEqual([401, 'Bearer', expect.stringMatching(/^this path needs a token; /)])
    const basic = { Authorization: 'Basic YTpi' }
    expect(await asked(basic)).toEqual([401, 'Bearer', expect.stringMatching(/header holds no bearer token; /)])
    expect(await asked(bearer('wrong'))).toEqual([
      401,
      'Bearer error="invalid_token"',
      expect.stringMatching(/^the token is none that this broker knows; /),
    ])
  })

  test('33: however a path is written, its own scope counts', async () => {
    for (const path of [
      '/pod/traffic/%62atch',
      '/pod/traffic/batch?x=1',
      '/%70od/traffic/batch',
      '/pod/traffic/batch;x',
      '/pod/./traffic/batch',
    ]) {
      const status = await rawStatus(broker.port, 'POST', path, bearer(secrets.read))
      expect([403, 404], path).toContain(status)
    }
    expect(await rawStatus(broker.port, 'POST', '/pod/traffic/%62atch', bearer(secrets.read))).toBe(403)
    expect((await broker.get('/pod/traffic')).status).toBe(401)
  })

  test('each scope opens what it should', async () => {
    for (const token of [secrets.ingest, secrets.admin]) {
      expect((await broker.post('/pod/traffic/batch', batch, bearer(token))).status).toBe(200)
    }
    for (const token of Object.values(secrets))
      expect((await broker.get('/pod/traffic', bearer(token))).status).toBe(200)
    expect((await broker.get('/pod/traffic', bearer(supplyChain))).status).toBe(403)
    for (const wrong of [secrets.read.slice(0, -1), `${secrets.read}x`, '', 'x']) {
      expect((await broker.get('/pod/traffic', bearer(wrong))).status).toBe(401)
    }
    expect((await broker.get('/pod/traffic', { Authorization: `Basic ${btoa(`a:${secrets.read}`)}` })).status).toBe(401)
    expect((await broker.get(`/pod/traffic?token=${secrets.read}`)).status).toBe(401)
  })

  test('an unknown path is 404 whether or not there is a token', async () => {
    for (const headers of [{}, bearer(secrets.read)]) {
      const response = await broker.get('/nothing/here', headers)
      expect([response.status, await response.json()]).toMatchObject([404, { code: 'not-found' }])
    }
  })

  test('every route that is documented needs a token, but for those that are meant to be open', async () => {
    const { paths } = await broker.read<{ paths: Record<string, Record<string, object>> }>('/openapi.json')
    const open: string[] = []
    for (const [path, methods] of Object.entries(paths)) {
      for (const method of Object.keys(methods)) {
        const response = await fetch(`${broker.url}${path.replace(/\{\w+\}/g, 'x')}`, { method: method.toUpperCase() })
        if (response.status !== 401) open.push(`${method} ${path}`)
        await response.body?.cancel()
      }
    }
    expect(open.sort()).toEqual(['get /health', 'get /metrics'])
  })

  test('reports need ingest, policies in audit mode admin, and everything else read, as the document says', async () => {
    const { paths } = await broker.read<{ paths: Record<string, Record<string, { description?: string }>> }>(
      '/openapi.json',
    )
    const routes = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { description = '' }]) => ({ path, method, description })),
    )
    const found: Record<string, string[]> = { read: [], ingest: [], admin: [] }
    for (const { path, method, description } of routes) {
      if (path === '/health' || path === '/metrics' || path.endsWith('/stream')) continue
      const allowed: string[] = []
      for (const [scope, token] of Object.entries(secrets)) {
        const url = `${broker.url}${path.replace(/\{\w+\}/g, 'x')}`
        const response = await fetch(url, { method: method.toUpperCase(), headers: bearer(token) })
        await response.arrayBuffer()
        if (response.status !== 403) allowed.push(scope)
      }
      const [least = ''] = allowed
      expect(description, path).toBe(`A token needs the scope ${least}.`)
      expect(allowed, path).toEqual(['read', 'ingest', 'admin'].slice(3 - allowed.length))
      found[least]?.push(`${method} ${path}`)
    }
    expect(found.ingest?.sort()).toEqual([
      'post /api/v1/flows',
      'post /api/v1/services/delete',
      'post /pod/mark_dead',
      'post /pod/spec',
      'post /pod/traffic',
      'post /pod/traffic/batch',
      'post /svc/spec',
    ])
    expect(found.admin?.sort()).toEqual([
      'delete /api/v1/audit/policies',
      'delete /api/v1/audit/policies/{namespace}/{name}',
      'put /api/v1/audit/policies',
      'put /api/v1/audit/policies/{namespace}/{name}',
    ])
    expect(found.read?.length).toBeGreaterThan(20)
  })

  test('no secret is in the log, whatever was done with it', async () => {
    await broker.get(`/pod/traffic?token=${secrets.read}`, bearer(secrets.read))
    await broker.post('/pod/traffic/batch', `{"token":"${secrets.ingest}"`, bearer(secrets.ingest))
    await broker.post('/pod/spec', { pod_name: ' ' }, bearer(secrets.admin))
    for (const secret of [...Object.values(secrets), supplyChain]) expect(broker.log()).not.toContain(secret)
  })
})

test('beyond this machine a token is needed, unless it is said that none is', async () => {
  const broker = await openBroker()
  const options = {
    listen: { address: '0.0.0.0', port: 0 },
    store: { ...broker.store, close: async () => {} },
    settings: readSettings({}).settings,
    allowedOrigins: [],
    version: 'x',
    clock: broker.clock,
    log: openLog(() => {}, 'silent'),
  }
  const open = buildTokenBook([])
  await expect(startBroker({ ...options, tokens: open, isInsecure: false })).rejects.toThrow(/no token is set/)
  for (const allowed of [
    { tokens: open, isInsecure: true },
    { tokens: buildTokenBook(tokens), isInsecure: false },
  ]) {
    const second = await startBroker({ ...options, ...allowed })
    await second.stop()
  }
  await broker.stop()
})

describe('without tokens', () => {
  let broker: TestBroker
  beforeAll(async () => {
    broker = await openBroker({ allowedOrigins: ['https://map.example'] })
  })
  afterAll(() => broker?.stop())

  test('a web page that gives this machine another name is refused', async () => {
    expect(await rawStatus(broker.port, 'GET', '/pod/traffic', { Host: 'evil.example' })).toBe(403)
    expect(await rawStatus(broker.port, 'GET', '/pod/traffic', { Host: `localhost:${broker.port}` })).toBe(200)
    expect(await rawStatus(broker.port, 'GET', '/pod/traffic', { Host: `127.0.0.1:${broker.port}` })).toBe(200)
  })

  test('only named origins may read answers, and a preflight needs no token', async () => {
    const named = await broker.get('/pod/traffic', { Origin: 'https://map.example' })
    expect(named.headers.get('access-control-allow-origin')).toBe('https://map.example')
    const other = await broker.get('/pod/traffic', { Origin: 'https://evil.example' })
    expect(other.headers.get('access-control-allow-origin')).toBeNull()
    const preflight = await fetch(`${broker.url}/pod/traffic/batch`, {
      method: 'OPTIONS',
      headers: { Origin: 'https://map.example', 'Access-Control-Request-Method': 'POST' },
    })
    expect([preflight.status, preflight.headers.get('access-control-max-age')]).toEqual([204, '3600'])
  })

  test('a body that is no JSON, or no JSON by name, is refused by its own status', async () => {
    const broken = await broker.post('/pod/spec', '{"pod_name":')
    expect([broken.status, ((await broken.json()) as Problem).code]).toEqual([400, 'bad-request'])
    const text = await broker.post('/pod/spec', '{}', { 'Content-Type': 'text/plain' })
    expect([text.status, ((await text.json()) as Problem).code]).toEqual([415, 'not-json'])
    const fields = await broker.post('/pod/spec', { pod_ip: 7 })
    const problem = (await fields.json()) as Problem
    expect([fields.status, problem.errors?.map(({ field }) => field).sort()]).toEqual([
      422,
      ['body.pod_ip', 'body.pod_name'],
    ])
    const list = await broker.post('/pod/traffic/batch', { rows: [] })
    expect([list.status, await list.json()]).toMatchObject([422, { errors: [{ field: 'body' }] }])
  })

  test('a filter that is not known is refused by its name', async () => {
    const response = await broker.get('/api/v1/flows?nonsense=1&port=x')
    expect([response.status, await response.json()]).toMatchObject([400, { errors: [{ field: 'query.nonsense' }] }])
    const bad = await broker.get('/api/v1/flows?port=http')
    expect([bad.status, await bad.json()]).toMatchObject([400, { errors: [{ field: 'query.port' }] }])
  })

  test('text that looks like SQL is text', async () => {
    const evil = "x'; drop table flows; --"
    expect(await broker.read(`/pod/traffic/${encodeURIComponent(evil)}`)).toEqual([])
    expect(await broker.read(`/api/v1/flows?pod=${encodeURIComponent(`shop/${evil}`)}`)).toEqual({
      items: [],
      next: null,
    })
    expect((await broker.get(`/api/v1/flows?cursor=${encodeURIComponent(evil)}`)).status).toBe(400)
    expect((await broker.get('/health')).status).toBe(200)
  })
})

/** fetch would tidy the path and refuse to set Host. */
function rawStatus(port: number, method: string, path: string, headers: Record<string, string>): Promise<number> {
  return new Promise((done, fail) => {
    const body = method === 'POST' ? '[]' : ''
    const lines = Object.entries({
      Host: `127.0.0.1:${port}`,
      'Content-Type': 'application/json',
      'Content-Length': String(body.length),
      Connection: 'close',
      ...headers,
    }).map(([name, value]) => `${name}: ${value}\r\n`)
    const socket = connect(port, '127.0.0.1', () =>
      socket.write(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`),
    )
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk.toString()
    })
    socket.on('end', () => done(Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1])))
    socket.on('error', fail)
  })
}

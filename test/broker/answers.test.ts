/** Every answer is what its schema in the OpenAPI document says, and the clock may jump without harm. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Compile } from 'typebox/compile'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ndjsonMediaType } from '../../src/broker/stream-answer'
import type { AuditSummaryRecord } from '../../src/wire/audit-record'
import { webFromFrontend } from './audit-policies'
import { flowPost, podPost, servicePost } from './messages'
import { openBroker, type TestBroker } from './running-broker'

/** The pods here are labelled by their names. */
const policy = webFromFrontend.replace('app: web', 'app: web-1')

type Schema = Readonly<Record<string, unknown>>
type Operation = {
  readonly requestBody?: { readonly content?: Readonly<Record<string, unknown>> }
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, { schema: Schema }>> }>>
}
type Document = { readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>> }

let broker: TestBroker
let document: Document

beforeAll(async () => {
  broker = await openBroker()
  document = await broker.read<Document>('/openapi.json')
  const headers = { 'Content-Type': 'application/yaml' }
  await fetch(`${broker.url}/api/v1/audit/policies`, { method: 'PUT', headers, body: policy })
  const pod = { start: '2026-09-01T00:00:00Z', seen: '2026-09-10T11:59:00' }
  await broker.send('/pod/spec', podPost({ ...pod, name: 'web-1', ip: '10.8.0.1', workload: 'Deployment/web' }))
  await broker.send('/pod/spec', podPost({ ...pod, name: 'late', ip: '10.8.0.2', start: '2026-09-10T11:58:00Z' }))
  await broker.send('/svc/spec', servicePost({ name: 'cache', ip: '10.96.8.1' }))
  const flow = { pod: 'web-1', namespace: 'shop', ip: '10.8.0.1', time: '2026-09-10T11:00:00' }
  await broker.send('/pod/traffic/batch', [
    flowPost({ ...flow, peer: '10.96.8.1' }),
    flowPost({ ...flow, peer: '10.8.0.2' }),
    flowPost({ ...flow, peer: '203.0.113.1', type: 'EGRESS' }),
    flowPost({ pod: 'other', peer: '10.8.0.1', time: '2026-09-10T11:00:00' }),
  ])
  await broker.store.passes.foldEdges(broker.clock.now())
  await broker.clock.advance(15)
  const judged = async () => (await broker.read<AuditSummaryRecord>('/api/v1/audit/summary')).sets.length > 0
  while (!(await judged())) await sleep(20)
})
afterAll(() => broker?.stop())

const examples: Readonly<Record<string, string>> = {
  '/pod/traffic/{name}': '/pod/traffic/web-1',
  '/pod/list/{node}': '/pod/list/node-a',
  '/pod/name/{name}': '/pod/name/web-1',
  '/pod/ip/{ip}': '/pod/ip/10.8.0.1',
  '/svc/ip/{ip}': '/svc/ip/10.96.8.1',
  '/api/v1/pods/{namespace}/{name}': '/api/v1/pods/shop/web-1',
  '/api/v1/services/{namespace}/{name}': '/api/v1/services/shop/cache',
  '/api/v1/audit/policies/{namespace}/{name}': '/api/v1/audit/policies/shop/web',
  '/api/v1/addresses/{ip}': '/api/v1/addresses/10.8.0.1',
  '/api/v1/addresses/{ip}/history': '/api/v1/addresses/10.8.0.1/history',
}
const streams = ['/metrics', '/api/v1/flows/stream']

test('every read answers what its schema says, with something to check', async () => {
  const reads = Object.entries(document.paths).filter(([path, { get }]) => get !== undefined && !streams.includes(path))
  expect(reads.length).toBeGreaterThan(18)
  for (const [path, { get }] of reads) {
    const [[type = '', content] = []] = Object.entries(get?.responses['200']?.content ?? {})
    const schema = content?.schema
    expect(schema, path).toBeDefined()
    const answer = await broker.get(examples[path] ?? path)
    expect(answer.status, path).toBe(200)
    const text = await answer.text()
    // An answer in lines has the schema of one line.
    const bodies: unknown[] = (type === ndjsonMediaType ? text.trimEnd().split('\n') : [text]).map((one) =>
      JSON.parse(one),
    )
    for (const body of bodies) expect(Compile(schema ?? {}).Errors(body), path).toEqual([])
    expect(text, path).not.toMatch(/^(\[\]|\{"items":\[\]|$)/)
  }
})

test('an audit on demand answers what its schema says', async () => {
  const body = await broker.send('/api/v1/audit', policy, { 'Content-Type': 'application/yaml' })
  const [schema] = Object.values(document.paths['/api/v1/audit']?.post?.responses['200']?.content ?? {})
  expect(Compile(schema?.schema ?? {}).Errors(body)).toEqual([])
  expect(body).toMatchObject({ groups: [{ subject: 'shop/Deployment/web' }], offenders: [{}, {}] })
})

test('every refusal is a problem as its schema says', async () => {
  const written = document.paths['/api/v1/flows']?.get?.responses['400']?.content?.['application/problem+json']
  const schema = written?.schema ?? {}
  expect(schema).toHaveProperty('properties.code')
  const problem = Compile(schema)
  for (const response of [
    await broker.get('/api/v1/flows?port=x'),
    await broker.get('/nothing'),
    await broker.get('/api/v1/pods/shop/nobody'),
    await broker.get('/%zz'),
    await broker.post('/pod/spec', []),
    await broker.post('/pod/spec', '{'),
    await broker.post('/pod/spec', '{}', { 'Content-Type': 'text/plain' }),
  ]) {
    expect(response.headers.get('content-type')).toMatch(/^application\/problem\+json/)
    expect(problem.Errors(await response.json())).toEqual([])
  }
})

test.each([
  ['get', '/pod/ip/{ip}', '/pod/ip/10.8.0.1?at=yesterday', 'text/plain'],
  ['get', '/pod/ip/{ip}', '/pod/ip/203.0.113.9', 'text/plain'],
  ['get', '/svc/ip/{ip}', '/svc/ip/203.0.113.9', 'text/plain'],
  ['get', '/pod/name/{name}', '/pod/name/nobody', 'text/plain'],
  ['get', '/metrics', '/metrics', 'text/plain'],
  ['get', '/api/v1/pods', '/api/v1/pods', 'application/x-ndjson'],
  ['get', '/api/v1/edges', '/api/v1/edges', 'application/x-ndjson'],
  ['get', '/pod/traffic', '/pod/traffic?limit=x', 'application/problem+json'],
  ['get', '/api/v1/addresses/{ip}', '/api/v1/addresses/x', 'application/problem+json'],
  ['post', '/pod/spec', '/pod/spec', 'application/problem+json'],
  ['post', '/api/v1/flows', '/api/v1/flows', 'application/problem+json'],
  ['put', '/api/v1/audit/policies', '/api/v1/audit/policies', 'application/problem+json'],
])('%s %s documents the status and the type of %s', async (method, route, path, type) => {
  const asked = { method, headers: { Accept: type }, ...(method !== 'get' && { body: '{' }) }
  const response = await fetch(`${broker.url}${path}`, asked)
  await response.text()
  expect(response.headers.get('content-type')).toMatch(type)
  expect(Object.keys(document.paths[route]?.[method]?.responses[response.status]?.content ?? {})).toContain(type)
})

test('the document tells which scope a route needs, and what any route may refuse', () => {
  const post = document.paths['/pod/traffic/batch']?.post
  expect(post).toMatchObject({ security: [{ token: [] }], description: 'A token needs the scope ingest.' })
  expect(Object.keys(post?.responses ?? {})).toEqual([
    '200',
    '400',
    '401',
    '403',
    '408',
    '413',
    '415',
    '422',
    '429',
    '503',
  ])
  expect(document.paths['/health']?.get).toMatchObject({ security: [] })
  expect(Object.keys(document.paths['/api/v1/audit']?.post?.requestBody?.content ?? {})).toContain('application/yaml')
})

test('when the clock jumps back, rows that now lie ahead are refused by name, and the rest goes on', async () => {
  const rows = [
    flowPost({ pod: 'jump', peer: '203.0.113.5', time: '2026-09-10T11:30:00' }),
    flowPost({ pod: 'jump', peer: '203.0.113.6', time: '2026-09-10T09:59:00' }),
  ]
  broker.clock.set('2026-09-10T10:00:00')
  const answer = await broker.send<{ stored: number; bad: object[] }>('/api/v1/flows', rows)
  expect(answer).toMatchObject({ stored: 1, bad: [{ index: 0, field: 'time_stamp' }] })
  await broker.clock.advance(120)
  broker.clock.set('2026-09-12T00:00:00')
  expect(await broker.send('/pod/traffic/batch', rows)).toBe(1)
  await broker.clock.advance(120)
  expect((await broker.get('/health')).status).toBe(200)
})

import { readFileSync } from 'node:fs'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Captured } from '../../src/cli/capture'
import { runWords } from '../run-words'
import { openBroker, type TestBroker } from './running-broker'

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..')
const token = 'read-token-of-sixteen'
let broker: TestBroker

/** The web tier speaks to the database through its Service, and somebody did from an address whose holder came later. */
beforeAll(async () => {
  broker = await openBroker({
    now: '2026-07-23T12:00:00',
    tokens: [
      { source: 'read', value: token, scopes: ['read'] },
      { source: 'ingest', value: 'ingest-token-of-sixteen', scopes: ['ingest', 'read'] },
    ],
  })
  const headers = { Authorization: 'Bearer ingest-token-of-sixteen' }
  const pod = (name: string, ip: string, app: string, started_at: string): object => ({
    pod_name: name,
    pod_namespace: 'shop',
    pod_ip: ip,
    started_at,
    workload_kind: 'Deployment',
    workload_name: app,
    pod_obj: { metadata: { uid: `uid-${name}`, labels: { app, 'pod-template-hash': 'x1' } }, spec: {} },
  })
  await broker.send('/pod/spec', pod('web-1', '10.244.1.11', 'web', '2026-07-01T00:00:00'), headers)
  await broker.send('/pod/spec', pod('db-1', '10.244.1.30', 'db', '2026-07-01T00:00:00'), headers)
  await broker.send('/pod/spec', pod('late-1', '10.244.1.99', 'late', '2026-07-23T11:00:00'), headers)
  const service = {
    svc_ip: '10.96.1.30',
    svc_name: 'db',
    svc_namespace: 'shop',
    service_spec: {
      metadata: { uid: 'uid-svc', creationTimestamp: '2026-07-01T00:00:00Z' },
      spec: { clusterIP: '10.96.1.30', selector: { app: 'db' }, ports: [{ port: 80, targetPort: 3306 }] },
    },
  }
  await broker.send('/svc/spec', service, headers)
  const row = (words: object): object => ({
    pod_namespace: 'shop',
    ip_protocol: 'TCP',
    decision: 'ALLOW',
    time_stamp: '2026-07-23T10:00:00',
    ...words,
  })
  const web = { pod_name: 'web-1', pod_uid: 'uid-web-1', pod_ip: '10.244.1.11', pod_port: '0' }
  const db = { pod_name: 'db-1', pod_uid: 'uid-db-1', pod_ip: '10.244.1.30', pod_port: '3306' }
  await broker.send(
    '/pod/traffic/batch',
    [
      row({ ...web, traffic_type: 'EGRESS', traffic_in_out_ip: '10.96.1.30', traffic_in_out_port: '80' }),
      row({ ...db, traffic_type: 'INGRESS', traffic_in_out_ip: '10.244.1.11', traffic_in_out_port: '0' }),
      row({ ...db, traffic_type: 'INGRESS', traffic_in_out_ip: '10.244.1.99', traffic_in_out_port: '0' }),
    ],
    headers,
  )
})
afterAll(() => broker.stop())

function run(line: string): Promise<Captured> {
  return runWords(line.split(' '))
}

const asking = async (line: string) => {
  process.env.PORTOLAN_TOKEN = token
  try {
    return await run(line)
  } finally {
    delete process.env.PORTOLAN_TOKEN
  }
}

test('policies come from a broker’s flows, pods and Services', async () => {
  const { out, err, code } = await asking(`generate networkpolicy -n shop --broker ${broker.url}`)
  expect({ code, err }).toEqual({
    code: 0,
    err: expect.stringContaining('2 policies, proven: of 3 connections that were seen 3 allowed'),
  })
  expect(out).toContain('# unattributed peer 10.244.1.99 at 2026-07-23T10:00:00')
  expect(out).not.toContain('late')
  expect(out).not.toContain('pod-template-hash')
  expect(out).toContain('port: 3306')
  expect(out).not.toContain('port: 80\n')
})

test('a proposed policy is tried on the broker’s flows', async () => {
  const proposed = join(root, 'samples/flows/proposed.yaml')
  const { out, code } = await asking(`policy audit --broker ${broker.url} --policies ${proposed}`)
  expect(code).toBe(1)
  expect(out).toContain('3 flows, seen 3 times: 2 allowed, 1 denied, 0 unknown')
  expect(out).toContain('10.244.1.99 (unattributed) to shop/db-1')
  expect(readFileSync(proposed, 'utf8')).toContain('app: web')
})

test('a broker that refuses the token, or is away, is a sentence', async () => {
  const refused = await run(`generate networkpolicy -A --broker ${broker.url}`)
  expect(refused).toMatchObject({ code: 2, out: '' })
  expect(refused.err).toContain('show a token with PORTOLAN_TOKEN or --token-file')
  const away = await run('generate networkpolicy -A --broker http://127.0.0.1:1')
  expect(away).toMatchObject({ code: 2, out: '' })
  expect(away.err).toContain('no broker answers on http://127.0.0.1:1')
})

test('only the time that was asked for counts', async () => {
  const { code, err } = await asking(`generate networkpolicy -A --broker ${broker.url} --since 2026-07-23T10:30:00Z`)
  expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining('at no workload was a flow recorded') })
  const bad = await asking(`generate networkpolicy -A --broker ${broker.url} --since yesterday`)
  expect(bad).toMatchObject({ code: 2, err: expect.stringContaining('--since must be one time') })
})

/** What listens at the address, answering each path as told. */
async function listen(answer: (path: string, response: ServerResponse) => void): Promise<Server & { url: string }> {
  const server = createServer(({ url = '' }, response) => answer(url, response))
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as AddressInfo
  return Object.assign(server, { url: `http://127.0.0.1:${port}` })
}

const audit = `policy audit --policies ${join(root, 'samples/flows/proposed.yaml')} --broker`

test.each([
  ['a page', '<html>log in</html>'],
  ['null', 'null'],
  ['objects of another kind', '{"hello":"world"}\n'],
])('whatever else listens there is told, and no bug: %s', async (_, body) => {
  const server = await listen((path, response) => response.end(path.startsWith('/api/v1/pods') ? body : ''))
  for (const line of ['generate networkpolicy -A --broker', audit]) {
    const { out, err, code } = await run(`${line} ${server.url}`)
    expect({ out, code }).toEqual({ out: '', code: 2 })
    expect(err).toMatch(
      /^portolan: what http:.*\/api\/v1\/pods answers is not a Portolan broker’s answer: .+; check --broker$/m,
    )
  }
  server.close()
})

test.each([
  ['within a row', '{"id":"1","firstSeen"'],
  ['between rows', ''],
])('a broker that dies while it answers is told, and nothing is made of half of it: %s', async (_, rest) => {
  const row = {
    direction: 'INGRESS',
    protocol: 'TCP',
    firstSeen: '2026-07-23T10:00:00Z',
    lastSeen: '2026-07-23T10:00:00Z',
  }
  const pod = { namespace: 'shop', name: 'db-1', labels: { app: 'db' }, port: 3306 }
  const server = await listen((path, response) => {
    if (/^\/api\/v1\/(pods|services)/.test(path)) return response.end()
    response.write(
      `${JSON.stringify({ ...row, pod, peer: { address: '10.244.1.11', outcome: { kind: 'never-held' } } })}\n${rest}`,
    )
    setTimeout(() => response.destroy(), 50)
    return response
  })
  for (const line of ['generate networkpolicy -A --broker', audit]) {
    const { out, err, code } = await run(`${line} ${server.url}`)
    expect({ out, code }).toEqual({ out: '', code: 2 })
    expect(err).toMatch(/broke the answer off: .*; ask again/)
  }
  server.close()
})

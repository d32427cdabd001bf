/** Each flow is judged once: by two brokers of one database that both judge, and by a broker that is killed while it judges. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { AuditSummaryRecord } from '../../src/wire/audit-record'
import { findPostgres, startPostgres } from '../store/postgres'
import { webFromFrontend } from './audit-policies'
import { type BrokerProcess, buildProgram, startProcess } from './broker-process'
import { flowPost, podPost } from './messages'
import { openBroker, type TestBroker } from './running-broker'

const found = findPostgres()
const policiesPath = '/api/v1/audit/policies'

async function putPolicy({ url }: { readonly url: string }): Promise<void> {
  const headers = { 'Content-Type': 'application/yaml' }
  const response = await fetch(`${url}${policiesPath}`, { method: 'PUT', headers, body: webFromFrontend })
  expect(response.status, await response.text()).toBe(200)
}

type Reading = { readonly read: <Body>(path: string) => Promise<Body> }

const summaryOf = (broker: Reading) => broker.read<AuditSummaryRecord>('/api/v1/audit/summary')

const size = 20
/** Of a batch, at the one port that the policy names. */
const allowedRows = 15

/** Three of four are a frontend's; a row for each pod and port. */
function batchOf(number: number, port: number, time: string): readonly object[] {
  return Array.from({ length: size }, (_, index) => {
    const web = { pod: `web-${number}-${index}`, namespace: 'shop', ip: '10.1.0.1', port: String(port) }
    return flowPost({ ...web, peer: index % 4 === 0 ? '10.1.0.3' : '10.1.0.2', time })
  })
}

function podsOf(number: number, [start, seen]: readonly [string, string]): readonly object[] {
  const labels = { app: 'web' }
  return Array.from({ length: size }, (_, index) =>
    podPost({ name: `web-${number}-${index}`, ip: `10.9.${number}.${index}`, start, seen, labels }),
  )
}

async function postEnds(broker: Pick<TestBroker, 'send'>, times: readonly [string, string]): Promise<void> {
  const [start, seen] = times
  await broker.send('/pod/spec', podPost({ name: 'front', ip: '10.1.0.2', start, seen, labels: { app: 'frontend' } }))
  await broker.send('/pod/spec', podPost({ name: 'other', ip: '10.1.0.3', start, seen }))
}

test.skipIf(!found.ok)(
  'two brokers on one database judge at once, and no flow twice',
  async () => {
    const server = await startPostgres()
    const database = server.url()
    const brokers = await Promise.all([openBroker({ database }), openBroker({ database })])
    const [first, second] = brokers
    if (first === undefined || second === undefined) throw new RangeError('two were opened')
    const times = ['2026-09-10T08:00:00Z', '2026-09-10T11:59:00'] as const
    await postEnds(first, times)
    for (const pod of podsOf(0, times)) await first.send('/pod/spec', pod)
    await putPolicy(first)
    const rounds = 12
    for (let round = 0; round < rounds; round++) {
      const rows = batchOf(0, 8080 + round, '2026-09-10T11:59:50')
      const posting = brokers.map((broker) => broker.send<number>('/pod/traffic/batch', rows))
      await Promise.all([...posting, ...brokers.map((broker) => broker.clock.advance(15))])
    }
    for (let tries = 0; tries < 100 && (await summaryOf(first)).waiting > 0; tries++) {
      await Promise.all(brokers.map((broker) => broker.clock.advance(15)))
      await sleep(20)
    }
    const { sets, policies, waiting } = await summaryOf(second)
    expect(waiting).toBe(0)
    // Each round has a port of its own, and both brokers got each row: of its rows the policy allows 15 at 8080.
    const flows = { evaluated: rounds * size, allowed: allowedRows, wouldDeny: rounds * size - allowedRows }
    expect(sets).toMatchObject([{ flows }])
    expect(policies).toMatchObject([{ flows }])
    const allowed = await second.read<object[]>('/audit/verdicts?verdict=Allow&limit=500')
    expect(allowed).toHaveLength(allowedRows)
    for (const broker of brokers) await broker.stop()
    server.remove()
  },
  120_000,
)

async function killWhileJudging(args: readonly string[]): Promise<void> {
  const env = { BROKER_REQUESTS_PER_MINUTE: '0', BROKER_AUDIT_INTERVAL_SECS: '1', PEER_LATE_RESOLVE_WINDOW_SECS: '0' }
  const ago = (seconds: number): string => new Date(Date.now() - seconds * 1000).toISOString().slice(0, 19)
  let posted = 0
  let broker: BrokerProcess | undefined
  const kills = 3
  for (let round = 0; round <= kills; round++) {
    broker = await startProcess(args, env)
    const times = [`${ago(3600)}Z`, ago(1)] as const
    if (round === 0) {
      await postEnds(broker, times)
      await putPolicy(broker)
    }
    for (const pod of podsOf(round, times)) await broker.send('/pod/spec', pod)
    for (let batch = 0; batch < 15; batch++) {
      const rows = batchOf(round, 8080 + batch, ago(2))
      posted += await broker.send<number>('/pod/traffic/batch', rows)
    }
    // Somewhere in the first passes.
    if (round < kills) {
      await sleep(700 + 200 * round)
      await broker.end('SIGKILL')
    }
  }
  if (broker === undefined) throw new RangeError('a broker was started')
  const deadline = Date.now() + 60_000
  while ((await summaryOf(broker)).waiting > 0 && Date.now() < deadline) await sleep(100)
  const { sets, policies, waiting } = await summaryOf(broker)
  const allowed = (kills + 1) * allowedRows
  expect(waiting).toBe(0)
  expect(posted).toBe((kills + 1) * 15 * size)
  expect(sets).toMatchObject([{ flows: { evaluated: posted, allowed, wouldDeny: posted - allowed, unknown: 0 } }])
  expect(policies).toMatchObject([{ flows: { evaluated: posted, allowed, wouldDeny: posted - allowed } }])
  expect(await broker.read<object[]>('/audit/verdicts?verdict=Allow&limit=500')).toHaveLength(allowed)
  expect(await broker.end('SIGTERM')).toBe(0)
}

test('a broker that is killed while it judges, and started again, has counted every flow once: embedded', async () => {
  buildProgram()
  const folder = mkdtempSync(join(tmpdir(), 'portolan-audit-'))
  await killWhileJudging(['--data', join(folder, 'data')])
  rmSync(folder, { recursive: true, force: true })
}, 180_000)

test.skipIf(!found.ok)(
  'a broker that is killed while it judges, and started again, has counted every flow once: PostgreSQL',
  async () => {
    buildProgram()
    const server = await startPostgres()
    await killWhileJudging(['--database', server.url()])
    server.remove()
  },
  180_000,
)

/** PostgreSQL that goes away and comes back, and two brokers that share one. */
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { FlowRecord } from '../../src/wire/flow-record'
import { findPostgres, startPostgres } from '../store/postgres'
import { flowPost, podPost } from './messages'
import { openBroker, type TestBroker } from './running-broker'

const found = findPostgres()

describe.skipIf(!found.ok)('postgres', () => {
  test('while the database is away requests get 503 with a time to wait, and then work again', async () => {
    const server = await startPostgres()
    onTestFinished(() => server.remove())
    const broker = await openBroker({ database: server.url(), settings: { requestsPerMinute: 0 } })
    const acknowledged: number[] = []
    const statuses = new Set<number>()
    let isOver = false
    const clients = Array.from({ length: 4 }, async (_, client) => {
      for (let batch = 0; !isOver; batch++) {
        // Large batches have connections of their own.
        const rows = Array.from({ length: client % 2 === 0 ? 1 : 100 }, (_, index) =>
          flowPost({
            pod: `load-${client}`,
            peer: `203.0.113.${index}`,
            port: String(batch + 1),
            time: '2026-09-10T11:00:00',
          }),
        )
        const response = await broker.post('/pod/traffic/batch', rows)
        statuses.add(response.status)
        if (response.status === 200) acknowledged.push(client)
        else {
          expect(Number(response.headers.get('Retry-After'))).toBeGreaterThan(0)
          expect(await response.json()).toMatchObject({ status: 503, code: 'unavailable' })
          await sleep(50)
        }
      }
    })
    while (acknowledged.length < 20) await sleep(20)
    server.stop('immediate')
    while (!statuses.has(503)) await sleep(20)
    const health = await broker.get('/health')
    expect([health.status, await health.json()]).toMatchObject([503, { status: 'unavailable', database: 'away' }])
    expect((await broker.get('/api/v1/flows')).status).toBe(503)
    expect(await (await broker.get('/metrics')).text()).toContain('broker_db_reachable 0')
    const before = acknowledged.length
    server.start()
    while (acknowledged.length < before + 20) await sleep(20)
    isOver = true
    await Promise.all(clients)
    expect([...statuses].sort()).toEqual([200, 503])
    expect((await broker.get('/health')).status).toBe(200)
    const lines = await (await broker.get('/api/v1/flows', { Accept: 'application/x-ndjson' })).text()
    expect(lines.split('\n').filter(Boolean).length).toBeGreaterThanOrEqual(acknowledged.length)
    await broker.stop()
  }, 120_000)

  test('of two brokers each pass is done by one, and each tells the flows of both', async () => {
    const server = await startPostgres()
    onTestFinished(() => server.remove())
    const brokers = [
      await openBroker({ database: server.url() }),
      await openBroker({ database: server.url() }),
    ] as const
    const [left, right] = brokers
    const streams = await Promise.all(brokers.map((broker) => listenTo(broker)))
    const rows = Array.from({ length: 200 }, (_, index) =>
      flowPost({ pod: `two-${index}`, peer: '10.6.0.1', time: '2026-09-10T11:59:50' }),
    )
    expect(await left.send('/pod/traffic/batch', rows.slice(0, 100))).toBe(100)
    expect(await right.send('/pod/traffic/batch', rows.slice(100))).toBe(100)
    // What was stored before each knew that the other listens is caught up with.
    await Promise.all(brokers.map((broker) => broker.clock.advance(3)))
    for (const stream of streams) {
      while (stream.pods.size < 200) await sleep(20)
      await stream.close()
    }
    const pod = podPost({ name: 'shared', ip: '10.6.0.1', start: '2026-09-10T11:00:00Z', seen: '2026-09-10T12:00:30' })
    await right.send('/pod/spec', pod)
    await Promise.all(brokers.map((broker) => broker.clock.advance(60)))
    while ((await sumOf(brokers, 'pass_rows_total', 'late-resolve')) < 200) await sleep(20)
    while ((await sumOf(brokers, 'pass_runs_total', 'late-resolve')) < 2) await sleep(20)
    expect(await sumOf(brokers, 'pass_rows_total', 'late-resolve')).toBe(200)
    const { items } = await left.read<{ items: FlowRecord[] }>('/api/v1/flows?limit=1000')
    expect(items.every(({ peer, hits }) => peer.name === 'shared' && hits === 1)).toBe(true)
    await Promise.all(brokers.map((broker) => broker.stop()))
  }, 120_000)

  test('two brokers that are given one flow at once keep one row and count both', async () => {
    const server = await startPostgres()
    onTestFinished(() => server.remove())
    const brokers = [
      await openBroker({ database: server.url() }),
      await openBroker({ database: server.url() }),
    ] as const
    const batch = Array.from({ length: 100 }, (_, index) =>
      flowPost({ pod: 'same', peer: `203.0.113.${index}`, time: '2026-09-10T11:00:00' }),
    )
    const rounds = 5
    const stored = await Promise.all(
      Array.from({ length: rounds }, (_, round) =>
        brokers.map((broker) =>
          broker.send<number>('/pod/traffic/batch', round % 2 === 0 ? batch : batch.toReversed()),
        ),
      ).flat(),
    )
    expect(stored.reduce((sum, count) => sum + count, 0)).toBe(100)
    const { items } = await brokers[0].read<{ items: FlowRecord[] }>('/api/v1/flows?limit=1000')
    expect(items.map(({ hits }) => hits)).toEqual(Array(100).fill(2 * rounds))
    await Promise.all(brokers.map((broker) => broker.stop()))
  }, 120_000)
})

async function sumOf(brokers: readonly TestBroker[], metric: string, pass: string): Promise<number> {
  const texts = await Promise.all(brokers.map(async (broker) => (await broker.get('/metrics')).text()))
  const pattern = new RegExp(`^portolan_broker_${metric}\\{pass="${pass}"[^}]*\\} (\\d+)$`, 'gm')
  return texts.flatMap((text) => [...text.matchAll(pattern)]).reduce((sum, [, count]) => sum + Number(count), 0)
}

async function listenTo(broker: TestBroker) {
  const ending = new AbortController()
  const response = await fetch(`${broker.url}/api/v1/flows/stream`, { signal: ending.signal })
  const pods = new Set<string>()
  const reading = (async () => {
    let text = ''
    for await (const chunk of response.body ?? []) {
      text += new TextDecoder().decode(chunk)
      const whole = text.lastIndexOf('\n\n')
      for (const [, name] of text.slice(0, whole + 2).matchAll(/"pod":\{"namespace":"db","name":"([^"]+)"/g))
        pods.add(String(name))
      text = text.slice(whole + 2)
    }
  })().catch(() => {})
  return {
    pods,
    close: () => {
      ending.abort()
      return reading
    },
  }
}

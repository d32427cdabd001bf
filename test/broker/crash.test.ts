/** kill -9 in the middle of ingest, again and again: what was acknowledged is there, and a client’s retry doubles nothing. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, expect, test } from 'vitest'
import type { FlowRecord } from '../../src/wire/flow-record'
import { randomOf, seedOfRun } from '../random/random'
import { findPostgres, startPostgres } from '../store/postgres'
import { type BrokerProcess, buildProgram, shortLived, startProcess } from './broker-process'
import { flowPost } from './messages'

const crashes = Number(process.env.PORTOLAN_CRASHES ?? 10)
const clients = 3
const rowsOfBatch = 100
/** Milliseconds that a broker may take to acknowledge its first batch. */
const mostSilence = 60_000
const seed = seedOfRun()
const random = randomOf(seed)

type Batch = { readonly key: string; readonly pod: string; readonly rows: readonly object[] }

let batches = 0
function nextBatch(): Batch {
  const pod = `crash-${++batches}`
  const time = new Date().toISOString().slice(0, -1)
  const rows = Array.from({ length: rowsOfBatch }, (_, index) =>
    flowPost({ pod, peer: `203.0.113.${index}`, port: String(1000 + index), time }),
  )
  return { key: crypto.randomUUID(), pod, rows }
}

/** Posts until the broker is ended; what was not acknowledged stays for the next time. */
async function ingestUntilEnded(
  broker: BrokerProcess,
  { retry, acknowledged, ending }: { retry: Batch[]; acknowledged: Set<string>; ending: AbortSignal },
): Promise<void> {
  while (!ending.aborted) {
    const batch = retry.pop() ?? nextBatch()
    try {
      const stored = await broker.send<number>('/pod/traffic/batch', batch.rows, { 'Idempotency-Key': batch.key })
      expect(stored).toBe(rowsOfBatch)
      acknowledged.add(batch.pod)
    } catch (error) {
      if (error instanceof RangeError && !/^(429|503) /.test(error.message)) throw error
      retry.push(batch)
      // A busy database may refuse a batch; the client asks again, as it does of one that is gone.
      await sleep(20)
    }
  }
}

async function crashAgainAndAgain(name: string, args: readonly string[]): Promise<void> {
  const acknowledged = new Set<string>()
  const retry: Batch[] = []
  process.stderr.write(`${name}: PORTOLAN_SEED=${seed} kills at these moments again\n`)
  for (let crash = 1; crash <= crashes; crash++) {
    const broker = await startProcess(args, { BROKER_REQUESTS_PER_MINUTE: '0' }, shortLived)
    const ending = new AbortController()
    const work = { retry, acknowledged, ending: ending.signal }
    const broken: unknown[] = []
    const working = Array.from({ length: clients }, () =>
      ingestUntilEnded(broker, work).catch((error) => broken.push(error)),
    )
    const before = acknowledged.size
    for (const start = Date.now(); acknowledged.size === before; await sleep(5))
      if (broken.length > 0 || Date.now() - start > mostSilence)
        throw new RangeError(`no batch is acknowledged: ${broken.join(', ')} ${broker.output()}`)
    await sleep(random.below(150))
    ending.abort()
    expect(await broker.end('SIGKILL')).toBeNull()
    await Promise.all(working)
    expect(broken).toEqual([])
    if (crash % 10 === 0 && crashes > 10) process.stderr.write(`${name}: ${crash} of ${crashes} kills\n`)
  }
  const broker = await startProcess(args, { BROKER_REQUESTS_PER_MINUTE: '0' }, shortLived)
  for (const batch of retry) {
    await broker.send('/pod/traffic/batch', batch.rows, { 'Idempotency-Key': batch.key })
    acknowledged.add(batch.pod)
  }
  await expectOnce(broker, acknowledged)
  expect(await broker.end('SIGTERM')).toBe(0)
}

async function expectOnce(broker: BrokerProcess, acknowledged: ReadonlySet<string>): Promise<void> {
  const response = await broker.get('/api/v1/flows', { Accept: 'application/x-ndjson' })
  const flows = (await response.text())
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as FlowRecord)
  expect(flows.filter(({ hits }) => hits !== 1)).toEqual([])
  const rows = new Map<string, number>()
  for (const { pod } of flows) rows.set(pod.name, (rows.get(pod.name) ?? 0) + 1)
  const lost = [...acknowledged].filter((pod) => rows.get(pod) !== rowsOfBatch)
  expect(lost).toEqual([])
  expect(rows.size).toBe(acknowledged.size)
}

beforeAll(() => {
  buildProgram()
}, 120_000)

// Together: while one starts, the other stores.
test.concurrent(`the embedded database survives ${crashes} kills`, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'portolan-crash-'))
  try {
    await crashAgainAndAgain('embedded', ['--data', join(folder, 'data')])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}, 3_600_000)

const found = findPostgres()

test.skipIf(!found.ok).concurrent(
  `on PostgreSQL ${crashes} kills lose nothing`,
  async () => {
    const server = await startPostgres()
    try {
      await crashAgainAndAgain('PostgreSQL', ['--database', server.url()])
    } finally {
      server.remove()
    }
  },
  3_600_000,
)

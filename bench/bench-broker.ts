/** The broker measured as a process: batches over HTTP against `psql \copy` of the same rows, health meanwhile, its memory. */
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { IncomingFlow } from '#flows/flow'
import { printNaive } from '#flows/instant'
import { type BenchDatabase, type BenchRows, onPostgres } from './bench-postgres'
import { copyBack, median, randomBatches, rate, type StoreSize, seedHolders } from './bench-store'

const connections = 4
/** Seldom enough not to be a load of its own. */
const probeMillis = 100

type Round = { readonly own: number; readonly copy: number; readonly health: readonly number[] }

/** Rows of the performance table, or none with a sentence why. */
export async function benchBroker(
  size: StoreSize,
  rounds: number,
  say: (sentence: string) => void,
): Promise<BenchRows> {
  const folder = mkdtempSync(join(tmpdir(), 'portolan-bench-broker-'))
  try {
    return await onPostgres({ subject: 'the broker is', connections: 2, say }, async (database) => {
      say(`writing ${size.pods} pods and ${size.pastHolders} past holders …`)
      await seedHolders(database.engine, size)
      const broker = await startBroker(['--database', database.url])
      // Caches, code and plans are then as warm as in a broker that has run for a minute.
      await ingest(broker.port, randomBatches(size, 50).map(bodyOf), size.flows)
      const measured: Round[] = []
      for (let round = 1; round <= rounds; round++) {
        say(`batches over HTTP and \\copy of ${size.flows} flows, round ${round} of ${rounds} …`)
        const one = await measureRound(database, {
          port: broker.port,
          size,
          file: join(folder, 'rows'),
          seed: 100 + round,
        })
        say(`  ${rate(one.own)} over HTTP, ${rate(one.copy)} by \\copy`)
        measured.push(one)
      }
      const memory = broker.peakMegabytes()
      await broker.end()
      return [...rowsOf(measured, memory), await measureEmbedded(size, join(folder, 'data'), say)]
    })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

type RoundPlan = { readonly port: number; readonly size: StoreSize; readonly file: string; readonly seed: number }

async function measureRound({ engine, url }: BenchDatabase, { port, size, file, seed }: RoundPlan): Promise<Round> {
  const bodies = randomBatches(size, seed).map(bodyOf)
  await engine.query({ text: 'truncate flows, edge_batches' })
  const { rowsPerSecond, health } = await ingest(port, bodies, size.flows)
  const copied = copyBack(url, file)
  return { own: rowsPerSecond, copy: (size.flows / copied) * 1000, health }
}

function rowsOf(measured: readonly Round[], memory: number): readonly (readonly string[])[] {
  const [own, copy] = [median(measured.map((one) => one.own)), median(measured.map((one) => one.copy))]
  const health = measured.flatMap((one) => one.health).toSorted((left, right) => left - right)
  const slow = health[Math.floor(health.length * 0.99)] ?? Number.NaN
  return [
    [
      'batches of 1,000 over HTTP, against \\copy of the same rows',
      rate(own),
      rate(copy),
      (own / copy).toFixed(2),
      '0.5',
      `${memory} MB (300)`,
    ],
    [
      `health meanwhile, 99th of 100 (median ${median(health).toFixed(0)} ms), against 100 ms`,
      `${slow.toFixed(0)} ms`,
      '100 ms',
      (slow / 100).toFixed(2),
      '1',
      '',
    ],
  ]
}

/** The same batches into the embedded database, which knows no pods here. */
async function measureEmbedded(
  size: StoreSize,
  data: string,
  say: (sentence: string) => void,
): Promise<readonly string[]> {
  say('the same with the embedded database …')
  const broker = await startBroker(['--data', data])
  const some = { ...size, flows: Math.min(size.flows, 50_000) }
  const { rowsPerSecond, health } = await ingest(broker.port, randomBatches(some, 7).map(bodyOf), some.flows)
  const memory = broker.peakMegabytes()
  await broker.end()
  return [
    `the same into the embedded database, without pods (health: median ${median(health).toFixed(0)} ms)`,
    rate(rowsPerSecond),
    '',
    '',
    '',
    `${memory} MB (1500)`,
  ]
}

/** As bytes, so that sending them costs the processors that are measured as little as may be. */
export function bodyOf(flows: readonly IncomingFlow[]): Uint8Array {
  const text = JSON.stringify(
    flows.map((flow) => ({
      pod_name: flow.pod.name,
      pod_namespace: flow.pod.namespace,
      pod_ip: flow.pod.address,
      pod_port: String(flow.ownPort),
      ip_protocol: flow.protocol,
      traffic_type: flow.direction,
      traffic_in_out_ip: flow.peerAddress,
      traffic_in_out_port: String(flow.peerPort),
      decision: flow.decision,
      time_stamp: printNaive(flow.time),
    })),
  )
  return new TextEncoder().encode(text)
}

export async function ingest(
  port: number,
  bodies: readonly Uint8Array[],
  rows: number,
): Promise<{ readonly rowsPerSecond: number; readonly health: readonly number[] }> {
  const waiting = [...bodies]
  const health: number[] = []
  let isOver = false
  const probing = (async () => {
    while (!isOver) {
      const asked = performance.now()
      await ask(port, { path: '/health', method: 'GET' })
      health.push(performance.now() - asked)
      await sleep(probeMillis)
    }
  })()
  const start = performance.now()
  await Promise.all(
    Array.from({ length: connections }, async () => {
      for (let body = waiting.pop(); body !== undefined; body = waiting.pop()) await post(port, body)
    }),
  )
  const rowsPerSecond = (rows / (performance.now() - start)) * 1000
  isOver = true
  await probing
  return { rowsPerSecond, health }
}

const agent = new Agent({ keepAlive: true, maxSockets: connections + 1 })

function post(port: number, body: Uint8Array): Promise<void> {
  return ask(
    port,
    {
      path: '/pod/traffic/batch',
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'Content-Length': body.length },
    },
    body,
  )
}

type Question = {
  readonly path: string
  readonly method: string
  readonly headers?: Readonly<Record<string, string | number>>
}

function ask(port: number, question: Question, body?: Uint8Array): Promise<void> {
  return new Promise((done, fail) => {
    const asking = request({ host: '127.0.0.1', port, agent, ...question }, (response) => {
      response.resume()
      response.on('end', () =>
        response.statusCode === 200 ? done() : fail(new Error(`${question.path}: ${response.statusCode}`)),
      )
    })
    asking.on('error', fail)
    asking.end(body)
  })
}

export async function startBroker(place: readonly string[]) {
  // Rows are of today’s noon, which may lie ahead, and nobody reports the pods again.
  const limits = [
    '--future-tolerance',
    '86400',
    '--stale-alive',
    '0',
    '--requests-per-minute',
    '0',
    '--log-level',
    'warn',
  ]
  const child = spawn(process.execPath, ['bin/portolan.js', 'broker', '--listen', '127.0.0.1:0', ...limits, ...place], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  const port = await new Promise<number>((done, fail) => {
    child.stdout.on('data', (chunk) => {
      output += String(chunk)
      const found = /answers on http:\/\/127\.0\.0\.1:(\d+)/.exec(output)?.[1]
      if (found !== undefined) done(Number(found))
    })
    child.once('exit', (code) => fail(new Error(`the broker ended with ${code}`)))
  })
  return {
    port,
    pid: child.pid,
    peakMegabytes: () => peakMegabytes(child.pid),
    end: () =>
      new Promise<void>((done) => {
        child.once('exit', () => done())
        child.kill('SIGTERM')
      }),
  }
}

/** What the kernel counted for a process; 0 when it is gone. */
export function peakMegabytes(pid: number | undefined): number {
  try {
    return Math.round(Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024)
  } catch {
    return 0
  }
}

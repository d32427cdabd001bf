/** `portolan generate` from a broker on PostgreSQL, as two processes: the time of the command, and the memory of both. */
import { spawn } from 'node:child_process'
import type { ObservedFlow } from '#flows/observed-flow'
import { storeOf } from '#store/open-store'
import type { Store } from '#store/store'
import { peakMegabytes, startBroker } from './bench-broker'
import { type BenchRows, onPostgres } from './bench-postgres'
import { bigFlows } from './big-flows'

const connections = 4
const dayMicros = 86_400_000_000

/** Rows of the performance table, or none with a sentence why. */
export async function benchGenerate(rows: number, rounds: number, say: (sentence: string) => void): Promise<BenchRows> {
  return onPostgres({ subject: 'policies from a broker are', connections, say }, async ({ engine, url }) => {
    say(`writing ${rows} flows of 300 workloads …`)
    await seed(storeOf(engine, [], undefined), rows)
    await engine.query({ text: 'vacuum analyze' })
    const broker = await startBroker(['--database', url, '--flow-retention-days', '0'])
    const runs: { readonly seconds: number; readonly megabytes: number }[] = []
    for (let round = 1; round <= rounds; round++) {
      say(`policies from a broker, round ${round} of ${rounds} …`)
      runs.push(await generate(broker.port))
    }
    const own = broker.peakMegabytes()
    await broker.end()
    const seconds = runs.map((run) => run.seconds).toSorted((left, right) => left - right)[rounds >> 1] ?? Number.NaN
    const megabytes = Math.max(...runs.map((run) => run.megabytes))
    return [
      [
        `the same from a broker on PostgreSQL, whole command, against 10 s`,
        `${seconds.toFixed(2)} s`,
        '10.00 s',
        (seconds / 10).toFixed(2),
        '1',
        `${megabytes} MB (300), the broker ${own} MB`,
      ],
    ]
  })
}

/** Pods first, so that each flow is stamped as `bigFlows` says it was. */
async function seed(store: Store, rows: number): Promise<void> {
  const known = new Set<string>()
  const limits = { futureSeconds: dayMicros, pastSeconds: dayMicros }
  for (const flows of bigFlows(rows)) {
    const unknown = flows.filter(({ pod }) => pod.uid !== null && !known.has(pod.uid))
    for (const { pod, firstSeen } of unknown) {
      if (pod.uid === null || known.has(pod.uid)) continue
      known.add(pod.uid)
      await putPod(store, pod, firstSeen - dayMicros)
    }
    const waiting = Array.from({ length: flows.length / 1000 }, (_, at) => flows.slice(at * 1000, (at + 1) * 1000))
    await Promise.all(
      Array.from({ length: connections }, async () => {
        for (let batch = waiting.pop(); batch !== undefined; batch = waiting.pop()) {
          const now = batch[0]?.lastSeen ?? 0
          await store.ingest({ rows: batch.map((flow) => ({ ...flow, time: flow.firstSeen })), now, limits })
        }
      }),
    )
  }
}

async function putPod(store: Store, pod: ObservedFlow['pod'], startedAt: number): Promise<void> {
  const { namespace, name, uid, address, workload, labels } = pod
  await store.putPod(
    {
      namespace: namespace ?? '',
      name,
      uid,
      addresses: address === null ? [] : [address],
      startedAt,
      isHostNetwork: false,
      workload,
      labels,
    },
    startedAt + 1,
  )
}

function generate(port: number): Promise<{ readonly seconds: number; readonly megabytes: number }> {
  const start = performance.now()
  const child = spawn(
    process.execPath,
    ['bin/portolan.js', 'generate', 'networkpolicy', '-A', '--broker', `http://127.0.0.1:${port}`],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  )
  let megabytes = 0
  const poll = setInterval(() => {
    megabytes = Math.max(megabytes, peakMegabytes(child.pid))
  }, 20)
  let errors = ''
  child.stderr.on('data', (chunk) => {
    errors += String(chunk)
  })
  return new Promise((done, fail) => {
    child.once('close', (code) => {
      clearInterval(poll)
      if (code === 0) done({ seconds: (performance.now() - start) / 1000, megabytes })
      else fail(new Error(`portolan generate ended with ${code}: ${errors.slice(0, 500)}`))
    })
  })
}

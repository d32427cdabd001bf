/** Ingest measured: flows stamped through the store against `psql \copy` of the same rows into the same PostgreSQL; edges of a day. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { IncomingFlow } from '#flows/flow'
import { microsPerSecond } from '#flows/instant'
import type { Engine } from '#store/engine'
import { storeOf } from '#store/open-store'
import type { Store } from '#store/store'
import { type BenchRows, onPostgres } from './bench-postgres'

export type StoreSize = {
  readonly pods: number
  readonly pastHolders: number
  readonly flows: number
  readonly edges: number
}

const batchRows = 1000
const atOnce = 4
/** The middle of today, so that the rows lie in one partition whatever the hour. */
const noon = (Math.floor(Date.now() / 86_400_000) * 86_400 + 43_200) * microsPerSecond

/** Rows of the performance table, or none with a sentence why. */
export async function benchStore(size: StoreSize, rounds: number, say: (sentence: string) => void): Promise<BenchRows> {
  const folder = mkdtempSync(join(tmpdir(), 'portolan-bench-store-'))
  try {
    return await onPostgres({ subject: 'the store is', connections: atOnce, say }, async ({ engine, url }) => {
      const store = storeOf(engine, [], url)
      say(`writing ${size.pods} pods and ${size.pastHolders} past holders …`)
      await seedHolders(engine, size)
      const ratios: { readonly own: number; readonly copy: number }[] = []
      for (let round = 1; round <= rounds; round++) {
        say(`ingest and \\copy of ${size.flows} flows, round ${round} of ${rounds} …`)
        ratios.push(await measureRound(engine, store, url, { size, file: join(folder, 'rows'), seed: round }))
      }
      const [own, copy] = [median(ratios.map((one) => one.own)), median(ratios.map((one) => one.copy))]
      say(`reading the ${size.edges} edges of a day …`)
      const edges = await measureEdges(engine, store, size.edges)
      return [
        [
          'stamped ingest, 4 batches at once, against \\copy of the same rows',
          rate(own),
          rate(copy),
          (own / copy).toFixed(2),
          '0.5',
          '',
        ],
        [
          `${size.edges} edges of a day read whole, against 1 s`,
          `${(edges / 1000).toFixed(2)} s`,
          '1.00 s',
          (edges / 1000).toFixed(2),
          '1',
          '',
        ],
      ]
    })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

export async function seedHolders(engine: Engine, { pods, pastHolders }: StoreSize): Promise<void> {
  const per = Math.ceil(pastHolders / pods)
  await engine.query({
    text: `insert into edge_ends (end_hash, kind, namespace, workload_kind, workload_name)
      select md5('end' || i)::uuid, 'pod', 'ns-' || i % 50, 'Deployment', 'app-' || i from generate_series(0, $1::int / 10) i`,
    values: [pods],
  })
  await engine.query({
    text: `insert into label_sets (labels_hash, labels) select md5('labels' || i)::uuid, jsonb_build_object('app', 'app-' || i)
      from generate_series(0, $1::int / 10) i`,
    values: [pods],
  })
  // Each address was held by several pods one after the other, a day each; the last of them lives.
  await engine.query({
    text: `insert into pods (pod_key, namespace, name, uid, addresses, started_at, is_host_network, workload_kind, workload_name,
        labels_id, end_id, content_hash, first_seen, last_seen, is_dead, died_at, death_reason, allowed_until)
      select 'uid-' || i || '-' || g, 'ns-' || (i / 10) % 50, 'app-' || i / 10 || '-' || i % 10 || '-' || g, 'uid-' || i || '-' || g,
        array[host], started, false, 'Deployment', 'app-' || i / 10,
        1 + i / 10, 4 + i / 10, '', started, seen, g > 0, case when g > 0 then seen end, case when g > 0 then 'marked' end,
        case when g > 0 then seen else 'infinity' end
      from generate_series(0, $1::int - 1) i, generate_series(0, $2::int) g,
        lateral (select host(inet '10.0.0.0' + i) as host, to_timestamp($3::float8) - (g + 1) * interval '1 day' as started,
          to_timestamp($3::float8) - g * interval '1 day' - interval '1 hour' as seen) t`,
    values: [pods, per, noon / microsPerSecond],
  })
  await engine.query({
    text: `insert into pod_addresses (address, pod_id, namespace, name, uid, workload_kind, workload_name, labels_id, end_id, is_host_network, is_dead, started_at, held_from, last_seen,
        died_at, death_reason, allowed_until)
      select addresses[1], pod_id, namespace, name, uid, workload_kind, workload_name, labels_id, end_id, false, is_dead, started_at, started_at, last_seen, died_at, death_reason,
        allowed_until from pods`,
  })
  await engine.query({ text: 'vacuum analyze' })
  // What was written here is on the disk, and its log is there to be used again, before anything is measured.
  await engine.query({ text: 'checkpoint' })
}

type Round = { readonly size: StoreSize; readonly file: string; readonly seed: number }

async function measureRound(
  engine: Engine,
  store: Store,
  url: string,
  { size, file, seed }: Round,
): Promise<{ readonly own: number; readonly copy: number }> {
  await engine.query({ text: 'truncate flows, edge_batches' })
  const batches = randomBatches(size, seed)
  // Plans and partition are there before the clock starts.
  await store.ingest({ rows: batches[0]?.slice(0, 1) ?? [], now: noon })
  await engine.query({ text: 'truncate flows, edge_batches' })
  const start = performance.now()
  const waiting = [...batches]
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (let rows = waiting.pop(); rows !== undefined; rows = waiting.pop()) await store.ingest({ rows, now: noon })
    }),
  )
  const own = (size.flows / (performance.now() - start)) * 1000
  return { own, copy: (size.flows / copyBack(url, file)) * 1000 }
}

/** The rows of `flows`, stamped already, into the same table, emptied: milliseconds. */
export function copyBack(url: string, file: string): number {
  psql(url, `\\copy (select * from flows) to '${file}'`)
  psql(url, 'truncate flows')
  const start = performance.now()
  psql(url, `\\copy flows from '${file}'`)
  return performance.now() - start
}

export function randomBatches({ pods, flows }: StoreSize, seed: number): readonly (readonly IncomingFlow[])[] {
  let state = seed * 2_654_435_761
  const random = (below: number): number => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) >>> 0
    return ((state ^ (state >>> 13)) >>> 0) % below
  }
  const address = (index: number): string => `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`
  return Array.from({ length: flows / batchRows }, (_, batch) =>
    Array.from({ length: batchRows }, (_, index) => {
      const from = random(pods)
      const isOutside = random(10) === 0
      return {
        pod: {
          namespace: `ns-${Math.floor(from / 10) % 50}`,
          name: `app-${Math.floor(from / 10)}-${from % 10}-0`,
          address: address(from),
        },
        direction: index % 2 === 0 ? 'EGRESS' : 'INGRESS',
        protocol: 'TCP',
        ownPort: 8080,
        peerAddress: isOutside ? `93.${random(200)}.${random(256)}.${random(256)}` : address(random(pods)),
        peerPort: 1024 + random(60_000),
        decision: 'ALLOW',
        time: noon - random(3_600) * microsPerSecond + batch,
      } satisfies IncomingFlow
    }),
  )
}

async function measureEdges(engine: Engine, store: Store, edges: number): Promise<number> {
  await engine.query({
    text: `insert into edges (day, from_end, to_end, is_ingress, protocol, port, decision, hits_by_hour, first_seen, last_seen)
      select (to_timestamp($2::float8) at time zone 'UTC')::date, 4 + i % 10000, 4 + (i * 7919) % 10000, false, 'TCP', 1 + i / 10000,
        'ALLOW', array_fill(30::bigint, array[24]), to_timestamp($2::float8), to_timestamp($2::float8)
      from generate_series(0, $1::int - 1) i on conflict do nothing`,
    values: [edges, noon / microsPerSecond],
  })
  await engine.query({ text: 'vacuum analyze edges' })
  const start = performance.now()
  let cursor: string | undefined
  do {
    const page = await store.edges(
      { since: noon - 12 * 3_600 * microsPerSecond, until: noon + 12 * 3_600 * microsPerSecond - 1 },
      { limit: 20_000, ...(cursor === undefined ? {} : { cursor }) },
    )
    cursor = page.next
  } while (cursor !== undefined)
  return performance.now() - start
}

function psql(url: string, command: string): void {
  const done = spawnSync('psql', ['--quiet', '--no-psqlrc', '-v', 'ON_ERROR_STOP=1', url, '-c', command], {
    encoding: 'utf8',
  })
  if (done.status !== 0) throw new Error(`psql failed: ${done.stderr ?? done.error?.message}`)
}

export function median(values: readonly number[]): number {
  return [...values].sort((left, right) => left - right)[Math.floor(values.length / 2)] ?? Number.NaN
}

export function rate(rowsPerSecond: number): string {
  return `${Math.round(rowsPerSecond / 100) / 10} k rows/s`
}

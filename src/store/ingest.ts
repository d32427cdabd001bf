/** Stores a batch of flows: bad rows are named, the others stored once, whatever else happens at the same time. */
import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { Failure } from '#base/failure'
import { addressRange, canonicalAddress } from '#flows/address'
import { checkFlow } from '#flows/check-flow'
import type { BadRow, IncomingFlow } from '#flows/flow'
import { type Instant, printDay } from '#flows/instant'
import { errorCode, isBadValue, isWorthRetrying } from './database-failure'
import { arrayText, type Engine, type Session, type Statement } from './engine'
import { ingestText } from './ingest-sql'
import { hashUuid } from './name-sets'
import { ensureDays } from './partitions'
import type { FlowBatch, IngestAnswer, IngestLimits } from './store'

/** A row of a batch with its place there. */
type Placed = { readonly index: number; readonly flow: IncomingFlow }

/** `digest` is of all rows, whatever became of them. `wantsKeys`: somebody listens, so the keys of what was written are wanted too. */
type Settings = {
  readonly key: string | null
  readonly digest: string | null
  readonly now: Instant
  readonly wantsKeys: boolean
}

type Written = IngestAnswer & { readonly keys: readonly string[] }

type Counts = {
  readonly stored: number
  readonly merged: number
  /** Answers of before digests were kept have none. */
  readonly replay: (Omit<IngestAnswer, 'isReplay'> & { readonly digest?: string }) | null
  readonly written: readonly string[] | null
}

const defaultLimits: IngestLimits = { futureSeconds: 300, pastSeconds: 14 * 86_400 }
const mostTries = 8
/** From so many rows on a statement is work for the database’s processors; below, most of its time is the way there and back. */
const bulkRows = 100

export async function ingest(engine: Engine, batch: FlowBatch, wantsKeys: boolean): Promise<Written> {
  const { good, bad } = sort(batch)
  const key = batch.idempotencyKey ?? null
  const settings: Settings = { key, digest: key === null ? null : digestOf(batch.rows), now: batch.now, wantsKeys }
  const connections = good.length < bulkRows ? engine : engine.bulk
  return retried(engine, good, async () => {
    try {
      return await storeAll(connections, good, settings, bad)
    } catch (error) {
      if (!isBadValue(error) || isOurs(error)) throw error
      return await storeOneByOne(connections, good, settings, bad)
    }
  })
}

/** What makes two batches the same: an id that a client makes anew for each try does not tell them apart. */
function digestOf(rows: readonly IncomingFlow[]): string {
  return hashUuid(JSON.stringify(rows.map(({ id: _id, ...row }) => row)))
}

function sort(batch: FlowBatch): { readonly good: readonly Placed[]; readonly bad: readonly BadRow[] } {
  const limits = { ...defaultLimits, ...batch.limits, now: batch.now }
  const good: Placed[] = []
  const bad: BadRow[] = []
  for (const [index, flow] of batch.rows.entries()) {
    const complaint = checkFlow(flow, limits)
    if (complaint === undefined) good.push({ index, flow })
    else bad.push({ index, ...complaint })
  }
  return { good, bad }
}

/** Deadlocks, a day without a partition yet, and a batch of the same key that was quicker: all are better the next time. */
async function retried<Result>(engine: Engine, good: readonly Placed[], work: () => Promise<Result>): Promise<Result> {
  for (let tries = 1; ; tries++) {
    try {
      return await work()
    } catch (error) {
      if (tries === mostTries) throw error
      if (isMissingPartition(error)) await ensureDays(engine, [...new Set(good.map(({ flow }) => printDay(flow.time)))])
      else if (isWorthRetrying(error)) await wait(2 ** tries * Math.random() * 5)
      else if (!isKeyTaken(error)) throw error
    }
  }
}

async function storeAll(
  session: Session,
  good: readonly Placed[],
  settings: Settings,
  bad: readonly BadRow[],
): Promise<Written> {
  const { rows } = await session.query<Counts>(statementFor(good, settings, bad))
  const [counts] = rows
  if (counts?.replay != null) return replayed(counts.replay, settings)
  return { stored: counts?.stored ?? 0, merged: counts?.merged ?? 0, bad, isReplay: false, keys: counts?.written ?? [] }
}

/** Another batch under a key that is taken would be lost if it got the first one's answer. */
function replayed({ digest, ...answer }: NonNullable<Counts['replay']>, settings: Settings): Written {
  if (digest === undefined || digest === settings.digest) return { ...answer, isReplay: true, keys: [] }
  throw new Failure(
    'usage.bad-argument',
    `the Idempotency-Key ${settings.key} was used for another batch, and nothing was stored; give each batch a key of its own`,
  )
}

/** Something passed the checks that the database will not take: halves are tried until the row is found, in one transaction. */
function storeOneByOne(
  connections: Engine['bulk'],
  good: readonly Placed[],
  settings: Settings,
  bad: readonly BadRow[],
): Promise<Written> {
  return connections.transaction(async (session) => {
    const found = await storeHalves(session, good, { ...settings, key: null })
    const all = [...bad, ...found.bad].sort((left, right) => left.index - right.index)
    const answer = { stored: found.stored, merged: found.merged, bad: all }
    if (settings.key !== null) {
      await session.query({
        text: `insert into ingest_batches (batch_key, answer, stored_at)
          values ($1, $2::jsonb, timestamptz 'epoch' + $3::int8 * interval '1 microsecond')`,
        values: [settings.key, JSON.stringify({ ...answer, digest: settings.digest }), settings.now],
      })
    }
    return { ...answer, isReplay: false, keys: found.keys }
  })
}

async function storeHalves(session: Session, rows: readonly Placed[], settings: Settings): Promise<Written> {
  await session.query({ text: 'savepoint part' })
  try {
    const written = await storeAll(session, rows, settings, [])
    await session.query({ text: 'release savepoint part' })
    return written
  } catch (error) {
    if (!isBadValue(error) || isOurs(error)) throw error
    await session.query({ text: 'rollback to savepoint part' })
    const [only] = rows
    if (rows.length === 1 && only !== undefined) return refuse(only, error)
    const middle = rows.length >> 1
    const first = await storeHalves(session, rows.slice(0, middle), settings)
    const second = await storeHalves(session, rows.slice(middle), settings)
    return {
      stored: first.stored + second.stored,
      merged: first.merged + second.merged,
      bad: [...first.bad, ...second.bad],
      isReplay: false,
      keys: [...first.keys, ...second.keys],
    }
  }
}

function refuse({ index }: Placed, error: unknown): Written {
  const message = error instanceof Error ? error.message : String(error)
  return { stored: 0, merged: 0, bad: [{ index, field: '', message }], isReplay: false, keys: [] }
}

function statementFor(placed: readonly Placed[], settings: Settings, bad: readonly BadRow[]): Statement {
  const list = (pick: (flow: IncomingFlow) => string | number | null): string =>
    arrayText(placed.map(({ flow }) => pick(flow)))
  const peers = placed.map(({ flow }) => addressOrNull(flow.peerAddress))
  return {
    name: 'ingest',
    text: ingestText,
    values: [
      list((flow) => (flow.id !== undefined && isUuid(flow.id) ? flow.id : randomUUID())),
      list((flow) => flow.time),
      list((flow) => flow.hits ?? 1),
      list((flow) => blankToNull(flow.pod.namespace)),
      list((flow) => flow.pod.name),
      list((flow) => blankToNull(flow.pod.uid ?? null)),
      list((flow) => addressOrNull(flow.pod.address)),
      list((flow) => flow.direction),
      list((flow) => flow.protocol.toUpperCase()),
      list((flow) => flow.ownPort),
      arrayText(peers),
      list((flow) => flow.peerPort),
      list((flow) => flow.decision.toUpperCase()),
      arrayText(peers.map(addressRange)),
      settings.key,
      settings.now,
      JSON.stringify(bad),
      settings.wantsKeys,
      settings.digest,
    ],
  }
}

function isUuid(text: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)
}

function addressOrNull(text: string | null): string | null {
  return text === null || text.trim() === '' ? null : canonicalAddress(text)
}

function blankToNull(text: string | null): string | null {
  return text === null || text.trim() === '' ? null : text
}

function isMissingPartition(error: unknown): boolean {
  return errorCode(error) === '23514' && error instanceof Error && error.message.includes('no partition')
}

function isKeyTaken(error: unknown): boolean {
  return errorCode(error) === '23505' && error instanceof Error && error.message.includes('ingest_batches')
}

/** Violations that are about the batch as a whole, and better the next time. */
function isOurs(error: unknown): boolean {
  return isMissingPartition(error) || isKeyTaken(error)
}

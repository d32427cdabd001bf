/** The embedded database: PGlite in a thread of its own, spoken to by messages, one statement at a time. */
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { Worker } from 'node:worker_threads'
import { Failure } from '#base/failure'
import { asFailure } from './database-failure'
import { type Answer, type Engine, inTransaction, type Session, type Statement } from './engine'
import type { WorkerAnswer, WorkerQuestion, WorkerStart } from './worker-messages'

/** An error that the database answered with, as `pg` has it. */
class DatabaseError extends Error {
  readonly code: string
  constructor(message: string, code: string) {
    super(message)
    this.name = 'DatabaseError'
    this.code = code
  }
}

type WorkerResult = Extract<WorkerAnswer, { readonly id: number }>

type Pending = { readonly resolve: (answer: Answer<unknown>) => void; readonly reject: (error: unknown) => void }

const isBuilt = !import.meta.url.endsWith('.ts')

/** Without a directory: in memory. Rejects with the database's own reason when it does not open. */
export async function openEmbedded(directory?: string): Promise<Engine> {
  const thread = await startThread(directory)
  const turn = makeTurns()
  const session: Session = { query: (statement) => thread.ask(statement) }
  const statements: Engine['bulk'] = {
    query: (statement) => turn.take(() => thread.ask(statement)),
    transaction: (work) => turn.take(() => inTransaction(session, work)),
  }
  return {
    kind: 'embedded',
    ...statements,
    session: (work) => turn.take(() => work(session)),
    bulk: statements,
    ping: () => thread.ping(),
    lost: thread.lost,
    gauges: () => ({ idle: turn.waiting() === 0 ? 1 : 0, waiting: Math.max(0, turn.waiting() - 1), max: 1 }),
    close: () => turn.take(() => thread.close()),
  }
}

type Thread = {
  readonly ask: <Row>(statement: Statement) => Promise<Answer<Row>>
  /** One thread, one database: it is there as long as the thread is. */
  readonly ping: () => Promise<void>
  readonly lost: Promise<Failure>
  readonly close: () => Promise<void>
}

async function startThread(directory: string | undefined): Promise<Thread> {
  const worker = makeWorker({
    ...(directory === undefined ? {} : { directory }),
    ...(needsTemplate(directory) ? templateOption() : {}),
  })
  const pending = new Map<number, Pending>()
  let lastId = 0
  let ended: Failure | undefined
  let isClosing = false
  let tell: (reason: Failure) => void = () => undefined
  const lost = new Promise<Failure>((resolve) => {
    tell = resolve
  })
  const ask = <Row>({ text, values }: Statement): Promise<Answer<Row>> =>
    new Promise((resolve, reject) => {
      if (ended !== undefined) return reject(ended)
      lastId++
      pending.set(lastId, { resolve: resolve as Pending['resolve'], reject })
      worker.postMessage({ kind: 'query', id: lastId, text, values: values ?? [] } satisfies WorkerQuestion)
    })
  const end = (reason: string): void => {
    ended ??= new Failure('database-unavailable', `the embedded database has ended: ${reason}`)
    for (const one of pending.values()) one.reject(ended)
    pending.clear()
    if (!isClosing) tell(ended)
  }
  await opened(worker, (message) => settle(pending, message))
  worker.on('error', (error) => end(error instanceof Error ? error.message : String(error)))
  worker.on('exit', (code) => end(`its thread ended with code ${code}`))
  const close = async (): Promise<void> => {
    isClosing = true
    const exited = new Promise((resolve) => worker.once('exit', resolve))
    if (ended === undefined) worker.postMessage({ kind: 'close' } satisfies WorkerQuestion)
    else return
    await exited
  }
  const ping = async (): Promise<void> => {
    if (ended !== undefined) throw ended
  }
  return { ask, ping, lost, close }
}

function opened(worker: Worker, onMessage: (message: WorkerResult) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    worker.once('error', reject)
    worker.on('message', (message: WorkerAnswer) => {
      if (message.kind === 'opened') resolve()
      else if (message.kind === 'not-opened') {
        reject(new DatabaseError(message.message, message.code))
        void worker.terminate()
      } else onMessage(message)
    })
    worker.once('exit', (code) => reject(new DatabaseError(`its thread ended with code ${code}`, '')))
  })
}

function settle(pending: Map<number, Pending>, message: WorkerResult): void {
  const one = pending.get(message.id)
  pending.delete(message.id)
  if (message.kind === 'rows') one?.resolve({ rows: message.rows, affected: message.affected })
  else one?.reject(asFailure(new DatabaseError(message.message, message.code)))
}

/** In a checkout the thread runs from its source: a first line loads the loader that the tests and the tools run by. */
function makeWorker(start: WorkerStart): Worker {
  if (isBuilt) return new Worker(new URL('./embedded-worker.js', import.meta.url), { workerData: start })
  const source = new URL('./embedded-worker.ts', import.meta.url).href
  const loader = pathToFileURL(
    createRequire(import.meta.url)
      .resolve('tsx/esm/api')
      .replace(/cjs$/, 'mjs'),
  ).href
  const code = `import(${JSON.stringify(loader)}).then(({ register }) => { register(); return import(${JSON.stringify(source)}) })`
  return new Worker(code, { eval: true, workerData: start })
}

function needsTemplate(directory: string | undefined): boolean {
  return directory === undefined || !existsSync(`${directory}/PG_VERSION`)
}

/** The build packs an empty data directory; without it, the first start takes some seconds longer and more memory. */
function templateOption(): { readonly template?: string } {
  const path = fileURLToPath(new URL(`${isBuilt ? '.' : '../../dist'}/embedded-template.tar.gz`, import.meta.url))
  return existsSync(path) ? { template: path } : {}
}

/** One at a time, in the order they came. */
function makeTurns(): {
  readonly take: <Result>(work: () => Promise<Result>) => Promise<Result>
  readonly waiting: () => number
} {
  let last: Promise<unknown> = Promise.resolve()
  let waiting = 0
  const take = <Result>(work: () => Promise<Result>): Promise<Result> => {
    waiting++
    const mine = last.then(work, work).finally(() => {
      waiting--
    })
    last = mine.catch(() => undefined)
    return mine
  }
  return { take, waiting: () => waiting }
}

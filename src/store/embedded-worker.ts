/** The thread that runs the embedded database, so that a long statement does not stop the broker from answering. */
import { readFileSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import { PGlite } from '@electric-sql/pglite'
import { columnParsers } from './column-parsers'
import type { WorkerAnswer, WorkerQuestion, WorkerStart } from './worker-messages'

const { directory, template } = workerData as WorkerStart

/** WAL is held small: by default it grows to 300 MB. */
const startParams = [
  ...PGlite.defaultStartParams,
  ...['max_wal_size=96MB', 'min_wal_size=32MB', 'work_mem=64MB', 'timezone=UTC', 'jit=off'].flatMap((setting) => [
    '-c',
    setting,
  ]),
]

function answer(message: WorkerAnswer): void {
  parentPort?.postMessage(message)
}

async function open(): Promise<PGlite> {
  return PGlite.create({
    ...(directory === undefined ? {} : { dataDir: directory }),
    ...(template === undefined ? {} : { loadDataDir: new Blob([readFileSync(template)]) }),
    startParams,
    parsers: { ...columnParsers },
  })
}

async function run(database: PGlite, { id, text, values }: Extract<WorkerQuestion, { kind: 'query' }>): Promise<void> {
  try {
    const { rows, affectedRows } = await database.query(text, [...values])
    answer({ kind: 'rows', id, rows, affected: affectedRows ?? rows.length })
  } catch (error) {
    answer({ kind: 'error', id, ...describeError(error) })
  }
}

function describeError(error: unknown): { readonly message: string; readonly code: string } {
  if (!(error instanceof Error)) return { message: String(error), code: '' }
  return { message: error.message, code: 'code' in error ? String(error.code) : '' }
}

try {
  const database = await open()
  parentPort?.on('message', (question: WorkerQuestion) => {
    if (question.kind === 'query') void run(database, question)
    else void database.close().finally(() => process.exit(0))
  })
  answer({ kind: 'opened' })
} catch (error) {
  answer({ kind: 'not-opened', ...describeError(error) })
}

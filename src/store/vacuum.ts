/** Gives room back: the embedded database has no autovacuum, so what passes delete would stay for ever. */
import type { Engine } from './engine'
import { runOnce } from './pass-lock'
import type { PassAnswer } from './store'

const tables = [
  'edge_batches',
  'edges',
  'pods',
  'pod_addresses',
  'ingest_batches',
  'service_addresses',
  'services',
  'audit_queue',
  'audit_verdicts',
  'flows',
]

export function vacuum(engine: Engine): Promise<PassAnswer<{ readonly vacuumed: boolean }>> {
  return runOnce(engine, 'vacuum', async (session) => {
    if (engine.kind !== 'embedded') return { vacuumed: false }
    // One table at a time: between them the broker's other statements get their turn.
    for (const table of tables) await session.query({ text: `vacuum (analyze) ${table}` })
    return { vacuumed: true }
  })
}

/** A posted batch, stored: rows that are wrong are named, the rest is kept. */
import type { IncomingFlow } from '#flows/flow'
import type { BatchAnswer } from '#wire/batch-answer'
import { parseTrafficRow } from '#wire/traffic-row'
import type { Broker } from './broker'
import { numberSettings } from './settings'

const secondsPerDay = 86_400

export async function ingestBatch(
  { store, clock, settings, metrics }: Broker,
  rows: readonly unknown[],
  idempotencyKey: string | undefined,
): Promise<BatchAnswer> {
  const flows: IncomingFlow[] = []
  const places: number[] = []
  const bad: BatchAnswer['bad'] = []
  rows.forEach((row, index) => {
    const parsed = parseTrafficRow(row)
    if (parsed.kind === 'bad') bad.push({ index, ...parsed.error })
    else {
      flows.push(parsed.flow)
      places.push(index)
    }
  })
  const answer = await store.ingest({
    rows: flows,
    now: clock.now(),
    ...(idempotencyKey !== undefined && { idempotencyKey }),
    limits: {
      futureSeconds: settings.futureToleranceSeconds,
      pastSeconds: (settings.flowRetentionDays || numberSettings.flowRetentionDays.most) * secondsPerDay,
    },
  })
  for (const { index, field, message } of answer.bad) bad.push({ index: places[index] ?? index, field, message })
  bad.sort((left, right) => left.index - right.index)
  metrics.batches.inc({ kind: answer.isReplay ? 'repeated' : 'new' })
  if (!answer.isReplay) {
    metrics.flowRows.inc({ outcome: 'stored' }, answer.stored)
    metrics.flowRows.inc({ outcome: 'merged' }, answer.merged)
    metrics.flowRows.inc({ outcome: 'refused' }, bad.length)
  }
  return { stored: answer.stored, merged: answer.merged, refused: bad.length, bad, replay: answer.isReplay }
}

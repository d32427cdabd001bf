/** What became of a batch, whole under /api/v1 and as headers on the compatible path. */
import Type, { type Static } from 'typebox'

export const BatchAnswer = Type.Object(
  {
    stored: Type.Integer({ description: 'flows that are new' }),
    merged: Type.Integer({ description: 'sightings that were added to a flow that was there' }),
    refused: Type.Integer({ description: 'rows that were not stored; `bad` names them' }),
    bad: Type.Array(
      Type.Object({
        index: Type.Integer({ description: 'its place in the batch, from 0' }),
        field: Type.String(),
        message: Type.String(),
      }),
    ),
    replay: Type.Boolean({
      description: 'the Idempotency-Key was seen before: nothing was stored, this is the first answer',
    }),
  },
  { description: 'What became of a batch.' },
)

export type BatchAnswer = Static<typeof BatchAnswer>

/** A header has little room. */
const mostNamed = 10

/** ASCII only, as headers must be. */
export function batchHeaders(answer: BatchAnswer): Readonly<Record<string, string>> {
  const bad = JSON.stringify(answer.bad.slice(0, mostNamed)).replace(
    /[^\x20-\x7e]/g,
    (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
  return {
    'Portolan-Stored': String(answer.stored),
    'Portolan-Merged': String(answer.merged),
    'Portolan-Refused': String(answer.refused),
    ...(answer.refused > 0 && { 'Portolan-Bad-Rows': bad }),
    ...(answer.replay && { 'Idempotent-Replay': 'true' }),
  }
}

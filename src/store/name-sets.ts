/** Labels and edge ends, each kept once and referred to by number. */
import { createHash } from 'node:crypto'
import type { Labels } from '#flows/holder'
import { stableLabels } from '#flows/stable-labels'
import type { Session } from './engine'
import type { EdgeEnd } from './store'

/** The number of a set of labels; null for none known. */
export async function labelsId(session: Session, labels: Labels | null | undefined): Promise<number | null> {
  if (labels === null || labels === undefined) return null
  const text = jsonText(stableLabels(labels))
  const { rows } = await session.query<{ labels_id: number }>({
    text: `with given as (insert into label_sets (labels_hash, labels) values ($1::uuid, $2::jsonb)
        on conflict (labels_hash) do nothing returning labels_id)
      select labels_id from given union all select labels_id from label_sets where labels_hash = $1::uuid`,
    values: [hashUuid(text), text],
  })
  // Another transaction may have just made it: then it is there for the next statement.
  return rows[0]?.labels_id ?? labelsId(session, labels)
}

export async function endId(session: Session, end: EdgeEnd): Promise<number> {
  const { kind, namespace, workload, name } = end
  const { rows } = await session.query<{ end_id: number }>({
    text: `with given as (insert into edge_ends (end_hash, kind, namespace, workload_kind, workload_name, name)
        values ($1::uuid, $2, $3, $4, $5, $6) on conflict (end_hash) do nothing returning end_id)
      select end_id from given union all select end_id from edge_ends where end_hash = $1::uuid`,
    values: [endHash(end), kind, namespace, workload?.kind ?? null, workload?.name ?? null, name],
  })
  return rows[0]?.end_id ?? endId(session, end)
}

export function hashUuid(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32)
}

/** jsonb has no NUL, so none is kept, and no half of a surrogate pair, which becomes U+FFFD as everywhere else. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value ?? null).replaceAll(
    /(?<!\\)((?:\\\\)*)\\u(?:0000|(d[89a-f][0-9a-f]{2}))/g,
    (_escape, before: string, half: string | undefined) => (half === undefined ? before : `${before}\ufffd`),
  )
}

export function jsonOrNull(value: unknown): string | null {
  return value === undefined || value === null ? null : jsonText(value)
}

function endHash({ kind, namespace, workload, name }: EdgeEnd): string {
  return hashUuid(JSON.stringify([kind, namespace, workload?.kind ?? null, workload?.name ?? null, name]))
}

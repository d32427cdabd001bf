/** Labels and edge ends, each kept once and referred to by number. */
import { createHash } from 'node:crypto'
import type { Labels } from '#flows/holder'
import { stableLabels } from '#flows/stable-labels'
import { arrayText, type Session } from './engine'
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
  const [id] = await endIds(session, [end])
  return id as number
}

/** Their numbers, in the same order. */
export async function endIds(session: Session, ends: readonly EdgeEnd[]): Promise<readonly number[]> {
  const { rows } = await session.query<{ end_id: number | null }>({
    text: `with asked as (
        select * from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[]) with ordinality
          as a (end_hash, kind, namespace, workload_kind, workload_name, name, place)
      ), given as (
        insert into edge_ends (end_hash, kind, namespace, workload_kind, workload_name, name)
        select distinct on (end_hash) end_hash, kind, namespace, workload_kind, workload_name, name from asked order by end_hash
        on conflict (end_hash) do nothing returning end_hash, end_id
      )
      select coalesce(given.end_id, known.end_id) as end_id
      from asked left join given using (end_hash) left join edge_ends known using (end_hash) order by place`,
    values: [
      arrayText(ends.map(endHash)),
      arrayText(ends.map(({ kind }) => kind)),
      arrayText(ends.map(({ namespace }) => namespace)),
      arrayText(ends.map(({ workload }) => workload?.kind ?? null)),
      arrayText(ends.map(({ workload }) => workload?.name ?? null)),
      arrayText(ends.map(({ name }) => name)),
    ],
  })
  const ids = rows.flatMap(({ end_id }) => end_id ?? [])
  // Another transaction may have just made one: then it is there for the next statement.
  return ids.length === ends.length ? ids : endIds(session, ends)
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

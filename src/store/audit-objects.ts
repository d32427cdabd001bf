/** Policies in audit mode: put, read and removed, each change with a generation of its own. */
import { compareText } from '#base/text'
import type { Instant } from '#flows/instant'
import type { AuditKey, AuditObject, AuditObjects, StoredAuditObject } from './audit-store'
import { arrayText, type Engine, type Session } from './engine'
import { instantSql } from './pod-rows'

type ObjectRow = {
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly semantics: string
  readonly manifest: AuditObject['manifest']
  readonly generation: number
  readonly updated_at: Instant
}

export async function readAuditObjects(session: Session): Promise<AuditObjects> {
  const { rows } = await session.query<ObjectRow & { readonly current: number }>({
    text: `select s.generation as current, o.* from audit_state s left join audit_objects o on true
      order by o.namespace, o.name, o.kind`,
  })
  return {
    generation: rows[0]?.current ?? 0,
    objects: rows.filter(({ kind }) => kind !== null).map(readObject),
  }
}

function readObject({ kind, namespace, name, uid, semantics, manifest, generation, updated_at }: ObjectRow) {
  return { kind, namespace, name, uid, semantics, manifest, generation, updatedAt: updated_at }
}

export async function hasAuditPolicies(session: Session): Promise<boolean> {
  const { rows } = await session.query<{ has: boolean }>({
    text: `select exists (select from audit_objects where semantics <> '') as has`,
  })
  return rows[0]?.has === true
}

export type PutHow = { readonly isWhole: boolean; readonly now: Instant }

export function putAuditObjects(
  engine: Engine,
  objects: readonly AuditObject[],
  { isWhole, now }: PutHow,
): Promise<AuditObjects> {
  return engine.transaction(async (session) => {
    await lockState(session)
    const before = await readAuditObjects(session)
    const changed = objects.filter((object) => !before.objects.some((known) => isSame(known, object)))
    const gone = isWhole ? before.objects.filter((known) => !objects.some((object) => hasKey(object, known))) : []
    if (changed.length + gone.length === 0) return before
    await forget(session, [...changed, ...gone])
    await deleteObjects(session, gone)
    await nextGeneration(session, changed.length > 0)
    for (const object of changed) await upsert(session, object, now)
    await clearIdle(session)
    return readAuditObjects(session)
  })
}

export function removeAuditObjects(engine: Engine, keys: readonly AuditKey[] | 'all'): Promise<number> {
  return engine.transaction(async (session) => {
    await lockState(session)
    const { objects } = await readAuditObjects(session)
    const gone = keys === 'all' ? objects : objects.filter((object) => keys.some((key) => hasKey(object, key)))
    if (gone.length === 0) return 0
    await forget(session, gone)
    await deleteObjects(session, gone)
    await nextGeneration(session, false)
    await clearIdle(session)
    return gone.length
  })
}

function hasKey(one: AuditKey, other: AuditKey): boolean {
  return one.kind === other.kind && one.namespace === other.namespace && one.name === other.name
}

function isSame(known: StoredAuditObject, object: AuditObject): boolean {
  if (!hasKey(known, object) || known.semantics !== object.semantics || known.uid !== object.uid) return false
  return inOrder(known.manifest) === inOrder(object.manifest)
}

/** The database gives keys back in an order of its own. */
function inOrder(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) => {
    if (typeof inner !== 'object' || inner === null || Array.isArray(inner)) return inner
    return Object.fromEntries(Object.entries(inner).sort(([left], [right]) => compareText(left, right)))
  })
}

/** Two brokers that put at once come one after the other. */
async function lockState(session: Session): Promise<void> {
  await session.query({ text: 'select generation from audit_state for update' })
}

/** A new policy is tried on flows that have come already: the next pass puts those of the last 24 hours into the queue. */
async function nextGeneration(session: Session, brings: boolean): Promise<void> {
  await session.query({
    text: `update audit_state set generation = generation + 1,
      backfill_from = case when $1::boolean then coalesce(backfill_from, generation + 1) else backfill_from end`,
    values: [brings],
  })
}

async function upsert(session: Session, object: AuditObject, now: Instant): Promise<void> {
  const { kind, namespace, name, uid, semantics, manifest } = object
  await session.query({
    text: `insert into audit_objects (kind, namespace, name, uid, semantics, manifest, generation, updated_at)
      select $1, $2, $3, $4, $5, $6::jsonb, s.generation, ${instantSql(7)} from audit_state s
      on conflict (kind, namespace, name) do update set uid = excluded.uid, semantics = excluded.semantics,
        manifest = excluded.manifest, generation = excluded.generation, updated_at = excluded.updated_at`,
    values: [kind, namespace, name, uid, semantics, JSON.stringify(manifest), now],
  })
}

async function deleteObjects(session: Session, keys: readonly AuditKey[]): Promise<void> {
  await session.query({ text: `delete from audit_objects o ${usingKeys('o')}`, values: keyLists(keys) })
}

/** Counters are about one text of a policy. */
async function forget(session: Session, keys: readonly AuditKey[]): Promise<void> {
  for (const table of ['audit_counters', 'audit_offenders']) {
    await session.query({ text: `delete from ${table} o ${usingKeys('o')}`, values: keyLists(keys) })
  }
}

function usingKeys(table: string): string {
  return `using unnest($1::text[], $2::text[], $3::text[]) as k(kind, namespace, name)
    where ${table}.kind = k.kind and ${table}.namespace = k.namespace and ${table}.name = k.name`
}

/** Three lists, as `usingKeys` takes them. */
export function keyLists(keys: readonly AuditKey[]): readonly string[] {
  return [
    arrayText(keys.map(({ kind }) => kind)),
    arrayText(keys.map(({ namespace }) => namespace)),
    arrayText(keys.map(({ name }) => name)),
  ]
}

/** Without a policy nothing waits, and what a set of policies counted goes with its last one. */
async function clearIdle(session: Session): Promise<void> {
  const none = `not exists (select from audit_objects where semantics <> '')`
  await session.query({ text: `delete from audit_queue where ${none}` })
  await session.query({ text: `update audit_state set backfill_from = null where ${none}` })
  await session.query({
    text: 'delete from audit_sets s where not exists (select from audit_objects o where o.semantics = s.semantics)',
  })
}

/** Reads pods: pages, one by its name, its uid, or an address at a time. */
import { canonicalAddress } from '#flows/address'
import type { Instant } from '#flows/instant'
import { Conditions } from './conditions'
import type { Session } from './engine'
import { limitOf, pageOf, readCursor } from './paging'
import { instantSql, type PodRow, podColumns, readPod } from './pod-rows'
import type { ClusterExtent, Page, PageRequest, PodQuery, StoredPod } from './store'

export async function readPods(session: Session, query: PodQuery, page: PageRequest): Promise<Page<StoredPod>> {
  const limit = limitOf(page)
  const conditions = new Conditions()
  conditions.equal('p.namespace', query.namespace)
  conditions.equal('p.name', query.name)
  conditions.equal('p.node_name', query.nodeName)
  conditions.equal('p.workload_kind', query.workload?.kind)
  conditions.equal('p.workload_name', query.workload?.name)
  if (query.isDead !== undefined) conditions.add(query.isDead ? 'p.is_dead' : 'not p.is_dead')
  const place = readCursor(page.cursor, ['text', 'text', 'whole'])
  if (place !== undefined) {
    const [namespace, name, id] = [place[0], place[1]]
      .map((part) => conditions.parameter(String(part)))
      .concat(conditions.parameter(Number(place[2])))
    conditions.add(
      `(p.namespace, p.name) >= (${namespace}, ${name}) and ((p.namespace, p.name) > (${namespace}, ${name}) or p.pod_id < ${id}::int8)`,
    )
  }
  const { rows } = await session.query<PodRow>({
    text: `select ${podColumns} from pods p ${conditions.where} order by p.namespace, p.name, p.pod_id desc limit ${limit + 1}`,
    values: conditions.values,
  })
  return pageOf(rows, limit, { row: readPod, place: (row) => [row.namespace, row.name, row.pod_id] })
}

export async function podByName(session: Session, name: string, namespace?: string): Promise<StoredPod | undefined> {
  const conditions = new Conditions()
  conditions.equal('p.name', name)
  conditions.equal('p.namespace', namespace)
  return one(
    session,
    `from pods p ${conditions.where} order by p.is_dead, p.last_seen desc, p.pod_id desc`,
    conditions.values,
  )
}

export function podByUid(session: Session, uid: string): Promise<StoredPod | undefined> {
  return one(session, 'from pods p where p.uid = $1 order by p.is_dead, p.last_seen desc', [uid])
}

/** Without a time it is who has the address now, or had it last. */
export function podAt(session: Session, address: string, at?: Instant): Promise<StoredPod | undefined> {
  const held = 'from pod_addresses a join pods p on p.pod_id = a.pod_id where a.address = $1'
  if (at === undefined) {
    return one(session, `${held} order by a.is_dead, a.last_seen desc, p.namespace, p.name`, [
      canonicalAddress(address),
    ])
  }
  return one(
    session,
    `${held} and a.started_at <= ${instantSql(2)} and a.allowed_until >= ${instantSql(2)}
      order by a.is_dead, a.started_at desc, a.last_seen desc, a.namespace || '/' || a.name, coalesce(a.uid, ''), a.pod_id`,
    [canonicalAddress(address), at],
  )
}

/** Two families at most, so the second question ends at the first pod of each. */
export async function readExtent(session: Session): Promise<ClusterExtent> {
  const { rows } = await session.query<{ nodes: number; ipv4: boolean; ipv6: boolean }>({
    text: `select (select count(*) from (select distinct node_name from pods where not is_dead and node_name is not null) n) as nodes,
      exists (select from pods where not is_dead and array_to_string(addresses, ' ') ~ '(^| )[0-9.]+( |$)') as ipv4,
      exists (select from pods where not is_dead and array_to_string(addresses, ' ') ~ '(^| )[0-9a-f:]*:[0-9a-f:.]*( |$)') as ipv6`,
  })
  const [row] = rows
  return {
    nodes: row?.nodes ?? 0,
    families: [...(row?.ipv4 === true ? (['ipv4'] as const) : []), ...(row?.ipv6 === true ? (['ipv6'] as const) : [])],
  }
}

async function one(
  session: Session,
  from: string,
  values: readonly (string | number | boolean | null)[],
): Promise<StoredPod | undefined> {
  const { rows } = await session.query<PodRow>({ text: `select ${podColumns} ${from} limit 1`, values })
  return rows[0] === undefined ? undefined : readPod(rows[0])
}

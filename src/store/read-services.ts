/** Reads Services: pages, one by its name or an address. */
import { canonicalAddress } from '#flows/address'
import { Conditions } from './conditions'
import type { Session } from './engine'
import { limitOf, pageOf, readCursor } from './paging'
import { readService, type ServiceRow, serviceColumns } from './service-rows'
import type { Page, PageRequest, ServiceQuery, StoredService } from './store'

export async function readServices(
  session: Session,
  query: ServiceQuery,
  page: PageRequest,
): Promise<Page<StoredService>> {
  const limit = limitOf(page)
  const conditions = new Conditions()
  conditions.equal('s.namespace', query.namespace)
  conditions.equal('s.name', query.name)
  if (query.withDeleted !== true) conditions.add('s.deleted_at is null')
  const place = readCursor(page.cursor, ['text', 'text', 'whole'])
  if (place !== undefined) {
    const [namespace, name] = [place[0], place[1]].map((part) => conditions.parameter(String(part)))
    conditions.add(
      `(s.namespace, s.name, s.service_id) > (${namespace}, ${name}, ${conditions.parameter(Number(place[2]))}::int8)`,
    )
  }
  const { rows } = await session.query<ServiceRow>({
    text: `select ${serviceColumns} from services s ${conditions.where}
      order by s.namespace, s.name, s.service_id limit ${limit + 1}`,
    values: conditions.values,
  })
  return pageOf(rows, limit, { row: readService, place: (row) => [row.namespace, row.name, row.service_id] })
}

export function serviceByName(session: Session, namespace: string, name: string): Promise<StoredService | undefined> {
  return one(
    session,
    'where s.namespace = $1 and s.name = $2 order by s.deleted_at desc nulls first, s.last_seen desc',
    [namespace, name],
  )
}

/** Who has the address now, or had it last. */
export function serviceByAddress(session: Session, address: string): Promise<StoredService | undefined> {
  return one(
    session,
    `join service_addresses a on a.service_id = s.service_id where a.address = $1
      order by a.is_dead, a.created_at desc nulls last, a.last_seen desc, s.namespace, s.name`,
    [canonicalAddress(address)],
  )
}

async function one(session: Session, from: string, values: readonly string[]): Promise<StoredService | undefined> {
  const { rows } = await session.query<ServiceRow>({
    text: `select ${serviceColumns} from services s ${from} limit 1`,
    values,
  })
  return rows[0] === undefined ? undefined : readService(rows[0])
}

/** Edges: who talks to whom, added up from what ingest appends, and read by day and hour. */
import type { PeerKind } from '#flows/holder'
import { type Instant, printDay } from '#flows/instant'
import { Conditions } from './conditions'
import { sightingsSql } from './edge-batch-sql'
import { arrayText, type Engine } from './engine'
import { endIds } from './name-sets'
import { limitOf, pageOf, readCursor } from './paging'
import { type PassSession, runOnce } from './pass-lock'
import { readWorkload } from './pod-rows'
import type { Edge, EdgeEnd, EdgeQuery, Page, PageRequest, PassAnswer } from './store'

const hours = Array.from({ length: 24 }, (_, hour) => hour + 1)
const chunkSightings = 20_000

/** Adds up what ingest appended since the last time. */
export function foldEdges(engine: Engine): Promise<PassAnswer<{ readonly folded: number }>> {
  return runOnce(engine, 'fold-edges', async (session) => {
    for (let folded = 0; ; ) {
      const { rows } = await session.query<Waiting>({ text: waitingText })
      if (rows.length === 0) return { folded }
      const ids = arrayText(rows.map(({ batch_id }) => batch_id))
      const strangers = rows.some(({ has_strangers }) => has_strangers)
        ? await nameStrangers(session, ids)
        : noStrangers
      await session.query({ text: foldText, values: [ids, ...strangers] })
      const taken = rows.reduce((sum, { sightings }) => sum + sightings, 0)
      folded += taken
      // What has come meanwhile is the next pass's: there is always something while flows arrive.
      if (taken < chunkSightings) return { folded }
    }
  })
}

type Waiting = { readonly batch_id: number; readonly has_strangers: boolean; readonly sightings: number }

/** The oldest batches, as many as have `chunkSightings` together, and one at least. */
const waitingText = `select batch_id, has_strangers, sightings
  from (
    select *, sum(sightings) over (order by batch_id) - sightings as before
    from (select batch_id, has_strangers, sightings from edge_batches order by batch_id limit ${chunkSightings}) oldest
  ) counted where before < ${chunkSightings}`

/**
 * Taken and added in one statement, so that a sighting is counted once whatever breaks. The array of hours has one element, at its hour,
 * while that is all there is to tell, and 24 from then on: many edges of a day are seen in one hour only, and short ones take a
 * third of the room.
 */
const foldText = `with taken as (
    delete from edge_batches where batch_id = any($1::int8[]) returning *
  ), sightings as (
    ${sightingsSql('taken')}
  ), ended as (
    select s.*, coalesce(s.pod_end, stranger.end_id) as own_end, s.seen at time zone 'UTC' as at
    from sightings s left join unnest($2::text[], $3::text[], $4::int4[]) stranger(namespace, name, end_id)
      on s.pod_end is null and stranger.name = s.pod_name and stranger.namespace is not distinct from s.pod_namespace
  ), hourly as (
    select at::date as day, case when is_ingress then peer_end else own_end end as from_end,
      case when is_ingress then own_end else peer_end end as to_end, protocol, port, decision, is_ingress,
      date_part('hour', at)::int + 1 as hour, sum(hits)::int8 as hits, min(seen) as first_seen, max(seen) as last_seen
    from ended group by 1, 2, 3, 4, 5, 6, 7, 8
  ), daily as (
    select day, from_end, to_end, protocol, port, decision, is_ingress, min(hour) as first_hour, max(hour) as last_hour,
      sum(hits)::int8 as hits, array_agg(hits) as each_hits, array_agg(hour) as each_hour, min(first_seen) as first_seen, max(last_seen) as last_seen
    from hourly group by 1, 2, 3, 4, 5, 6, 7
  )
  insert into edges as e (day, from_end, to_end, protocol, port, decision, is_ingress, hits_by_hour, first_seen, last_seen)
  select day, from_end, to_end, protocol, port, decision, is_ingress,
    case when first_hour = last_hour then array_fill(hits, array[1], array[first_hour])
      else array(select coalesce(each_hits[array_position(each_hour, one)], 0) from generate_series(1, 24) one) end,
    first_seen, last_seen
  from daily order by 1, 2, 3, 4, 5, 6, 7
  on conflict (day, from_end, to_end, protocol, port, decision, is_ingress) do update set
    hits_by_hour = case when array_dims(e.hits_by_hour) = array_dims(excluded.hits_by_hour) and cardinality(e.hits_by_hour) = 1
      then array_fill(e.hits_by_hour[array_lower(e.hits_by_hour, 1)] + excluded.hits_by_hour[array_lower(e.hits_by_hour, 1)],
        array[1], array[array_lower(e.hits_by_hour, 1)])
      else array[${hours.map((hour) => `coalesce(e.hits_by_hour[${hour}], 0) + coalesce(excluded.hits_by_hour[${hour}], 0)`).join(', ')}] end,
    first_seen = least(e.first_seen, excluded.first_seen), last_seen = greatest(e.last_seen, excluded.last_seen)`

/** Namespaces, names and ends, side by side. */
type Strangers = readonly [string, string, string]
const noStrangers: Strangers = ['{}', '{}', '{}']

/** A pod that nobody has reported is an end by its own name. */
async function nameStrangers(session: PassSession, batches: string): Promise<Strangers> {
  const { rows } = await session.query<{ namespace: string | null; name: string }>({
    text: `select distinct pod_namespace as namespace, pod_name as name
      from (${sightingsSql('edge_batches where batch_id = any($1::int8[]) and has_strangers')}) s where pod_end is null`,
    values: [batches],
  })
  const ends = await endIds(
    session,
    rows.map((row) => ({ kind: 'pod', workload: null, ...row })),
  )
  return [arrayText(rows.map(({ namespace }) => namespace)), arrayText(rows.map(({ name }) => name)), arrayText(ends)]
}

type EdgeRow = {
  readonly from_end: number
  readonly to_end: number
  readonly protocol: string
  readonly port: number
  readonly decision: string
  readonly is_ingress: boolean
  readonly hits: number
  readonly first_seen: Instant
  readonly last_seen: Instant
} & EndRow<'from'> &
  EndRow<'to'>

type EndRow<Side extends string> = {
  readonly [Column in `${Side}_kind`]: PeerKind | 'internet' | 'private-network' | 'unattributed'
} & {
  readonly [Column in `${Side}_namespace` | `${Side}_workload_kind` | `${Side}_workload_name` | `${Side}_name`]:
    | string
    | null
}

const orderColumns = ['from_end', 'to_end', 'protocol', 'port', 'decision', 'is_ingress'] as const
const orderParts = ['small', 'small', 'text', 'small', 'text', 'flag'] as const

/** Whole hours: the first hour is the one that `since` lies in. */
export async function readEdges(engine: Engine, query: EdgeQuery, page: PageRequest): Promise<Page<Edge>> {
  const limit = limitOf(page)
  const conditions = new Conditions()
  const [since, until] = [conditions.instant(query.since), conditions.instant(query.until)]
  conditions.add(
    `e.day between ${conditions.parameter(printDay(query.since))}::date and ${conditions.parameter(printDay(query.until))}::date`,
  )
  conditions.add(`e.last_seen >= date_trunc('hour', ${since}) and e.first_seen < ${until}`)
  if (query.decision !== undefined) conditions.equal('e.decision', query.decision.toUpperCase())
  if (query.namespaces !== undefined) {
    const inside = `select end_id from edge_ends where namespace = any(${conditions.parameter(arrayText(query.namespaces))}::text[])`
    conditions.add(`(e.from_end in (${inside}) or e.to_end in (${inside}))`)
  }
  const place = readCursor(page.cursor, orderParts)
  if (place !== undefined) {
    const [from, to, protocol, port, decision, isIngress] = place.map((part) => conditions.parameter(part))
    const columns = orderColumns.map((column) => `e.${column}`).join(', ')
    conditions.add(
      `(${columns}) > (${from}::int4, ${to}::int4, ${protocol}::text, ${port}::int4, ${decision}::text, ${isIngress}::boolean)`,
    )
  }
  const low = `case when e.day = (${since} at time zone 'UTC')::date then extract(hour from ${since} at time zone 'UTC')::int + 1 else 1 end`
  const high = `case when e.day = (${until} at time zone 'UTC')::date then extract(hour from (${until} - interval '1 microsecond') at time zone 'UTC')::int + 1 else 24 end`
  const { rows } = await engine.query<EdgeRow>({
    text: `with summed as (
        select ${orderColumns.map((column) => `e.${column}`).join(', ')},
          sum((select sum(h) from unnest(e.hits_by_hour[${low}:${high}]) h))::bigint as hits,
          min(e.first_seen) as first_seen, max(e.last_seen) as last_seen
        from edges e ${conditions.where} group by ${orderColumns.join(', ')}
      ), shown as (select * from summed where hits > 0 order by ${orderColumns.join(', ')} limit ${limit + 1})
      select shown.*, ${endColumns('from')}, ${endColumns('to')} from shown
      join edge_ends from_ends on from_ends.end_id = shown.from_end join edge_ends to_ends on to_ends.end_id = shown.to_end
      order by ${orderColumns.map((column) => `shown.${column}`).join(', ')}`,
    values: conditions.values,
  })
  return pageOf(rows, limit, { row: readEdge, place: (row) => orderColumns.map((column) => row[column]) })
}

function endColumns(side: 'from' | 'to'): string {
  const columns = ['kind', 'namespace', 'workload_kind', 'workload_name', 'name']
  return columns.map((column) => `${side}_ends.${column} as ${side}_${column}`).join(', ')
}

function readEdge(row: EdgeRow): Edge {
  return {
    from: readEnd(row.from_kind, row.from_namespace, row.from_name, [row.from_workload_kind, row.from_workload_name]),
    to: readEnd(row.to_kind, row.to_namespace, row.to_name, [row.to_workload_kind, row.to_workload_name]),
    protocol: row.protocol,
    port: row.port,
    decision: row.decision,
    observedAt: row.is_ingress ? 'to' : 'from',
    hits: row.hits,
    firstSeen: row.first_seen,
    lastSeen: row.last_seen,
  }
}

function readEnd(
  kind: EdgeEnd['kind'],
  namespace: string | null,
  name: string | null,
  [workloadKind, workloadName]: readonly [string | null, string | null],
): EdgeEnd {
  return { kind, namespace, workload: readWorkload(workloadKind, workloadName), name }
}

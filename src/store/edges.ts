/** Edges: who talks to whom, added up from what ingest appends, and read by day and hour. */
import type { PeerKind } from '#flows/holder'
import { type Instant, printDay } from '#flows/instant'
import { Conditions } from './conditions'
import { arrayText, type Engine } from './engine'
import { endId } from './name-sets'
import { limitOf, pageOf, readCursor } from './paging'
import { type PassSession, runOnce } from './pass-lock'
import { readWorkload } from './pod-rows'
import type { Edge, EdgeEnd, EdgeQuery, Page, PageRequest, PassAnswer } from './store'

const hours = Array.from({ length: 24 }, (_, hour) => hour)
const chunkRows = 50_000

/** Adds up what ingest appended since the last time. */
export function foldEdges(engine: Engine): Promise<PassAnswer<{ readonly folded: number }>> {
  return runOnce(engine, 'fold-edges', async (session) => {
    await nameStrangers(session)
    let folded = 0
    for (;;) {
      const { rows } = await session.query<{ taken: number }>({ text: foldText })
      const taken = rows[0]?.taken ?? 0
      folded += taken
      if (taken < chunkRows) return { folded }
    }
  })
}

/** Taken and added in one statement, so that a sighting is counted once whatever breaks. */
const foldText = `with taken as (
    delete from edge_deltas where ctid = any(array(select ctid from edge_deltas where pod_end is not null limit ${chunkRows}))
    returning *
  ), added as (
    insert into edges as e (day, from_end, to_end, is_ingress, protocol, port, decision, hits_by_hour, first_seen, last_seen)
    select day, case when is_ingress then peer_end else pod_end end as from_end,
      case when is_ingress then pod_end else peer_end end as to_end, is_ingress, protocol, port, decision,
      array[${hours.map((hour) => `coalesce(sum(hits) filter (where hour = ${hour}), 0)::bigint`).join(', ')}],
      min(first_seen), max(last_seen)
    from taken group by 1, 2, 3, 4, 5, 6, 7 order by 1, 2, 3, 5, 6, 7, 4
    on conflict (day, from_end, to_end, protocol, port, decision, is_ingress) do update set
      hits_by_hour = array[${hours.map((hour) => `e.hits_by_hour[${hour + 1}] + excluded.hits_by_hour[${hour + 1}]`).join(', ')}],
      first_seen = least(e.first_seen, excluded.first_seen), last_seen = greatest(e.last_seen, excluded.last_seen)
  ) select count(*) as taken from taken`

/** A pod that nobody has reported is an end by its own name. */
async function nameStrangers(session: PassSession): Promise<void> {
  for (;;) {
    const { rows } = await session.query<{ pod_namespace: string | null; pod_name: string }>({
      text: 'select distinct pod_namespace, pod_name from edge_deltas where pod_end is null limit 500',
    })
    if (rows.length === 0) return
    for (const { pod_namespace: namespace, pod_name: name } of rows) {
      const end = await endId(session, { kind: 'pod', namespace, workload: null, name })
      await session.query({
        text: `update edge_deltas set pod_end = $1::int4
          where pod_end is null and pod_name = $2 and pod_namespace is not distinct from $3::text`,
        values: [end, name, namespace],
      })
    }
  }
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

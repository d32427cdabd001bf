/** Flows added up by who the ends are for policies: the pods of one workload with the same labels are one, whichever they were. */
import { Failure } from '#base/failure'
import type { FlowFilter } from '#flows/filter'
import type { StoredFlow } from '#flows/flow'
import type { Instant } from '#flows/instant'
import { Conditions } from './conditions'
import { errorCode } from './database-failure'
import type { Engine } from './engine'
import { addFilter } from './filter-sql'
import { streamPages } from './paging'
import { type FlowRow, flowColumns, readFlow, readFlows } from './read-flows'

/** A million flows of a cluster come to some ten thousand; where there are more, adding them up is not worth the memory. */
const mostConnections = 20_000

/**
 * One of the rows for each, with the hits and times of all of them. Where the answer would be long, or take long, and in the
 * embedded database, which does one thing at a time: every row by itself, which says the same.
 */
export async function* streamConnections(
  engine: Engine,
  filter: FlowFilter,
): AsyncGenerator<readonly StoredFlow[], void, undefined> {
  const added = engine.kind === 'postgres' ? await addUp(engine, filter) : undefined
  if (added === undefined) yield* streamPages((page) => readFlows(engine, filter, page))
  else yield added
}

type AddedRow = FlowRow & { readonly all_hits: number; readonly first: Instant; readonly last: Instant }

/** Undefined where there are too many, or where the statement's time ran out. */
async function addUp(engine: Engine, filter: FlowFilter): Promise<readonly StoredFlow[] | undefined> {
  const conditions = new Conditions()
  addFilter(conditions, filter)
  try {
    const { rows } = await engine.query<AddedRow>({
      text: `with added as (
          select max(f.day::text || f.flow_key::text) as one, sum(f.hits)::int8 as hits, min(f.first_seen) as first,
            max(f.last_seen) as last
          from (
            select f.*, ${isOwnOfMany} as is_own_of_many, ${isPeerOfMany} as is_peer_of_many
            from flows f left join edge_ends own on own.end_id = f.pod_end ${conditions.where} offset 0
          ) f
          group by ${groupColumns.join(', ')} limit ${mostConnections + 1}
        )
        select ${flowColumns}, a.hits as all_hits, a.first, a.last
        from added a join flows f on f.day = left(a.one, 10)::date and f.flow_key = substr(a.one, 11)::uuid`,
      values: conditions.values,
    })
    if (rows.length > mostConnections) return undefined
    return rows.map((row) => readFlow({ ...row, hits: row.all_hits, first_seen: row.first, last_seen: row.last }))
  } catch (error) {
    if (error instanceof Failure && errorCode(error.cause) === '57014') return undefined
    throw error
  }
}

/** An end without labels is nobody that a policy could select. */
const hasLabels = (column: string): string =>
  `f.${column} is not null and f.${column} is distinct from (select labels_id from label_sets where labels = '{}')`
/** Host-network pods have no labels for policies, and what lies on the node itself is told by its address. */
const isOwnOfMany = `(own.kind is not distinct from 'pod' and own.workload_name is not null and ${hasLabels('pod_labels_id')})`
const isPeerOfMany = `(f.peer_kind is not distinct from 'pod' and f.peer_workload_name is not null and f.peer_end is not null
  and ${hasLabels('peer_labels_id')} and f.peer_ip !~ '^(127\\.|169\\.254\\.|0\\.0\\.0\\.0$|fe[89ab]|::)')`

const joined = (...columns: readonly string[]): string =>
  columns.map((column) => `coalesce(f.${column}::text, '')`).join(` || E'\\x1f' || `)
const ownPod = joined('pod_namespace', 'pod_name', 'pod_uid', 'pod_ip', 'pod_labels_id')
const peer = joined('peer_ip', 'peer_kind', 'peer_namespace', 'peer_name', 'peer_uid', 'peer_labels_id', 'peer_outcome')

const groupColumns = [
  'case when f.is_own_of_many then f.pod_end end',
  'case when f.is_own_of_many then f.pod_labels_id end',
  `case when not f.is_own_of_many then ${ownPod} end`,
  'case when f.is_peer_of_many then f.peer_end end',
  'case when f.is_peer_of_many then f.peer_labels_id end',
  `case when not f.is_peer_of_many then ${peer} end`,
  'f.peer_ip is not distinct from f.pod_ip',
  'f.direction',
  'f.protocol',
  `case f.direction when 'INGRESS' then f.own_port else f.peer_port end`,
  'f.decision',
]

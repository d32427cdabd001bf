/** What a batch adds to edges waits as one row of lists until `foldEdges` takes it. */

const strangersOnly = (column: string): string => `case when pod_end is null then ${column} end`

/** Each list, its elements' name, and what is kept of a sighting there. A pod that has an end needs no name. */
const lists = [
  ['seen', 'seen', 'seen'],
  ['hits', 'hits', 'hits'],
  ['pod_ends', 'pod_end', 'pod_end'],
  ['pod_namespaces', 'pod_namespace', strangersOnly('pod_namespace')],
  ['pod_names', 'pod_name', strangersOnly('pod_name')],
  ['peer_ends', 'peer_end', 'peer_end'],
  ['are_ingress', 'is_ingress', `direction = 'INGRESS'`],
  ['protocols', 'protocol', 'protocol'],
  ['ports', 'port', `coalesce(case when direction = 'INGRESS' then own_port else peer_port end, 0)`],
  ['decisions', 'decision', 'decision'],
] as const

/**
 * An `insert` of all rows of `sightings`, and of nothing when there are none. They have the columns of `flows`, and `seen` for their
 * time. Hits may be negative, of flows that go to another edge, or 0, when an edge was only seen for longer.
 */
export function edgeBatchSql(sightings: string): string {
  const gathered = lists.map(([, , kept]) => `array_agg(${kept})`)
  return `insert into edge_batches (sightings, has_strangers, ${lists.map(([list]) => list).join(', ')})
  select count(*), bool_or(pod_end is null), ${gathered.join(', ')} from ${sightings} having count(*) > 0`
}

/** The sightings of the batches in `batches`, one a row. */
export function sightingsSql(batches: string): string {
  return `select ${lists.map(([list, element]) => `unnest(${list}) as ${element}`).join(', ')} from ${batches}`
}

/** What a batch adds to edges waits as one row of lists until `foldEdges` takes it. */

const strangersOnly = (column: string): string => `case when pod_end is null then ${column} end`

/** Each list with what it holds of a sighting. A pod that has an end needs no name. */
const lists = {
  seen: 'seen',
  hits: 'hits',
  pod_ends: 'pod_end',
  pod_namespaces: strangersOnly('pod_namespace'),
  pod_names: strangersOnly('pod_name'),
  peer_ends: 'peer_end',
  are_ingress: `direction = 'INGRESS'`,
  protocols: 'protocol',
  ports: `coalesce(case when direction = 'INGRESS' then own_port else peer_port end, 0)`,
  decisions: 'decision',
} as const

/**
 * An `insert` of all rows of `sightings`, and of nothing when there are none. They have the columns of `flows`, and `seen` for their
 * time. Hits may be negative, of flows that go to another edge, or 0, when an edge was only seen for longer.
 */
export function edgeBatchSql(sightings: string): string {
  return `insert into edge_batches (sightings, has_strangers, ${Object.keys(lists).join(', ')})
  select count(*), bool_or(pod_end is null), ${Object.values(lists)
    .map((what) => `array_agg(${what})`)
    .join(', ')}
  from ${sightings} having count(*) > 0`
}

/** The sightings of the batches in `batches`, one a row. */
export function sightingsSql(batches: string): string {
  const columns = {
    seen: 'seen',
    hits: 'hits',
    pod_ends: 'pod_end',
    pod_namespaces: 'pod_namespace',
    pod_names: 'pod_name',
    peer_ends: 'peer_end',
    are_ingress: 'is_ingress',
    protocols: 'protocol',
    ports: 'port',
    decisions: 'decision',
  } satisfies Record<keyof typeof lists, string>
  return `select ${Object.entries(columns)
    .map(([list, column]) => `unnest(${list}) as ${column}`)
    .join(', ')} from ${batches}`
}

/** `chooseHolder` of flows in SQL: who held an address, and the nearest one that was not allowed. */

/** A pod's address `a` may be the one of row `l`, and the best of them. */
const mayHold = 'a.address = l.peer_ip and a.started_at <= l.seen and a.allowed_until >= l.seen'
const bestFirst = `a.is_dead, a.started_at desc, a.last_seen desc, a.namespace || '/' || a.name, coalesce(a.uid, ''), a.pod_id`

/** Where the pod is no answer by itself: the Service, when it comes before it, and the nearest holder that was not allowed. */
const otherHolders = `
  left join lateral (
    select n.service_id from node_ports n
    where (chosen_pod.pod_id is null or chosen_pod.is_host_network)
      and n.port = l.target_port and n.protocol = l.protocol
      and exists (select from node_addresses where address = l.peer_ip)
      and (n.created_at is null or n.created_at <= l.seen) and (not n.is_dead or n.died_at >= l.seen)
    order by n.is_dead, n.created_at desc nulls last, n.last_seen desc, n.namespace || '/' || n.name, coalesce(n.uid, ''), n.service_id
    limit 1
  ) chosen_node_port on true
  left join lateral (
    select s.service_id from service_addresses s
    where chosen_pod.pod_id is null and chosen_node_port.service_id is null and s.address = l.peer_ip
      and (s.created_at is null or s.created_at <= l.seen) and (not s.is_dead or s.died_at >= l.seen)
    order by s.is_dead, s.created_at desc nulls last, s.last_seen desc, s.namespace || '/' || s.name, coalesce(s.uid, ''), s.service_id
    limit 1
  ) chosen_service on true
  left join services peer_service
    on peer_service.service_id = coalesce(chosen_node_port.service_id, chosen_service.service_id)
  left join lateral (
    select near.* from (${rejectedHolders()}) near
    where chosen_pod.pod_id is null and chosen_node_port.service_id is null and chosen_service.service_id is null
    order by near.distance, near.namespace || '/' || near.name, near.uid
    limit 1
  ) rejected on true`

/** For a row `l` with `peer_ip`, `seen`, `protocol` and `target_port`, which is null where only the client's port is known. */
export const chosenHolder = `
  left join lateral (select a.* from pod_addresses a where ${mayHold} order by ${bestFirst} limit 1) chosen_pod on true
  ${otherHolders}`

/** The end of an edge that is nobody known. */
const rangeEnd = `case l.peer_range when 'internet' then 1 when 'private' then 2 else 3 end`

/** The identity that `chosenHolder` found, as the columns of a flow. `peer_kind` null: nobody. */
export const stampColumns = `
  case when peer_service.service_id is not null then 'service'
    when chosen_pod.is_host_network then 'node'
    when chosen_pod.pod_id is not null then 'pod' end as peer_kind,
  case when peer_service.service_id is not null then peer_service.namespace else chosen_pod.namespace end as peer_namespace,
  case when peer_service.service_id is not null then peer_service.name else chosen_pod.name end as peer_name,
  case when peer_service.service_id is not null then peer_service.uid else chosen_pod.uid end as peer_uid,
  case when peer_service.service_id is null then chosen_pod.workload_kind end as peer_workload_kind,
  case when peer_service.service_id is null then chosen_pod.workload_name end as peer_workload_name,
  case when peer_service.service_id is not null then peer_service.selector_id else chosen_pod.labels_id end as peer_labels_id,
  case when coalesce(peer_service.service_id, chosen_pod.pod_id) is not null then 'resolved'
    when rejected.kind is not null then 'rejected' else 'never-held' end as peer_outcome,
  rejected.reason as rejected_reason,
  rejected.kind as rejected_kind,
  rejected.namespace as rejected_namespace,
  rejected.name as rejected_name,
  coalesce(peer_service.end_id, chosen_pod.end_id,
    case when rejected.kind is not null then 3 else ${rangeEnd} end) as peer_end`

const podColumns = [
  'pod_id',
  'is_host_network',
  'namespace',
  'name',
  'uid',
  'workload_kind',
  'workload_name',
  'labels_id',
  'end_id',
] as const

/**
 * The body of a CTE named `held`: many rows of `asked`, numbered by `place`, each with the living pod that held the address, if
 * any, and whether anybody is known to have had it. A living pod comes before all others, and of these there is an index that
 * answers in one step. One sort of all rows costs a fraction of one for each.
 */
export function livingHolders(asked: string): string {
  return `
  select distinct on (l.place) l.*, ${podColumns.map((column) => `a.${column} as held_${column}`).join(', ')},
    a.pod_id is not null or exists (select from pod_addresses where address = l.peer_ip)
      or exists (select from service_addresses where address = l.peer_ip)
      or exists (select from node_addresses where address = l.peer_ip) as is_known
  from ${asked} l left join pod_addresses a on a.address = l.peer_ip and not a.is_dead and a.started_at <= l.seen
  order by l.place, a.started_at desc, a.last_seen desc, a.namespace || '/' || a.name, coalesce(a.uid, ''), a.pod_id`
}

/**
 * The rows of `held` with `columns` of theirs and their peer, the same as `chosenHolder` finds. Most have a living pod or are
 * strangers, and for those nothing else is looked up.
 */
export function stampedRows(columns: string): string {
  const pod = podColumns.map((column) => `coalesce(l.held_${column}, dead.${column}) as ${column}`).join(', ')
  return `
  select ${columns}, case when l.is_known then 'pod' end as peer_kind, l.held_namespace as peer_namespace, l.held_name as peer_name,
    l.held_uid as peer_uid, l.held_workload_kind as peer_workload_kind, l.held_workload_name as peer_workload_name,
    l.held_labels_id as peer_labels_id, case when l.is_known then 'resolved' else 'never-held' end as peer_outcome,
    null::text as rejected_reason, null::text as rejected_kind, null::text as rejected_namespace, null::text as rejected_name,
    coalesce(l.held_end_id, ${rangeEnd}) as peer_end
  from held l where not l.is_known or not l.held_is_host_network
  union all
  select ${columns}, ${stampColumns}
  from held l
  left join lateral (
    select a.* from pod_addresses a where l.held_pod_id is null and ${mayHold} order by ${bestFirst} limit 1
  ) dead on true
  cross join lateral (select ${pod}) chosen_pod ${otherHolders}
  where l.is_known and l.held_is_host_network is not false`
}

/** A pod by namespace and name as one text: what the index `pods_by_full_name` holds. */
export function fullNameSql(namespace: string, name: string): string {
  return `${namespace} || E'\\x1f' || ${name}`
}

/** What both ends share of a flow's key, as `flowKeyText` of `#flows/flow-key` writes it. */
function flowKeyMiddleSql(row: string): string {
  const port = (direction: string, column: string): string =>
    `case when ${row}.direction = '${direction}' then ${row}.${column}::text end`
  const parts = [
    `${row}.direction`,
    `${row}.protocol`,
    port('INGRESS', 'own_port'),
    `${row}.peer_ip`,
    port('EGRESS', 'peer_port'),
    `${row}.decision`,
  ]
  return parts.map(orEmpty).join(between)
}

/** A part that is absent is empty text, and no text holds the separator, so that no two keys read alike. */
export function flowKeySql(row: string): string {
  const own = `case when ${row}.pod_uid is not null then E'\\x1f\\x1f' || ${row}.pod_uid
    else ${[`${row}.pod_namespace`, `${row}.pod_name`, `${row}.pod_ip`].map(orEmpty).join(between)} end`
  const peer = `case when ${row}.peer_kind is null then E'\\x1f\\x1f\\x1f'
    when ${row}.peer_uid is not null then ${row}.peer_kind || E'\\x1f' || ${row}.peer_uid || E'\\x1f\\x1f'
    else ${row}.peer_kind || E'\\x1f\\x1f' || ${[`${row}.peer_namespace`, `${row}.peer_name`].map(orEmpty).join(between)} end`
  // SHA-256 rather than md5, which a PostgreSQL under FIPS rules does not have.
  return `left(encode(sha256(convert_to(${[own, flowKeyMiddleSql(row), peer].join(between)}, 'UTF8')), 'hex'), 32)::uuid`
}

const between = ` || E'\\x1f' || `

function orEmpty(column: string): string {
  return `coalesce(${column}, '')`
}

function rejectedHolders(): string {
  return `
    select a.pod_id as holder_id, case when a.is_host_network then 'node' else 'pod' end as kind, a.namespace, a.name, coalesce(a.uid, '') as uid,
      case when a.started_at is null then 'start-unknown' when a.started_at > l.seen then 'started-after'
        else 'ended-before' end as reason,
      case when a.started_at is null then interval '9000 years' when a.started_at > l.seen then a.started_at - l.seen
        else l.seen - a.allowed_until end as distance
    from pod_addresses a where a.address = l.peer_ip
    union all
    select s.service_id, 'service', s.namespace, s.name, coalesce(s.uid, ''),
      case when s.created_at > l.seen then 'started-after' else 'ended-before' end,
      case when s.created_at > l.seen then s.created_at - l.seen else l.seen - s.died_at end
    from service_addresses s where s.address = l.peer_ip`
}

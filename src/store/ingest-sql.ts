/** The one statement that stores a batch: look up, stamp, key, deduplicate, count, roll up, remember the answer. */
import { edgeBatchSql } from './edge-batch-sql'
import { flowKeySql, fullNameSql, livingHolders, stampedRows } from './holder-sql'

/**
 * Numbers and times before texts, here and below: sorts read a column by walking the ones before it, and those of fixed width are
 * not walked.
 */
const reportedColumns = `l.place, l.seen, l.day, l.hits, l.flow_id, l.own_port, l.peer_port, l.pod_labels_id, l.pod_end, l.pod_namespace,
  l.pod_name, l.pod_uid, l.pod_ip, l.pod_workload_kind, l.pod_workload_name, l.direction, l.protocol, l.peer_ip, l.decision, l.peer_range`

const sentColumns = {
  flow_id: 'uuid',
  time: 'int8',
  hits: 'int8',
  pod_namespace: 'text',
  pod_name: 'text',
  sent_uid: 'text',
  pod_ip: 'text',
  direction: 'text',
  protocol: 'text',
  own_port: 'int4',
  peer_ip: 'text',
  peer_port: 'int4',
  decision: 'text',
  peer_range: 'text',
} as const

/** Lists walked side by side in the select list: one `unnest` of them all in FROM keeps each list in a store first, eight times the work. */
const sentRows = `select generate_series(1, cardinality($1::uuid[])) as place, ${Object.entries(sentColumns)
  .map(([column, type], index) => {
    const one = `unnest($${index + 1}::${type}[])`
    return column === 'time' ? `timestamptz 'epoch' + ${one} * interval '1 microsecond' as seen` : `${one} as ${column}`
  })
  .join(', ')}`

/**
 * Parameters: fourteen lists of equal length, one element a row, then the batch's key or null, the time of now in microseconds,
 * the bad rows as JSON, whether the keys of the rows written are wanted, and the digest of the batch that the key stands for.
 *
 * Rows are written in the order of their keys, so that two batches that share rows wait for each other and do not deadlock.
 * A row learns the end of the pod that observed it as soon as that is reported: the late pass moves its hits from there.
 */
export const ingestText = `
with replay as (
  select answer from ingest_batches where batch_key = $15::text
), arrived as (
  select i.*, (i.seen at time zone 'UTC')::date as day, case when i.direction = 'EGRESS' then i.peer_port end as target_port
  from (${sentRows}) i
  where not exists (select from replay)
), reported as (
  select distinct on (l.place) l.*, coalesce(l.sent_uid, p.uid) as pod_uid,
    p.workload_kind as pod_workload_kind, p.workload_name as pod_workload_name, p.labels_id as pod_labels_id, p.end_id as pod_end
  from arrived l
  left join pods p on ${fullNameSql('p.namespace', 'p.name')} = ${fullNameSql('l.pod_namespace', 'l.pod_name')}
    and (l.sent_uid is null or p.uid = l.sent_uid) and (p.started_at is null or p.started_at <= l.seen)
  order by l.place, p.started_at desc nulls last, p.is_dead, p.last_seen desc
), held as materialized (${livingHolders('reported')}
), stamped as (${stampedRows(reportedColumns)}
), keyed as materialized (
  select ${flowKeySql('s')} as flow_key, s.* from stamped s
), firsts as (
  select distinct on (flow_key, day) * from keyed order by flow_key, day, seen, place
), repeats as (
  select day as repeated_day, flow_key as repeated_key, sum(hits) as all_hits, max(seen) as last_seen
  from keyed group by flow_key, day having count(*) > 1
), written as (
  insert into flows as f (day, flow_key, flow_id, first_seen, last_seen, hits, pod_namespace, pod_name, pod_uid, pod_ip,
    pod_workload_kind, pod_workload_name, pod_labels_id, direction, protocol, own_port, peer_ip, peer_port, decision, peer_range,
    peer_kind, peer_namespace, peer_name, peer_uid, peer_workload_kind, peer_workload_name, peer_resolved_at, peer_labels_id,
    peer_outcome, rejected_reason, rejected_kind, rejected_namespace, rejected_name, pod_end, peer_end)
  select day, flow_key, flow_id, seen, coalesce(last_seen, seen), coalesce(all_hits, hits), pod_namespace, pod_name, pod_uid, pod_ip,
    pod_workload_kind, pod_workload_name, pod_labels_id, direction, protocol, own_port, peer_ip, peer_port, decision, peer_range,
    peer_kind, peer_namespace, peer_name, peer_uid, peer_workload_kind, peer_workload_name,
    case when peer_kind is not null then timestamptz 'epoch' + $16::int8 * interval '1 microsecond' end, peer_labels_id,
    peer_outcome, rejected_reason, rejected_kind, rejected_namespace, rejected_name, pod_end, peer_end
  from firsts left join repeats on repeated_key = flow_key and repeated_day = day order by flow_key, day
  on conflict (day, flow_key) do update set hits = f.hits + excluded.hits, is_repeated = true,
    pod_end = coalesce(f.pod_end, excluded.pod_end),
    first_seen = least(f.first_seen, excluded.first_seen), last_seen = greatest(f.last_seen, excluded.last_seen)
  returning f.day, f.flow_key, f.is_repeated
), rolled as (
  ${edgeBatchSql('keyed')}
), queued as (
  insert into audit_queue (day, flow_key) select w.day, w.flow_key from written w
  where not w.is_repeated and exists (select from audit_objects)
), counted as (
  select count(*) filter (where not is_repeated) as stored, (select count(*) from keyed) as arrived from written
), remembered as (
  insert into ingest_batches (batch_key, answer, stored_at)
  select $15::text, jsonb_build_object('stored', c.stored, 'merged', c.arrived - c.stored, 'bad', $17::jsonb, 'digest', $19::text),
    timestamptz 'epoch' + $16::int8 * interval '1 microsecond'
  from counted c where $15::text is not null and not exists (select from replay)
)
select c.stored, c.arrived - c.stored as merged, (select answer from replay) as replay,
  case when $18::boolean then (select array_agg(w.day::text || ' ' || w.flow_key) from (select * from written limit 2000) w) end as written
from counted c`

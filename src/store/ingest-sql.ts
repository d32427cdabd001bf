/** The one statement that stores a batch: look up, stamp, key, deduplicate, count, roll up, remember the answer. */
import { flowKeySql, podHolders, stampedRows } from './holder-sql'

const reportedColumns = `l.place, l.flow_id, l.hits, l.seen, l.day, l.pod_namespace, l.pod_name, l.pod_uid, l.pod_ip, l.pod_workload_kind,
  l.pod_workload_name, l.pod_labels_id, l.pod_end, l.direction, l.protocol, l.own_port, l.peer_ip, l.peer_port, l.decision, l.peer_range,
  l.key_middle`

/**
 * Parameters: fifteen lists of equal length, one element a row, then the batch's key or null, the time of now in microseconds,
 * the bad rows as JSON, and whether the keys of the rows written are wanted.
 *
 * Rows are written in the order of their keys, so that two batches that share rows wait for each other and do not deadlock.
 */
export const ingestText = `
with replay as (
  select answer from ingest_batches where batch_key = $16::text
), arrived as (
  select i.*, timestamptz 'epoch' + i.time * interval '1 microsecond' as seen,
    case when i.direction = 'EGRESS' then i.peer_port end as target_port
  from unnest($1::uuid[], $2::int8[], $3::int8[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
    $10::int4[], $11::text[], $12::int4[], $13::text[], $14::text[], $15::text[]) with ordinality
    as i(flow_id, time, hits, pod_namespace, pod_name, sent_uid, pod_ip, direction, protocol, own_port, peer_ip, peer_port,
      decision, peer_range, key_middle, place)
  where not exists (select from replay)
), reported as (
  select distinct on (l.place) l.*, (l.seen at time zone 'UTC')::date as day, coalesce(l.sent_uid, p.uid) as pod_uid,
    p.workload_kind as pod_workload_kind, p.workload_name as pod_workload_name, p.labels_id as pod_labels_id, p.end_id as pod_end
  from arrived l
  left join pods p on p.namespace = l.pod_namespace and p.name = l.pod_name and (l.sent_uid is null or p.uid = l.sent_uid)
    and (p.started_at is null or p.started_at <= l.seen)
  order by l.place, p.started_at desc nulls last, p.is_dead, p.last_seen desc
), held as materialized (${podHolders('reported')}
), stamped as (${stampedRows(reportedColumns)}
), keyed as materialized (
  select s.*, ${flowKeySql('s', 's.key_middle')} as flow_key from stamped s
), grouped as (
  select k.*, row_number() over flow as sighting, sum(hits) over whole as all_hits, max(seen) over whole as last_seen
  from keyed k
  window flow as (partition by day, flow_key order by seen, place),
    whole as (flow rows between unbounded preceding and unbounded following)
), written as (
  insert into flows as f (day, flow_key, flow_id, first_seen, last_seen, hits, pod_namespace, pod_name, pod_uid, pod_ip,
    pod_workload_kind, pod_workload_name, pod_labels_id, direction, protocol, own_port, peer_ip, peer_port, decision, peer_range,
    peer_kind, peer_namespace, peer_name, peer_uid, peer_workload_kind, peer_workload_name, peer_resolved_at, peer_labels_id,
    peer_outcome, rejected_reason, rejected_kind, rejected_namespace, rejected_name, pod_end, peer_end)
  select day, flow_key, coalesce(flow_id, gen_random_uuid()), seen, last_seen, all_hits, pod_namespace, pod_name, pod_uid, pod_ip,
    pod_workload_kind, pod_workload_name, pod_labels_id, direction, protocol, own_port, peer_ip, peer_port, decision, peer_range,
    peer_kind, peer_namespace, peer_name, peer_uid, peer_workload_kind, peer_workload_name,
    case when peer_kind is not null then timestamptz 'epoch' + $17::int8 * interval '1 microsecond' end, peer_labels_id,
    peer_outcome, rejected_reason, rejected_kind, rejected_namespace, rejected_name, pod_end, peer_end
  from grouped where sighting = 1 order by day, flow_key
  on conflict (day, flow_key) do update set hits = f.hits + excluded.hits, is_repeated = true,
    first_seen = least(f.first_seen, excluded.first_seen), last_seen = greatest(f.last_seen, excluded.last_seen)
  returning f.day, f.flow_key, f.is_repeated
), rolled as (
  insert into edge_deltas (day, hour, pod_end, pod_namespace, pod_name, peer_end, is_ingress, protocol, port, decision, hits,
    first_seen, last_seen)
  select day, extract(hour from seen at time zone 'UTC')::smallint, pod_end,
    case when pod_end is null then pod_namespace end, case when pod_end is null then pod_name end, peer_end,
    direction = 'INGRESS', protocol, coalesce(case when direction = 'INGRESS' then own_port else peer_port end, 0), decision,
    sum(hits), min(seen), max(seen)
  from keyed group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
), queued as (
  insert into audit_queue (day, flow_key) select w.day, w.flow_key from written w
  where not w.is_repeated and exists (select from audit_objects)
), counted as (
  select count(*) filter (where not is_repeated) as stored, (select count(*) from keyed) as arrived from written
), remembered as (
  insert into ingest_batches (batch_key, answer, stored_at)
  select $16::text, jsonb_build_object('stored', c.stored, 'merged', c.arrived - c.stored, 'bad', $18::jsonb),
    timestamptz 'epoch' + $17::int8 * interval '1 microsecond'
  from counted c where $16::text is not null and not exists (select from replay)
)
select c.stored, c.arrived - c.stored as merged, (select answer from replay) as replay,
  case when $19::boolean then (select array_agg(w.day::text || ' ' || w.flow_key) from (select * from written limit 2000) w) end as written
from counted c`

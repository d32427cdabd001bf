/** The schema, as the steps that lead to it. A released step never changes; there is no way back. */
import { type Kysely, type Migration, sql } from 'kysely'

/** In the order of their names. */
export const migrations: Readonly<Record<string, Migration>> = {
  '01-holders': { up: (database) => runAll(database, [...labelSets, ...pods, ...services]) },
  '02-flows': { up: (database) => runAll(database, flows) },
  '03-peer-identity': { up: (database) => runAll(database, peerIdentity) },
  '04-edges': { up: (database) => runAll(database, edges) },
  '05-audit-verdicts': { up: (database) => runAll(database, auditVerdicts) },
  '06-audited-policies': { up: (database) => runAll(database, auditedPolicies) },
  '07-quick-look-ups': { up: (database) => runAll(database, quickLookUps) },
  '08-long-offenders': { up: (database) => runAll(database, longOffenders) },
  '09-edges-by-batch': { up: (database) => runAll(database, edgesByBatch) },
}

async function runAll(database: Kysely<unknown>, statements: readonly string[]): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(database)
}

/** Labels are kept once each: many pods and millions of flows share them, and they outlive the pods. */
const labelSets = [
  `create table label_sets (
    labels_id integer generated always as identity primary key,
    labels_hash uuid not null unique,
    labels jsonb not null
  )`,
]

/**
 * Of a pod there is one row an incarnation. `pod_addresses` repeats what the look-up of an address needs, so that one row
 * answers it. `allowed_until`: the last moment that the pod may have held the address, infinity while it lives; the index on it
 * passes by all who left before a flow, and they are most. No index holds `last_seen`, which every report changes: so a report
 * rewrites the row in place.
 */
const pods = [
  `create table pods (
    pod_id bigint generated always as identity primary key,
    pod_key text collate "C" not null unique,
    namespace text collate "C" not null,
    name text collate "C" not null,
    uid text collate "C",
    addresses text[] not null,
    node_name text,
    started_at timestamptz,
    is_host_network boolean,
    workload_kind text,
    workload_name text,
    identity text,
    selector_labels jsonb,
    labels_id integer,
    end_id integer,
    record jsonb,
    content_hash text not null,
    first_seen timestamptz not null,
    last_seen timestamptz not null,
    is_dead boolean not null default false,
    died_at timestamptz,
    death_reason text,
    allowed_until timestamptz not null default 'infinity'
  ) with (fillfactor = 85)`,
  'create index pods_by_name on pods (namespace, name, started_at)',
  'create index pods_by_bare_name on pods (name)',
  'create index pods_by_uid on pods (uid)',
  'create index pods_by_node on pods (node_name) where not is_dead',
  'create index pods_dead on pods (allowed_until) where is_dead',
  `create table pod_addresses (
    address text collate "C" not null,
    pod_id bigint not null references pods on delete cascade,
    namespace text collate "C" not null,
    name text collate "C" not null,
    uid text collate "C",
    workload_kind text,
    workload_name text,
    labels_id integer,
    end_id integer,
    is_host_network boolean not null,
    is_dead boolean not null default false,
    started_at timestamptz,
    held_from timestamptz,
    last_seen timestamptz not null,
    died_at timestamptz,
    death_reason text,
    allowed_until timestamptz not null default 'infinity',
    primary key (pod_id, address)
  ) with (fillfactor = 85)`,
  'create index pod_addresses_by_address on pod_addresses (address, allowed_until)',
  'create table node_addresses (address text collate "C" primary key, last_seen timestamptz not null)',
]

const services = [
  `create table services (
    service_id bigint generated always as identity primary key,
    namespace text collate "C" not null,
    name text collate "C" not null,
    uid text collate "C",
    selector jsonb,
    labels_id integer,
    selector_id integer,
    end_id integer,
    record jsonb,
    content_hash text not null,
    created_at timestamptz,
    first_seen timestamptz not null,
    last_seen timestamptz not null,
    deleted_at timestamptz
  )`,
  'create index services_by_name on services (namespace, name)',
  `create table service_addresses (
    address text collate "C" not null,
    service_id bigint not null references services on delete cascade,
    address_kind text not null,
    namespace text collate "C" not null,
    name text collate "C" not null,
    uid text collate "C",
    is_dead boolean not null default false,
    created_at timestamptz,
    held_from timestamptz not null,
    last_seen timestamptz not null,
    died_at timestamptz,
    primary key (service_id, address)
  )`,
  'create index service_addresses_by_address on service_addresses (address, is_dead)',
  `create table node_ports (
    protocol text collate "C" not null,
    port integer not null,
    service_id bigint not null references services on delete cascade,
    namespace text collate "C" not null,
    name text collate "C" not null,
    uid text collate "C",
    is_dead boolean not null default false,
    created_at timestamptz,
    last_seen timestamptz not null,
    died_at timestamptz,
    primary key (service_id, protocol, port)
  )`,
  'create index node_ports_by_port on node_ports (port, protocol, is_dead)',
]

/**
 * `peer_range`: where an address lies that nobody holds, and whether the text is an address at all. `is_repeated`: more than one
 * batch brought the row, which is how a batch learns which of its rows are new.
 */
const flows = [
  `create table flows (
    day date not null,
    flow_key uuid not null,
    flow_id uuid not null,
    first_seen timestamptz not null,
    last_seen timestamptz not null,
    hits bigint not null,
    pod_namespace text collate "C",
    pod_name text collate "C" not null,
    pod_uid text collate "C",
    pod_ip text collate "C",
    direction text not null,
    protocol text not null,
    own_port integer,
    peer_ip text collate "C",
    peer_port integer,
    decision text not null,
    peer_range text not null,
    is_repeated boolean not null default false,
    primary key (day, flow_key)
  ) partition by range (day)`,
  'create index flows_by_time on flows (first_seen desc, flow_id desc)',
  'create index flows_by_pod on flows (pod_name, first_seen desc)',
  `create table ingest_batches (
    batch_key text primary key,
    answer jsonb not null,
    stored_at timestamptz not null
  )`,
  'create index ingest_batches_by_time on ingest_batches (stored_at)',
]

/** Every column may be null, and on rows of before it is: no row is given an identity that nobody looked up at its time. */
const peerIdentity = [
  `alter table flows
    add column pod_workload_kind text,
    add column pod_workload_name text,
    add column pod_labels_id integer,
    add column peer_kind text,
    add column peer_namespace text collate "C",
    add column peer_name text collate "C",
    add column peer_uid text collate "C",
    add column peer_workload_kind text,
    add column peer_workload_name text,
    add column peer_resolved_at timestamptz,
    add column peer_labels_id integer,
    add column peer_outcome text,
    add column rejected_reason text,
    add column rejected_kind text,
    add column rejected_namespace text,
    add column rejected_name text`,
  'create index flows_without_peer on flows (first_seen desc, flow_id desc) where peer_kind is null',
]

/**
 * An edge is one row a day with its hits by hour. Ingest appends to `edge_deltas`, which has no index to keep; a pass adds
 * them up. `peer_end` 1, 2 and 3 stand for everything on the internet, in private networks, and unattributed.
 */
const edges = [
  `create table edge_ends (
    end_id integer generated always as identity primary key,
    end_hash uuid not null unique,
    kind text not null,
    namespace text,
    workload_kind text,
    workload_name text,
    name text
  )`,
  `insert into edge_ends (end_hash, kind) values
    ('00000000-0000-0000-0000-000000000001', 'internet'),
    ('00000000-0000-0000-0000-000000000002', 'private-network'),
    ('00000000-0000-0000-0000-000000000003', 'unattributed')`,
  'alter table flows add column pod_end integer, add column peer_end integer',
  `create table edge_deltas (
    day date not null,
    hour smallint not null,
    pod_end integer,
    pod_namespace text,
    pod_name text,
    peer_end integer not null,
    is_ingress boolean not null,
    protocol text not null,
    port integer not null,
    decision text not null,
    hits bigint not null,
    first_seen timestamptz not null,
    last_seen timestamptz not null
  )`,
  `create table edges (
    day date not null,
    from_end integer not null,
    to_end integer not null,
    is_ingress boolean not null,
    protocol text collate "C" not null,
    port integer not null,
    decision text collate "C" not null,
    hits_by_hour bigint[] not null,
    first_seen timestamptz not null,
    last_seen timestamptz not null,
    primary key (day, from_end, to_end, protocol, port, decision, is_ingress)
  ) with (fillfactor = 80)`,
]

/** What a policy would have done to a flow; a cluster-scoped policy has an empty namespace. */
const auditVerdicts = [
  `create table audit_verdicts (
    id bigint generated always as identity primary key,
    policy_uid text not null,
    policy_namespace text collate "C" not null,
    policy_name text collate "C" not null,
    direction text not null check (direction in ('Ingress', 'Egress')),
    src_namespace text,
    src_pod text,
    dst_namespace text,
    dst_pod text,
    dst_port integer not null,
    protocol text not null,
    reason text,
    observed_at timestamptz not null,
    verdict text not null default 'WouldDeny' check (verdict in ('Allow', 'WouldDeny'))
  )`,
  'create index audit_verdicts_by_time on audit_verdicts (observed_at desc, id desc)',
  'create index audit_verdicts_by_verdict on audit_verdicts (verdict, observed_at desc)',
  'create index audit_verdicts_by_policy on audit_verdicts (policy_namespace, policy_name, observed_at desc)',
]

/**
 * `audit_queue` holds the flows that are not judged yet; ingest writes it while there are policies. `scope`: policies of earlier
 * generations have judged the flow.
 */
const auditedPolicies = [
  `create table audit_objects (
    kind text collate "C" not null,
    namespace text collate "C" not null,
    name text collate "C" not null,
    uid text not null,
    semantics text not null,
    manifest jsonb not null,
    generation bigint not null,
    updated_at timestamptz not null,
    primary key (kind, namespace, name)
  )`,
  `create table audit_state (
    is_only boolean primary key default true check (is_only),
    generation bigint not null default 0,
    backfill_from bigint
  )`,
  'insert into audit_state default values',
  `create table audit_queue (
    queue_id bigint generated always as identity primary key,
    day date not null,
    flow_key uuid not null,
    scope bigint not null default 0
  )`,
  'create index audit_queue_by_flow on audit_queue (day, flow_key)',
  `create table audit_sets (
    semantics text primary key,
    evaluated bigint not null,
    allowed bigint not null,
    would_deny bigint not null,
    unknown bigint not null,
    dropped bigint not null,
    judged_at timestamptz
  )`,
  `create table audit_counters (
    kind text collate "C" not null,
    namespace text collate "C" not null,
    name text collate "C" not null,
    evaluated bigint not null,
    allowed bigint not null,
    would_deny bigint not null,
    primary key (kind, namespace, name)
  )`,
  `create table audit_offenders (
    kind text collate "C" not null,
    namespace text collate "C" not null,
    name text collate "C" not null,
    peer text collate "C" not null,
    flows bigint not null,
    last_seen timestamptz not null,
    primary key (kind, namespace, name, peer)
  )`,
]

/**
 * What ingest asks of each row, answered by a page of a hash index instead of the levels of a tree: who the pod is that saw the
 * flow, and which living pod has the address. The expression is `fullNameSql`.
 */
const quickLookUps = [
  `create index pods_by_full_name on pods using hash ((namespace || E'\\x1f' || name))`,
  'create index pod_addresses_living on pod_addresses using hash (address) where not is_dead',
]

/** A peer is a namespace, a kind and a name of up to 1024 bytes each, more than a row of an index may hold. */
const longOffenders = [
  'alter table audit_offenders add column peer_hash uuid',
  `update audit_offenders set peer_hash = left(encode(sha256(convert_to(peer, 'UTF8')), 'hex'), 32)::uuid`,
  'alter table audit_offenders drop constraint audit_offenders_pkey',
  'alter table audit_offenders alter column peer_hash set not null',
  'alter table audit_offenders add primary key (kind, namespace, name, peer_hash)',
]

/**
 * What a batch adds to edges is one row of lists, not a row for each sighting: half the work to write, and less to take out again.
 * What waits in the old table is carried over, its last sighting as one without hits. `external`: compressing costs more than it saves.
 */
const edgesByBatch = [
  `create table edge_batches (
    batch_id bigint generated always as identity primary key,
    sightings integer not null,
    has_strangers boolean not null,
    seen timestamptz[] not null,
    hits bigint[] not null,
    pod_ends integer[] not null,
    pod_namespaces text[] not null,
    pod_names text[] not null,
    peer_ends integer[] not null,
    are_ingress boolean[] not null,
    protocols text[] not null,
    ports integer[] not null,
    decisions text[] not null
  )`,
  `alter table edge_batches ${[
    'seen',
    'hits',
    'pod_ends',
    'peer_ends',
    'are_ingress',
    'protocols',
    'ports',
    'decisions',
  ]
    .map((column) => `alter column ${column} set storage external`)
    .join(', ')}`,
  // A broker of before may still run: what it is writing and taking there ends first.
  'lock table edge_deltas',
  `insert into edge_batches (sightings, has_strangers, seen, hits, pod_ends, pod_namespaces, pod_names, peer_ends, are_ingress,
      protocols, ports, decisions)
    select count(*), bool_or(pod_end is null), array_agg(s.seen), array_agg(s.hits), array_agg(pod_end), array_agg(pod_namespace),
      array_agg(pod_name), array_agg(peer_end), array_agg(is_ingress), array_agg(protocol), array_agg(port), array_agg(decision)
    from (select *, row_number() over () / 5000 as part from edge_deltas) d
    cross join lateral (values (d.first_seen, d.hits), (d.last_seen, 0)) s(seen, hits)
    group by part`,
  'drop table edge_deltas',
]

/** The SQL decides as the pure functions do: holders of random histories, rows of random filters, keys of random flows. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { chooseHolder } from '#flows/choose-holder'
import type { FlowCondition, FlowFilter } from '#flows/filter'
import type { IncomingFlow, StoredFlow } from '#flows/flow'
import { flowKeyText } from '#flows/flow-key'
import type { Holder, HolderAnswer, PodHolder, ServiceHolder } from '#flows/holder'
import { matchesFlow } from '#flows/matches-flow'
import { arrayText, type Engine } from '#store/engine'
import { describeStores } from './describe-stores'
import { allFlows, egress, ingest, noon, putPod, putService, second } from './story'

const seed = Number(process.env.PORTOLAN_SEED ?? 4)
const histories = 60
const filters = 150

const moment = fc.integer({ min: -6, max: 6 }).map((step) => noon + step * second)
const name = fc.constantFrom('a', 'b', 'c')

const podHolder: fc.Arbitrary<PodHolder> = fc
  .record({
    namespace: fc.constantFrom('shop', 'cache'),
    name,
    isHostNetwork: fc.boolean(),
    startedAt: fc.option(moment),
    lastSeen: moment,
    death: fc.option(
      fc.record({ diedAt: moment, reason: fc.constantFrom('marked', 'stale', 'replaced', 'address-left') }),
    ),
  })
  .map(({ death, ...pod }) => ({
    ...pod,
    kind: 'pod',
    uid: null,
    workload: null,
    isDead: death !== null,
    diedAt: death?.diedAt ?? null,
    deathReason: (death?.reason ?? null) as PodHolder['deathReason'],
  }))

const serviceHolder: fc.Arbitrary<ServiceHolder> = fc
  .record({
    namespace: fc.constantFrom('shop', 'cache'),
    name,
    addressKind: fc.constantFrom('cluster', 'external', 'node-port'),
    createdAt: fc.option(moment),
    lastSeen: moment,
    diedAt: fc.option(moment),
  })
  .map((service) => ({ ...service, kind: 'service', uid: null, isDead: service.diedAt !== null }) as ServiceHolder)

const history = fc
  .array(fc.oneof({ weight: 3, arbitrary: podHolder }, { weight: 1, arbitrary: serviceHolder }), { maxLength: 7 })
  .map((holders) => holders.map((holder, index) => ({ ...holder, uid: `u${index}` })))

/** Written past the store's own rules, so that every history there could be is tried. */
async function write(engine: Engine, holders: readonly Holder[], address: string): Promise<void> {
  for (const holder of holders)
    await (holder.kind === 'pod' ? writePod : writeService)(engine, holder as never, address)
}

const time = (parameter: number): string => `(timestamptz 'epoch' + $${parameter}::int8 * interval '1 microsecond')`

async function writePod(engine: Engine, pod: PodHolder, address: string): Promise<void> {
  const isTold = pod.deathReason === 'marked' || pod.deathReason === 'replaced'
  const until = isTold ? Math.max(pod.lastSeen ?? 0, pod.diedAt ?? 0) : pod.lastSeen
  await engine.query({
    text: `with p as (
        insert into pods (pod_key, namespace, name, uid, addresses, content_hash, first_seen, last_seen, started_at, is_host_network)
        values (gen_random_uuid()::text, $1, $2, $3, '{}', '', ${time(4)}, ${time(4)}, ${time(5)}, $6::boolean) returning *
      ) insert into pod_addresses (address, pod_id, namespace, name, uid, is_host_network, started_at, last_seen, is_dead, died_at,
        death_reason, allowed_until)
      select $7, pod_id, namespace, name, uid, is_host_network, started_at, last_seen, $8::boolean, ${time(9)}, $10,
        case when $8::boolean then ${time(11)} else 'infinity' end from p`,
    values: [
      pod.namespace,
      pod.name,
      pod.uid,
      pod.lastSeen,
      pod.startedAt,
      pod.isHostNetwork,
      address,
      pod.isDead,
      pod.diedAt,
      pod.deathReason,
      until,
    ],
  })
}

async function writeService(engine: Engine, service: ServiceHolder, address: string): Promise<void> {
  const isPort = service.addressKind === 'node-port'
  const columns = 'namespace, name, uid, created_at, last_seen, is_dead, died_at'
  await engine.query({
    text: `with s as (
        insert into services (namespace, name, uid, content_hash, created_at, first_seen, last_seen)
        values ($1, $2, $3, '', ${time(4)}, ${time(5)}, ${time(5)}) returning *
      ), one as (select s.*, $6::boolean as is_dead, ${time(7)} as died_at from s)
      ${
        isPort
          ? `insert into node_ports (service_id, protocol, port, ${columns}) select service_id, 'TCP', 5432, ${columns} from one where $8::text <> $9::text`
          : `insert into service_addresses (service_id, address, address_kind, held_from, ${columns})
             select service_id, $8, $9, first_seen, ${columns} from one`
      }`,
    values: [
      service.namespace,
      service.name,
      service.uid,
      service.createdAt,
      service.lastSeen,
      service.isDead,
      service.diedAt,
      address,
      service.addressKind,
    ],
  })
}

function summary(answer: HolderAnswer): unknown {
  if (answer.kind === 'resolved') return ['resolved', answer.peerKind, answer.holder.uid]
  return answer.kind === 'rejected' ? ['rejected', answer.reason, answer.nearest.uid] : ['never-held']
}

function outcomeOf(flow: StoredFlow | undefined): unknown {
  if (flow?.peer != null) return ['resolved', flow.peer.kind, flow.peer.uid]
  return flow?.outcome?.kind === 'rejected'
    ? ['rejected', flow.outcome.reason, `${flow.outcome.nearest.namespace}/${flow.outcome.nearest.name}`]
    : [flow?.outcome?.kind]
}

function expectedOutcome(answer: HolderAnswer): unknown {
  if (answer.kind !== 'rejected') return summary(answer)
  return ['rejected', answer.reason, `${answer.nearest.namespace}/${answer.nearest.name}`]
}

describeStores('the SQL agrees with the pure functions', (opened) => {
  test('on who held an address, at every moment, for look-ups and for stamps', async () => {
    const { engine, store } = opened()
    const given = fc.sample(history, { numRuns: histories, seed })
    const address = (index: number): string => `10.7.${index >> 8}.${index & 255}`
    for (const [index, holders] of given.entries()) await write(engine, holders, address(index))
    const addresses = given.map((_, index) => address(index))
    await engine.query({
      text: 'insert into node_addresses (address, last_seen) select a, now() from unnest($1::text[]) a',
      values: [arrayText(addresses)],
    })
    const moments = [-7, -3, 0, 2, 7].map((step) => noon + step * second)
    // Node ports are of every node: all histories share them, as the database has it.
    const ports = given.flat().filter((holder) => holder.kind === 'service' && holder.addressKind === 'node-port')
    for (const [index, holders] of given.entries()) {
      const own = holders.filter((holder) => holder.kind === 'pod' || holder.addressKind !== 'node-port')
      const moment = moments[index % moments.length] ?? noon
      const plain = await store.holderAt(address(index), moment)
      expect([index, summary(plain)]).toEqual([index, summary(chooseHolder(own, moment))])
      const withPorts = await store.holderAt(address(index), moment, { protocol: 'tcp', port: 5432 })
      expect([index, kindOf(withPorts)]).toEqual([index, kindOf(chooseHolder([...own, ...ports], moment))])
    }
    for (const moment of moments) {
      const rows = given.map((_, index) =>
        egress(address(index), moment, { peerPort: 80, pod: { namespace: 'x', name: `p${moment}`, address: null } }),
      )
      await ingest(store, rows)
    }
    const flows = new Map((await allFlows(store)).map((flow) => [`${flow.peerAddress} ${flow.firstSeen}`, flow]))
    for (const [index, holders] of given.entries()) {
      const own = holders.filter((holder) => holder.kind === 'pod' || holder.addressKind !== 'node-port')
      for (const moment of moments) {
        const answer = chooseHolder(own, moment)
        expect([index, moment, outcomeOf(flows.get(`${address(index)} ${moment}`))]).toEqual([
          index,
          moment,
          expectedOutcome(answer),
        ])
      }
    }
  })

  test('on which rows a filter lets through', async () => {
    const { store } = opened()
    await putPods(store)
    await ingest(store, fc.sample(incoming, { numRuns: 300, seed }))
    const rows = await allFlows(store)
    expect(rows.length).toBeGreaterThan(100)
    let through = 0
    for (const filter of fc.sample(anyFilter, { numRuns: filters, seed })) {
      const wanted = rows.filter((row) => matchesFlow(filter, row)).map(({ id }) => id)
      const found: string[] = []
      for await (const page of store.streamFlows(filter)) found.push(...page.map(({ id }) => id))
      expect([JSON.stringify(filter), found]).toEqual([JSON.stringify(filter), wanted])
      through += wanted.length
    }
    expect(through).toBeGreaterThan(filters)
  })

  test('on which sightings are one flow: a row for each key text and day', async () => {
    const { store } = opened()
    await putPods(store)
    const sent = fc.sample(incoming, { numRuns: 300, seed: seed + 1 })
    await ingest(store, sent)
    const rows = await allFlows(store)
    expect(new Set(rows.map((row) => `${row.day} ${flowKeyText(row)}`)).size).toBe(rows.length)
    expect(rows.reduce((sum, { hits }) => sum + hits, 0)).toBe(sent.reduce((sum, { hits }) => sum + (hits ?? 1), 0))
  })
})

/** Node ports of every history are in play, so which of them is the one is not compared, only that it is one. */
function kindOf(answer: HolderAnswer): unknown {
  return answer.kind === 'resolved' && answer.peerKind === 'service' ? 'service' : summary(answer)
}

async function putPods(store: Parameters<typeof putPod>[0]): Promise<void> {
  const web = { workload: { kind: 'Deployment', name: 'web' }, labels: { app: 'web', tier: 'front' }, uid: 'w' }
  await putPod(store, 'shop/web', '10.0.0.1', web)
  await putPod(store, 'shop/web-2', '10.0.0.2', { ...web, uid: 'w2', labels: { app: 'web' } })
  await putPod(store, 'cache/web', 'fd00::3', {
    labels: { app: 'redis' },
    workload: { kind: 'StatefulSet', name: 'web' },
  })
  await putPod(store, 'kube-system/proxy', '192.168.0.5', { isHostNetwork: true })
  await putService(store, 'shop/db', '10.96.0.1', { selector: { app: 'db' } })
}

const incoming: fc.Arbitrary<IncomingFlow> = fc.record({
  pod: fc.constantFrom(
    { namespace: 'shop', name: 'web', address: '10.0.0.1' },
    { namespace: 'shop', name: 'web-2', address: '10.0.0.2' },
    { namespace: 'cache', name: 'web', address: 'fd00::3' },
    { namespace: null, name: 'stranger', address: null },
  ),
  direction: fc.constantFrom('INGRESS', 'EGRESS'),
  protocol: fc.constantFrom('TCP', 'udp', 'SCTP'),
  ownPort: fc.constantFrom(0, 80, 5432, null),
  peerAddress: fc.constantFrom(
    '10.0.0.1',
    '10.0.0.2',
    'FD00:0::3',
    '192.168.0.5',
    '10.96.0.1',
    '8.8.8.8',
    'fe80::1%eth0',
    '',
    null,
  ),
  peerPort: fc.constantFrom(0, 80, 5432, null),
  decision: fc.constantFrom('ALLOW', 'DROP'),
  time: fc.integer({ min: -50, max: 50 }).map((hours) => noon + hours * 3_600 * second),
  hits: fc.integer({ min: 1, max: 9 }),
})

const side = fc.constantFrom('from', 'to', 'either')
const namespace = fc.constantFrom('shop', 'cache', 'kube-system', 'none')
const condition: fc.Arbitrary<FlowCondition> = fc.oneof(
  fc.record({ field: fc.constant('pod'), side, namespace, namePrefix: fc.constantFrom('', 'w', 'web', 'web-', 'x') }),
  fc.record({ field: fc.constant('pod'), side, namePrefix: fc.constantFrom('', 'web', 'str', '%') }),
  fc.record({ field: fc.constant('reporter'), name: fc.constantFrom('web', 'web-2', 'stranger') }),
  fc.record({ field: fc.constant('reporter'), namespace, name: fc.constantFrom('web', 'web-2', 'stranger') }),
  fc.record({ field: fc.constant('namespace'), side, namespace }),
  fc.record({
    field: fc.constant('labels'),
    side,
    requirements: fc.array(
      fc.record({
        key: fc.constantFrom('app', 'tier', 'none'),
        operator: fc.constantFrom('In', 'NotIn', 'Exists', 'DoesNotExist'),
        values: fc.subarray(['web', 'redis', 'db', 'a"b\\']),
      }),
      { maxLength: 2 },
    ),
  }),
  fc.record({ field: fc.constant('workload'), side, name: fc.constantFrom('web', 'db') }),
  fc.record({
    field: fc.constant('workload'),
    side,
    namespace,
    kind: fc.constantFrom('deployment', 'StatefulSet'),
    name: fc.constant('web'),
  }),
  fc.record({
    field: fc.constant('ip'),
    side,
    address: fc.constantFrom('::ffff:10.0.0.1', 'fd00::3', '8.8.8.8', 'fe80::1%eth0'),
  }),
  fc.record({
    field: fc.constant('cidr'),
    side,
    cidr: fc.constantFrom('10.0.0.0/8', '10.0.0.0/31', 'fd00::/8', '::/0', '0.0.0.0/0', 'x'),
  }),
  fc.record({ field: fc.constant('port'), port: fc.constantFrom(0, 80, 5432) }),
  fc.record({ field: fc.constant('protocol'), protocol: fc.constantFrom('tcp', 'UDP') }),
  fc.record({ field: fc.constant('decision'), decision: fc.constantFrom('allow', 'DROP') }),
  fc.record({ field: fc.constant('direction'), direction: fc.constantFrom('INGRESS', 'EGRESS') }),
  fc.record({ field: fc.constant('peer-kind'), peerKind: fc.constantFrom('pod', 'node', 'service', 'none') }),
) as fc.Arbitrary<FlowCondition>

const bound = fc.option(
  fc.integer({ min: -50, max: 50 }).map((hours) => noon + hours * 3_600 * second),
  { freq: 1 },
)
const anyFilter: fc.Arbitrary<FlowFilter> = fc
  .record({
    terms: fc.array(fc.record({ anyOf: fc.array(condition, { maxLength: 3 }), isNegated: fc.boolean() }), {
      maxLength: 3,
    }),
    since: bound,
    until: bound,
  })
  .map(({ terms, since, until }) => ({
    terms,
    ...(since === null ? {} : { since }),
    ...(until === null ? {} : { until }),
  }))

/** Ownership and stamping: the cases of the guard and of the peers, as the database decides them. */
import { expect, test } from 'vitest'
import { everyFlow } from '#flows/filter'
import type { StoredFlow } from '#flows/flow'
import { describeStores } from './describe-stores'
import { allFlows, at, day, egress, ingest, noon, peerOf, putPod, putService, second, stamped } from './story'

describeStores('stamping at ingest', (opened) => {
  test('cases 1 and 2: never a pod that started after the flow; the very moment is allowed', async () => {
    const { store } = opened()
    await putPod(store, 'media/autobrr', '10.0.0.9', { startedAt: at('2026-08-04T09:12:41'), now: at('2026-08-05') })
    expect(await stamped(store, egress('10.0.0.9', '2026-07-23T10:00:00'))).toBeNull()
    expect(await stamped(store, egress('10.0.0.9', '2026-08-04T09:12:40'))).toBeNull()
    expect(await stamped(store, egress('10.0.0.9', '2026-08-04T09:12:41'))).toBe('pod media/autobrr')
  })

  test('case 3: a living pod whose start is unknown is never the peer', async () => {
    const { store } = opened()
    await putPod(store, 'shop/ghost', '10.0.0.9', { startedAt: null })
    expect(await stamped(store, egress('10.0.0.9', noon))).toBeNull()
  })

  test('case 4: the living pod before a dead one that started later', async () => {
    const { store } = opened()
    await putPod(store, 'shop/old', '10.0.0.9', { startedAt: at('2026-09-02'), now: at('2026-09-10') })
    await store.markDead({ name: 'old' }, at('2026-09-10'))
    await putPod(store, 'shop/new', '10.0.0.9', { startedAt: at('2026-08-01'), now: at('2026-09-10') })
    expect(await stamped(store, egress('10.0.0.9', '2026-09-03T00:00:00'))).toBe('pod shop/new')
  })

  test('case 5: of the dead, the newest start that is not after the flow', async () => {
    const { store } = opened()
    const starts = { first: '2026-07-01', second: '2026-07-23T09:00:00', third: '2026-07-30' }
    for (const [name, start] of Object.entries(starts)) {
      await putPod(store, `shop/${name}`, '10.0.0.9', { startedAt: at(start), now: at('2026-08-02') })
      await store.markDead({ name }, at('2026-08-02'))
    }
    await putPod(store, 'shop/today', '10.0.0.9', { startedAt: at('2026-08-03'), now: at('2026-08-04') })
    expect(await stamped(store, egress('10.0.0.9', '2026-07-23T10:00:00'))).toBe('pod shop/second')
  })

  test('case 6: a dead pod must have been seen, or died, at the time of the flow or later', async () => {
    const { store } = opened()
    await putPod(store, 'shop/gone', '10.0.0.9', { now: at('2026-07-23T09:59:59') })
    await store.passes.sweepStale(at('2026-07-23T11:00:00'), { staleSeconds: 900 })
    expect(await stamped(store, egress('10.0.0.9', '2026-07-23T10:00:00'))).toBeNull()
    expect(await stamped(store, egress('10.0.0.9', '2026-07-23T09:59:59'))).toBe('pod shop/gone')
  })

  test('a death that was told counts as seen: flows between the last report and the death keep their peer', async () => {
    const { store } = opened()
    await putPod(store, 'shop/gone', '10.0.0.9', { now: at('2026-07-23T09:59:20') })
    await store.markDead({ name: 'gone' }, at('2026-07-23T10:00:00'))
    expect(await stamped(store, egress('10.0.0.9', '2026-07-23T10:00:00'))).toBe('pod shop/gone')
    expect(await stamped(store, egress('10.0.0.9', '2026-07-23T10:00:01'))).toBeNull()
    const gone = await store.podByName('gone')
    expect([gone?.lastSeen, gone?.diedAt]).toEqual([at('2026-07-23T09:59:20'), at('2026-07-23T10:00:00')])
  })

  test('cases 8 and 14: equals are ordered by namespace and name; host-network pods by start first', async () => {
    const { store } = opened()
    for (const path of ['shop/b', 'cache/z', 'shop/a']) await putPod(store, path, '10.0.0.9')
    expect(await stamped(store, egress('10.0.0.9', noon))).toBe('pod cache/z')
    const starts = { a: '2026-07-01', c: '2026-07-02', b: '2026-07-02' }
    for (const [name, start] of Object.entries(starts)) {
      await putPod(store, `kube-system/${name}`, '192.168.0.5', { startedAt: at(start), isHostNetwork: true })
    }
    expect(await stamped(store, egress('192.168.0.5', noon))).toBe('node kube-system/b')
  })

  test('cases 9 and 11: where the guard rejects the pod, the Service; its workload is null and its uid its own', async () => {
    const { store } = opened()
    await putPod(store, 'shop/late', '10.96.0.9', { startedAt: at('2026-08-04'), now: at('2026-08-04') })
    await putService(store, 'shop/db', '10.96.0.9', { uid: 's1', selector: { app: 'db' } })
    await ingest(store, [egress('10.96.0.9', noon)])
    expect((await allFlows(store))[0]?.peer).toEqual({
      kind: 'service',
      namespace: 'shop',
      name: 'db',
      uid: 's1',
      workload: null,
      labels: { app: 'db' },
      resolvedAt: noon,
    })
  })

  test('case 10: a dead pod that the guard lets through comes before the Service', async () => {
    const { store } = opened()
    await putPod(store, 'shop/gone', '10.96.0.9')
    await store.markDead({ name: 'gone' }, noon)
    await putService(store, 'shop/db', '10.96.0.9')
    expect(await stamped(store, egress('10.96.0.9', noon))).toBe('pod shop/gone')
  })

  test('case 12: nobody is null, all of it, and the answer says why', async () => {
    const { store } = opened()
    await putPod(store, 'shop/late', '10.0.0.9', { startedAt: at('2026-08-04'), now: at('2026-08-04') })
    await ingest(store, [egress('10.0.0.8', noon), egress('10.0.0.9', noon - second)])
    const [never, rejected] = await allFlows(store)
    expect([never?.peer, never?.outcome]).toEqual([null, { kind: 'never-held' }])
    expect([rejected?.peer, rejected?.outcome]).toEqual([
      null,
      { kind: 'rejected', reason: 'started-after', nearest: { kind: 'pod', namespace: 'shop', name: 'late' } },
    ])
  })

  test('case 13: a host-network pod stands for its node, by the name of the pod', async () => {
    const { store } = opened()
    const workload = { kind: 'DaemonSet', name: 'proxy' }
    await putPod(store, 'kube-system/proxy-x', '192.168.0.5', { isHostNetwork: true, workload, uid: 'u5' })
    await ingest(store, [egress('192.168.0.5', noon)])
    expect((await allFlows(store))[0]?.peer).toMatchObject({ kind: 'node', name: 'proxy-x', uid: 'u5', workload })
  })

  test('cases 16 to 18: addresses in any spelling; what is no address is stored as it is', async () => {
    const { store } = opened()
    await putPod(store, 'shop/dual', '10.0.0.9', { addresses: ['10.0.0.9', 'FD00::9'] })
    await putPod(store, 'shop/one', '10.0.0.10')
    await ingest(store, [egress('FD00:0:0:0:0:0:0:9', noon)])
    await ingest(store, [egress('::ffff:10.0.0.10', noon), egress('::1', noon), egress('fe80::1%eth0', noon)])
    const found = Object.fromEntries((await allFlows(store)).map((flow) => [flow.peerAddress, peerOf(flow)]))
    expect(found).toEqual({
      'fd00::9': 'pod shop/dual',
      '10.0.0.10': 'pod shop/one',
      '::1': null,
      'fe80::1%eth0': null,
    })
  })

  test('case 19: an empty uid is none', async () => {
    const { store } = opened()
    await putPod(store, 'shop/db-0', '10.0.0.9', { uid: '' })
    await ingest(store, [egress('10.0.0.9', noon)])
    expect((await allFlows(store))[0]?.peer?.uid).toBeNull()
  })

  test('case 20: a pod that comes again under its name leaves the stamp, uid and labels, as they were', async () => {
    const { store } = opened()
    await putPod(store, 'shop/db-0', '10.0.0.9', { uid: 'old', labels: { app: 'db', 'pod-template-hash': 'x' } })
    await ingest(store, [egress('10.0.0.9', noon)])
    await putPod(store, 'shop/db-0', '10.0.0.9', {
      uid: 'new',
      labels: { app: 'other' },
      startedAt: noon + second,
      now: noon + 2 * second,
    })
    await store.passes.lateResolve(noon + 10 * second, { windowSeconds: 600 })
    expect((await allFlows(store))[0]?.peer).toMatchObject({ uid: 'old', labels: { app: 'db' } })
    expect(await stamped(store, egress('10.0.0.9', noon + 3 * second))).toBe('pod shop/db-0')
    expect((await allFlows(store))[0]?.peer).toMatchObject({ uid: 'new', labels: { app: 'other' } })
  })

  test('case 21: one name in two namespaces is two pods, and both are peers', async () => {
    const { store } = opened()
    await putPod(store, 'shop/web-0', '10.0.0.8')
    await putPod(store, 'cache/web-0', '10.0.0.9')
    expect(await stamped(store, egress('10.0.0.8', noon))).toBe('pod shop/web-0')
    expect(await stamped(store, egress('10.0.0.9', noon))).toBe('pod cache/web-0')
  })

  test('case 22: a recycled address with a new owner is a new flow', async () => {
    const { store } = opened()
    await putPod(store, 'shop/a', '10.0.0.9', { now: at('2026-07-23T09:00:00') })
    await ingest(store, [egress('10.0.0.9', '2026-07-23T08:00:00')])
    await store.markDead({ name: 'a' }, at('2026-07-23T09:00:00'))
    await putPod(store, 'shop/b', '10.0.0.9', { startedAt: at('2026-07-23T10:00:00') })
    const answer = await ingest(store, [egress('10.0.0.9', '2026-07-23T11:00:00')])
    expect(answer.stored).toBe(1)
    expect((await allFlows(store)).map(peerOf)).toEqual(['pod shop/b', 'pod shop/a'])
  })

  test('a node port is the Service that has it, for who connects to it', async () => {
    const { store } = opened()
    await putPod(store, 'kube-system/proxy-x', '192.168.0.5', { isHostNetwork: true })
    await putService(store, 'shop/web', '10.96.0.9', { nodePorts: [{ protocol: 'TCP', port: 30_080 }] })
    expect(await stamped(store, egress('192.168.0.5', noon, { peerPort: 30_080 }))).toBe('service shop/web')
    expect(await stamped(store, egress('192.168.0.5', noon - second, { peerPort: 30_080, protocol: 'UDP' }))).toBe(
      'node kube-system/proxy-x',
    )
    const incoming = egress('192.168.0.5', noon - 2 * second, { direction: 'INGRESS', ownPort: 80, peerPort: 30_080 })
    expect(await stamped(store, incoming)).toBe('node kube-system/proxy-x')
  })

  test('external and load-balancer addresses name their Service, until it is deleted', async () => {
    const { store } = opened()
    const addresses = [
      { address: '10.96.0.9', kind: 'cluster' },
      { address: '203.0.113.7', kind: 'load-balancer' },
      { address: '203.0.113.8', kind: 'external' },
    ] as const
    await putService(store, 'shop/web', '', { addresses })
    expect(await stamped(store, egress('203.0.113.7', noon))).toBe('service shop/web')
    expect(await stamped(store, egress('203.0.113.8', noon))).toBe('service shop/web')
    expect(await store.deleteService({ namespace: 'shop', name: 'web' }, noon + second)).toBe(1)
    expect(await stamped(store, egress('203.0.113.7', noon + 2 * second))).toBeNull()
    expect(await store.holderAt('203.0.113.7', noon + second)).toMatchObject({ kind: 'resolved', peerKind: 'service' })
    expect(await store.holderAt('203.0.113.7', noon + 2 * second)).toMatchObject({
      kind: 'rejected',
      reason: 'ended-before',
      nearest: { name: 'web', addressKind: 'load-balancer' },
    })
    expect((await store.services({}, { limit: 10 })).rows).toEqual([])
    expect((await store.services({ withDeleted: true }, { limit: 10 })).rows[0]?.addresses).toHaveLength(3)
  })

  test('a ClusterIP that another Service reports is its own from then on', async () => {
    const { store } = opened()
    await store.putService(
      { namespace: 'shop', name: 'old', addresses: [{ address: '10.96.0.9', kind: 'cluster' }], isComplete: true },
      noon - day,
    )
    await putService(store, 'shop/new', '10.96.0.9')
    expect(await stamped(store, egress('10.96.0.9', noon + second))).toBe('service shop/new')
    expect((await store.serviceByAddress('10.96.0.9'))?.name).toBe('new')
    const history = await store.ownershipHistory('10.96.0.9', { limit: 10 })
    expect(history.rows.map(({ holder, heldUntil }) => [holder.name, heldUntil])).toEqual([
      ['new', null],
      ['old', noon],
    ])
  })

  test('rows to which a sender gave one id and one time are all read, page by page, and looked up again', async () => {
    const { store } = opened()
    const id = '00000000-0000-0000-0000-000000000000'
    const addresses = [1, 2, 3, 4, 5].map((index) => `10.0.1.${index}`)
    await ingest(
      store,
      addresses.map((address) => egress(address, noon, { id })),
    )
    const read: StoredFlow[] = []
    for (let page = await store.flows(everyFlow, { limit: 2 }); ; ) {
      read.push(...page.rows)
      if (page.next === undefined) break
      page = await store.flows(everyFlow, { limit: 2, cursor: page.next })
    }
    expect(read.map(({ peerAddress }) => peerAddress).sort()).toEqual(addresses)
    await putPod(store, 'shop/db', '', { addresses })
    expect(await store.passes.lateResolve(noon, { windowSeconds: 600, chunkRows: 2 })).toMatchObject({
      done: { examined: 5, resolved: 5 },
    })
  })

  test('the row keeps who observed it, as it was then', async () => {
    const { store } = opened()
    const workload = { kind: 'Deployment', name: 'web' }
    await putPod(store, 'shop/web', '10.0.0.1', { uid: 'w1', workload, labels: { app: 'web' } })
    await ingest(store, [egress('8.8.8.8', noon)])
    expect((await allFlows(store))[0]?.pod).toMatchObject({ uid: 'w1', workload, labels: { app: 'web' } })
  })
})

/** Late and partial reports: what is said of an earlier holder of a name, and of less than all, changes no more than it tells. */
import { expect, test } from 'vitest'
import { describeStores } from './describe-stores'
import { allFlows, at, day, egress, ingest, noon, putPod, second, stamped } from './story'

describeStores('reports of earlier holders of a name', (opened) => {
  test('a pod whose name another one has since is not revived by a report that comes late', async () => {
    const { store } = opened()
    const first = { uid: 'one', startedAt: noon - day }
    await putPod(store, 'shop/db-0', '10.0.1.1', { ...first, now: noon })
    await putPod(store, 'shop/db-0', '10.0.1.2', { uid: 'two', startedAt: noon + second, now: noon + 2 * second })
    await putPod(store, 'shop/db-0', '10.0.1.1', { ...first, now: noon + 30 * second })
    const { rows } = await store.pods({ name: 'db-0' }, { limit: 10 })
    expect(rows.map(({ uid, isDead, deathReason, diedAt }) => [uid, isDead, deathReason, diedAt])).toEqual([
      ['two', false, null, null],
      ['one', true, 'replaced', noon + second],
    ])
    expect(await store.holderAt('10.0.1.1', noon + 20 * second)).toMatchObject({
      kind: 'rejected',
      reason: 'ended-before',
      nearest: { uid: 'one' },
    })
    expect((await store.podAt('10.0.1.1', noon + second))?.uid).toBe('one')
  })

  test('an earlier pod that is first heard of when its name has another is kept as one that is gone', async () => {
    const { store } = opened()
    await putPod(store, 'shop/db-0', '10.0.1.2', { uid: 'two', startedAt: noon })
    await putPod(store, 'shop/db-0', '10.0.1.1', { uid: 'one', startedAt: noon - day, now: noon + second })
    expect((await store.podByName('db-0', 'shop'))?.uid).toBe('two')
    expect(await stamped(store, egress('10.0.1.1', noon - second))).toBe('pod shop/db-0')
    expect(await stamped(store, egress('10.0.1.1', noon + 2 * second))).toBeNull()
  })

  test('a Service of before the one that has its name now does not take the name back', async () => {
    const { store } = opened()
    const report = (uid: string, address: string, createdAt: number, now: number) =>
      store.putService(
        {
          namespace: 'shop',
          name: 'web',
          uid,
          createdAt,
          addresses: [{ address, kind: 'cluster' }],
          isComplete: true,
        },
        now,
      )
    await report('one', '10.96.0.1', noon - day, noon - day)
    await report('two', '10.96.0.2', noon, noon + second)
    await report('one', '10.96.0.1', noon - day, noon + 2 * second)
    expect((await store.serviceByName('shop', 'web'))?.uid).toBe('two')
    expect((await store.services({ name: 'web' }, { limit: 10 })).rows.map(({ uid }) => uid)).toEqual(['two'])
    expect(await stamped(store, egress('10.96.0.2', noon + 3 * second))).toBe('service shop/web')
    expect(await stamped(store, egress('10.96.0.1', noon + 3 * second))).toBeNull()
    expect(await stamped(store, egress('10.96.0.1', noon - second))).toBe('service shop/web')
  })

  test('a post of one address alone, without its manifest, ends none of the node ports', async () => {
    const { store } = opened()
    await putPod(store, 'kube-system/proxy', '192.168.0.5', { isHostNetwork: true })
    const post = { namespace: 'shop', name: 'web', addresses: [{ address: '10.96.0.9', kind: 'cluster' as const }] }
    await store.putService({ ...post, isComplete: true, nodePorts: [{ protocol: 'TCP', port: 30_080 }] }, noon)
    await store.putService({ ...post, isComplete: false }, noon + second)
    expect(await stamped(store, egress('192.168.0.5', noon + 2 * second, { peerPort: 30_080 }))).toBe(
      'service shop/web',
    )
  })
})

describeStores('retention of what may live', (opened) => {
  const keep = { flowDays: 14, podDays: 30 }
  const old = noon - 15 * day

  test('flows of a pod that was only not heard of stay with its record: a broker that was away sweeps the living too', async () => {
    const { store } = opened()
    await putPod(store, 'shop/web', '10.0.0.1', { startedAt: old - day, now: noon - day })
    await ingest(store, [egress('8.8.8.8', old)])
    expect(await store.passes.sweepStale(noon, { staleSeconds: 900 })).toMatchObject({ done: { died: 1 } })
    expect(await store.passes.retain(noon, keep)).toMatchObject({
      done: { droppedDays: ['2026-07-08'], carriedFlows: 1 },
    })
    expect(await allFlows(store)).toHaveLength(1)
    // When the record has gone as well, nothing speaks for the flow any more.
    expect(await store.passes.retain(at('2026-08-22T12:00:01'), keep)).toMatchObject({ done: { deletedPods: 1 } })
    expect(await store.passes.retain(at('2026-08-22T12:00:01'), keep)).toMatchObject({ done: { carriedFlows: 0 } })
  })

  test('flows of a pod that was told dead go', async () => {
    const { store } = opened()
    await putPod(store, 'shop/web', '10.0.0.1', { startedAt: old - day, now: noon - day })
    await ingest(store, [egress('8.8.8.8', old)])
    await store.markDead({ name: 'web' }, noon - day)
    expect(await store.passes.retain(noon, keep)).toMatchObject({ done: { carriedFlows: 0 } })
    expect(await allFlows(store)).toEqual([])
  })
})

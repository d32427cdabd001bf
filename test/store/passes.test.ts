/** Deduplication, the late pass, the sweep, retention and the rollup: each case with its values, on both databases. */
import { expect, test } from 'vitest'
import { describeStores } from './describe-stores'
import { allFlows, at, day, egress, ingest, noon, peerOf, putPod, second } from './story'

const window = { windowSeconds: 600 }

describeStores('deduplication', (opened) => {
  test('case 26: of 100 rows, 90 of them repetitions, 10 are new', async () => {
    const { store } = opened()
    const rows = Array.from({ length: 100 }, (_, index) => egress(`10.0.1.${index % 10}`, noon + index))
    expect(await ingest(store, rows)).toEqual({ stored: 10, merged: 90, bad: [], isReplay: false })
    expect(await ingest(store, rows)).toEqual({ stored: 0, merged: 100, bad: [], isReplay: false })
    expect((await allFlows(store)).map(({ hits }) => hits)).toEqual(Array(10).fill(20))
  })

  test('case 27: rows that differ in id and time alone are one, with the first time and the last', async () => {
    const { store } = opened()
    const ids = ['00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000002']
    const rows = [
      egress('10.0.1.1', noon + second, { id: ids[1] ?? '' }),
      egress('10.0.1.1', noon, { id: ids[0] ?? '', hits: 5 }),
    ]
    await ingest(store, rows)
    const [row, ...others] = await allFlows(store)
    expect(others).toEqual([])
    expect(row).toMatchObject({ id: ids[0], hits: 6, firstSeen: noon, lastSeen: noon + second })
  })

  test('case 28: the port of the client does not tell flows apart, the protocol and the day do', async () => {
    const { store } = opened()
    const udp = { protocol: 'UDP', peerPort: 53 }
    await ingest(store, [
      egress('10.0.1.1', noon, { ...udp, ownPort: 40_001 }),
      egress('10.0.1.1', noon, { ...udp, ownPort: 40_002 }),
      egress('10.0.1.1', noon, { protocol: 'TCP', peerPort: 53 }),
      egress('10.0.1.1', noon + day, { ...udp, ownPort: 40_003 }),
    ])
    const rows = await allFlows(store)
    expect(rows.map(({ protocol, ownPort, hits, day }) => [protocol, ownPort, hits, day]).sort()).toEqual([
      ['TCP', 0, 1, '2026-07-23'],
      ['UDP', 40_001, 2, '2026-07-23'],
      ['UDP', 40_003, 1, '2026-07-24'],
    ])
  })

  test('bad rows are named by place and field, the others are stored, and a replay answers the same', async () => {
    const { store } = opened()
    const good = egress('10.0.1.1', noon)
    const rows = [
      good,
      { ...good, pod: { ...good.pod, name: 'a\u0000b' } },
      egress('10.0.1.2', noon + day),
      egress('10.0.1.3', noon),
    ]
    const batch = { limits: {}, idempotencyKey: 'once' }
    const answer = await ingest(store, rows, batch)
    expect(answer).toMatchObject({ stored: 2, merged: 0, isReplay: false })
    expect(answer.bad.map(({ index, field }) => [index, field])).toEqual([
      [1, 'pod_name'],
      [2, 'time_stamp'],
    ])
    expect(await ingest(store, rows, batch)).toEqual({ ...answer, isReplay: true })
    expect(await allFlows(store)).toHaveLength(2)
  })

  test('a key stands for one batch, however late or with which ids it is repeated: another one is refused, and not lost unseen', async () => {
    const { store } = opened()
    const batch = { idempotencyKey: 'once', limits: { futureSeconds: 0 } }
    const rows = [egress('10.0.1.1', noon), egress('10.0.1.2', noon + second)]
    const answer = await ingest(store, rows, batch)
    expect(answer).toMatchObject({ stored: 1, bad: [{ index: 1 }] })
    const again = rows.map((row) => ({ ...row, id: '00000000-0000-4000-8000-000000000001' }))
    expect(await ingest(store, again, { ...batch, now: noon + day })).toEqual({ ...answer, isReplay: true })
    await expect(ingest(store, [egress('10.0.1.9', noon)], batch)).rejects.toThrow(
      /Idempotency-Key once was used for another batch, and nothing was stored/,
    )
    expect(await allFlows(store)).toHaveLength(1)
  })

  test('a text that is too long in the capitals that it is stored in is refused: it would not fit into the key of an edge', async () => {
    const { store } = opened()
    const [short, long] = ['\u0390'.repeat(100), '\u0390'.repeat(500)]
    const rows = [egress('10.0.1.1', noon, { decision: long }), egress('10.0.1.1', noon, { protocol: short })]
    expect(await ingest(store, rows)).toMatchObject({ stored: 1, bad: [{ index: 0, field: 'decision' }] })
    expect((await allFlows(store))[0]?.protocol).toBe(short.toUpperCase())
  })

  test('a value that only the database finds wrong spoils its own row alone', async () => {
    const { engine, store } = opened()
    await engine.query({ text: `alter table flows add constraint no_port_666 check (peer_port <> 666)` })
    const rows = [1, 2, 3, 4, 5].map((index) => egress(`10.0.1.${index}`, noon, index === 4 ? { peerPort: 666 } : {}))
    const answer = await ingest(store, rows, { idempotencyKey: 'halves' })
    expect(answer).toMatchObject({ stored: 4, bad: [{ index: 3 }] })
    expect(await ingest(store, rows, { idempotencyKey: 'halves' })).toEqual({ ...answer, isReplay: true })
    await engine.query({ text: 'alter table flows drop constraint no_port_666' })
  })
})

describeStores('the late pass', (opened) => {
  test('cases 34 and 35: a pod reported later is the peer when it started before, and stays out when it did not', async () => {
    const { store } = opened()
    await ingest(store, [egress('10.0.1.1', noon), egress('10.0.1.2', noon)])
    await putPod(store, 'shop/early', '10.0.1.1', { startedAt: noon, now: noon + 30 * second })
    await putPod(store, 'shop/late', '10.0.1.2', { startedAt: noon + 1, now: noon + 30 * second })
    const pass = noon + 60 * second
    expect(await store.passes.lateResolve(pass, window)).toEqual({
      kind: 'done',
      done: { examined: 2, resolved: 1, merged: 0 },
    })
    const rows = await allFlows(store)
    const [early, late] = ['10.0.1.1', '10.0.1.2'].map((ip) => rows.find((row) => row.peerAddress === ip))
    expect([peerOf(early), early?.peer?.resolvedAt, early?.outcome]).toEqual([
      'pod shop/early',
      pass,
      { kind: 'resolved' },
    ])
    expect([peerOf(late), late?.outcome]).toMatchObject([null, { kind: 'rejected', reason: 'started-after' }])
  })

  test('case 36: a row of exactly the age of the window is tried again, one a second older never', async () => {
    const { store } = opened()
    await ingest(store, [egress('10.0.1.1', noon - 600 * second), egress('10.0.1.2', noon - 601 * second)])
    await putPod(store, 'shop/a', '10.0.1.1')
    await putPod(store, 'shop/b', '10.0.1.2')
    await store.passes.lateResolve(noon, window)
    expect((await allFlows(store)).map(peerOf)).toEqual(['pod shop/a', null])
  })

  test('case 37: rows that never resolve, however many, keep none waiting', async () => {
    const { store } = opened()
    await ingest(store, [egress('10.0.1.1', noon - 100 * second)])
    for (let batch = 0; batch < 21; batch++) {
      const rows = Array.from({ length: batch === 20 ? 10 : 1000 }, (_, index) =>
        egress(`198.51.${batch}.${index % 250}`, noon - index, { peerPort: 1000 + Math.floor(index / 250) }),
      )
      await ingest(store, rows)
    }
    await putPod(store, 'shop/a', '10.0.1.1')
    expect(await store.passes.lateResolve(noon, window)).toMatchObject({ done: { examined: 20_011, resolved: 1 } })
    expect(peerOf((await allFlows(store)).at(-1))).toBe('pod shop/a')
  })

  test('case 38: a stamped row is left alone, whatever became of the pods', async () => {
    const { store } = opened()
    await putPod(store, 'shop/a', '10.0.1.1')
    await ingest(store, [egress('10.0.1.1', noon)])
    const before = await allFlows(store)
    await store.markDead({ name: 'a' }, noon - day)
    await putPod(store, 'shop/b', '10.0.1.1', { startedAt: noon - second })
    expect(await store.passes.lateResolve(noon, window)).toMatchObject({ done: { examined: 0 } })
    expect(await allFlows(store)).toEqual(before)
  })

  test('case 39: a window of 0 is no pass', async () => {
    const { store } = opened()
    await ingest(store, [egress('10.0.1.1', noon)])
    await putPod(store, 'shop/a', '10.0.1.1')
    expect(await store.passes.lateResolve(noon, { windowSeconds: 0 })).toMatchObject({ done: { examined: 0 } })
  })

  test('a row that turns out to be a flow already stamped is added to it', async () => {
    const { store } = opened()
    await ingest(store, [egress('10.0.1.1', noon, { hits: 3 })])
    await putPod(store, 'shop/a', '10.0.1.1')
    await ingest(store, [egress('10.0.1.1', noon + second, { hits: 4 })])
    expect(await store.passes.lateResolve(noon + 2 * second, window)).toMatchObject({
      done: { resolved: 1, merged: 1 },
    })
    const rows = await allFlows(store)
    expect(rows.map(({ hits, firstSeen, lastSeen }) => [hits, firstSeen, lastSeen])).toEqual([[7, noon, noon + second]])
  })
})

describeStores('sweep and deaths', (opened) => {
  test('case 40: 901 s of silence are death, 899 are not; the next report revives; last seen is left alone', async () => {
    const { store } = opened()
    await putPod(store, 'shop/silent', '10.0.1.1', { now: noon - 901 * second })
    await putPod(store, 'shop/quiet', '10.0.1.2', { now: noon - 899 * second })
    expect(await store.passes.sweepStale(noon, { staleSeconds: 900 })).toMatchObject({ done: { died: 1 } })
    expect(await store.podByName('silent')).toMatchObject({
      isDead: true,
      deathReason: 'stale',
      lastSeen: noon - 901 * second,
      diedAt: noon,
    })
    expect((await store.podByName('quiet'))?.isDead).toBe(false)
    expect(await putPod(store, 'shop/silent', '10.0.1.1')).toMatchObject({ isDead: false, diedAt: null })
    expect((await store.podAt('10.0.1.1', noon))?.name).toBe('silent')
  })

  test('case 30: mark_dead with an address that is not the pod’s changes nothing, nor does a blank name', async () => {
    const { store } = opened()
    await putPod(store, 'shop/a', '10.0.1.1')
    expect(await store.markDead({ name: 'a', address: '10.0.1.9' }, noon)).toBe(0)
    expect(await store.markDead({ name: ' ' }, noon)).toBe(0)
    expect((await store.podByName('a'))?.isDead).toBe(false)
    expect(await store.markDead({ name: 'a', address: '::ffff:10.0.1.1' }, noon)).toBe(1)
  })

  test('case 31: a Service without an address is not stored', async () => {
    const { store } = opened()
    const post = { namespace: 'shop', name: 'headless', isComplete: true }
    for (const address of ['None', '', ' ']) {
      expect(await store.putService({ ...post, addresses: [{ address, kind: 'cluster' }] }, noon)).toBeUndefined()
    }
    expect((await store.services({}, { limit: 10 })).rows).toEqual([])
  })

  test('a pod that comes again under its name ends the one before it, and both stay known', async () => {
    const { store } = opened()
    await putPod(store, 'shop/db-0', '10.0.1.1', { uid: 'one', now: noon - 30 * second })
    await putPod(store, 'shop/db-0', '10.0.1.2', { uid: 'two', startedAt: noon })
    const rows = (await store.pods({ name: 'db-0' }, { limit: 10 })).rows
    expect(rows.map(({ uid, isDead, deathReason, diedAt }) => [uid, isDead, deathReason, diedAt])).toEqual([
      ['two', false, null, null],
      ['one', true, 'replaced', noon],
    ])
    expect((await store.podAt('10.0.1.1', noon))?.uid).toBe('one')
  })

  test('an older sender that knows no uid: a start tells the incarnations apart, and is never erased', async () => {
    const { store } = opened()
    await putPod(store, 'shop/db-0', '10.0.1.1', { startedAt: noon - day })
    await putPod(store, 'shop/db-0', '10.0.1.1', { startedAt: null })
    expect((await store.podByName('db-0'))?.startedAt).toBe(noon - day)
    await putPod(store, 'shop/db-0', '10.0.1.2', { startedAt: noon })
    expect((await store.pods({ name: 'db-0' }, { limit: 10 })).rows.map(({ startedAt }) => startedAt)).toEqual([
      noon,
      noon - day,
    ])
  })
})

describeStores('retention', (opened) => {
  const old = noon - 60 * day
  const keep = { flowDays: 14, podDays: 30 }

  test('case 41: the old row of a living pod stays, until a newer one says the same of the same workload', async () => {
    const { store } = opened()
    const workload = { kind: 'StatefulSet', name: 'db' }
    await putPod(store, 'shop/web', '10.0.0.1', { startedAt: old - day })
    await putPod(store, 'shop/db-0', '10.0.1.1', { startedAt: old - day, workload })
    await putPod(store, 'kube-system/proxy', '192.168.0.5', { startedAt: old - day, isHostNetwork: true })
    await ingest(store, [egress('10.0.1.1', old), egress('192.168.0.5', old), egress('8.8.8.8', old, { hits: 2 })])
    expect(await store.passes.retain(noon, keep)).toMatchObject({
      done: { droppedDays: ['2026-05-24'], carriedFlows: 3 },
    })
    expect((await allFlows(store)).map(({ firstSeen, day }) => [firstSeen, day])).toEqual(
      Array(3).fill([old, '2026-07-23']),
    )

    // Another pod of the workload at another address, seen lately: that supersedes; a node and nobody never are.
    await putPod(store, 'shop/db-1', '10.0.1.2', { startedAt: old - day, workload })
    await ingest(store, [
      egress('10.0.1.2', noon + day),
      egress('192.168.0.5', noon + day),
      egress('8.8.8.8', noon + day),
    ])
    const later = noon + 15 * day
    await putPod(store, 'shop/web', '10.0.0.1', { startedAt: old - day, now: later })
    expect(await store.passes.retain(later, keep)).toMatchObject({
      done: { droppedDays: ['2026-07-23'], carriedFlows: 2 },
    })
    const rows = await allFlows(store)
    expect(rows.map((row) => [row.peerAddress, row.firstSeen, row.hits]).sort()).toEqual([
      ['10.0.1.2', noon + day, 1],
      ['192.168.0.5', old, 2],
      ['8.8.8.8', old, 3],
    ])
  })

  test('the old row of a pod that is dead, gone or of an earlier incarnation goes', async () => {
    const { store } = opened()
    await putPod(store, 'shop/web', '10.0.0.1', { startedAt: noon - day })
    await ingest(store, [
      egress('8.8.8.8', old),
      egress('8.8.8.8', old, { pod: { namespace: 'x', name: 'gone', address: null } }),
    ])
    expect(await store.passes.retain(noon, keep)).toMatchObject({ done: { carriedFlows: 0 } })
    expect(await allFlows(store)).toEqual([])
  })

  test('case 42: a pod dead for 31 days is deleted, with 30 to keep; one dead for 29 stays, as does any with 0', async () => {
    const { store } = opened()
    for (const days of [31, 29]) {
      await putPod(store, `shop/dead-${days}`, `10.0.2.${days}`, { startedAt: noon - 40 * day, now: noon - days * day })
    }
    await store.passes.sweepStale(noon, { staleSeconds: 900 })
    expect(await store.passes.retain(noon, { ...keep, podDays: 0 })).toMatchObject({ done: { deletedPods: 0 } })
    expect(await store.passes.retain(noon, keep)).toMatchObject({ done: { deletedPods: 1 } })
    expect((await store.pods({}, { limit: 10 })).rows.map(({ name }) => name)).toEqual(['dead-29'])
    expect((await store.ownershipHistory('10.0.2.31', { limit: 10 })).rows).toEqual([])
  })

  test('a stamp outlives its pod, labels and all', async () => {
    const { store } = opened()
    await putPod(store, 'shop/db-0', '10.0.1.1', { labels: { app: 'db' }, now: noon })
    await ingest(store, [egress('10.0.1.1', noon)])
    await store.markDead({ name: 'db-0' }, noon)
    expect(await store.passes.retain(noon + 31 * day, { flowDays: 0, podDays: 30 })).toMatchObject({
      done: { deletedPods: 1 },
    })
    expect((await allFlows(store))[0]?.peer).toMatchObject({ name: 'db-0', labels: { app: 'db' } })
  })
})

describeStores('who held an address', (opened) => {
  test('cases 23 and 25: podAt is guarded by its time; without one it is who has the address, or had it last', async () => {
    const { store } = opened()
    await putPod(store, 'shop/a', '10.0.1.1', { startedAt: at('2026-07-23T10:00:00') })
    expect((await store.podAt('10.0.1.1', at('2026-07-23T12:00:00+02:00')))?.name).toBe('a')
    expect(await store.podAt('10.0.1.1', at('2026-07-23T09:59:59'))).toBeUndefined()
    expect((await store.podAt('10.0.1.1'))?.name).toBe('a')
  })

  test('history is by time, newest first, page by page', async () => {
    const { store } = opened()
    for (let hour = 0; hour < 5; hour++) {
      const startedAt = noon - day + hour * 3_600 * second
      const workload = { kind: 'CronJob', name: 'backup' }
      await putPod(store, `shop/backup-${hour}`, '10.0.1.1', { startedAt, workload, now: startedAt + second })
      await store.markDead({ name: `backup-${hour}` }, startedAt + 60 * second)
    }
    const all = await store.ownershipHistory('10.0.1.1', { limit: 10 })
    expect(all.rows.map(({ holder }) => holder.name)).toEqual([4, 3, 2, 1, 0].map((hour) => `backup-${hour}`))
    expect(all.rows[4]).toMatchObject({
      heldFrom: noon - day,
      heldUntil: noon - day + 60 * second,
      deathReason: 'marked',
    })
    const first = await store.ownershipHistory('10.0.1.1', { limit: 2 })
    const next = await store.ownershipHistory('10.0.1.1', { limit: 3, cursor: first.next ?? '' })
    expect([...first.rows, ...next.rows]).toEqual(all.rows)
    expect(next.next).toBeUndefined()
  })
})

/** Many at once: batches that overlap, two brokers on one database, a PostgreSQL that goes away and comes back. */
import { setTimeout as wait } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Failure } from '#base/failure'
import { openStore } from '#store/open-store'
import type { StoreEvent } from '#store/store'
import { describePostgres, describeStores } from './describe-stores'
import { allFlows, egress, ingest, noon, putPod, second } from './story'

describeStores('batches in parallel', (opened) => {
  test('rows that all of them share are stored once, and their sum is exact', async () => {
    const { store } = opened()
    await putPod(store, 'shop/db', '10.0.1.1')
    // Each batch has the same rows in an order of its own.
    const batches = Array.from({ length: 24 }, (_, batch) =>
      Array.from({ length: 60 }, (_, index) =>
        egress(`10.0.1.${(index * 7 + batch * 11) % 60}`, noon + batch * second, { hits: 2 }),
      ),
    )
    const answers = await Promise.all(batches.map((rows) => ingest(store, rows)))
    expect(answers.reduce((sum, { stored }) => sum + stored, 0)).toBe(60)
    expect(answers.reduce((sum, { merged }) => sum + merged, 0)).toBe(23 * 60)
    const rows = await allFlows(store)
    expect(new Set(rows.map(({ hits }) => hits))).toEqual(new Set([48]))
    expect(new Set(rows.map(({ firstSeen, lastSeen }) => `${firstSeen} ${lastSeen}`))).toEqual(
      new Set([`${noon} ${noon + 23 * second}`]),
    )
    await store.passes.foldEdges(noon)
    const edges = await store.edges({ since: noon - second, until: noon + 60 * second }, { limit: 100 })
    expect(edges.rows.reduce((sum, { hits }) => sum + hits, 0)).toBe(60 * 48)
  })

  test('one key sent many times at once stores one of them, and all get its answer', async () => {
    const { store } = opened()
    const rows = Array.from({ length: 20 }, (_, index) => egress(`10.0.1.${index}`, noon))
    const answers = await Promise.all(Array.from({ length: 8 }, () => ingest(store, rows, { idempotencyKey: 'same' })))
    expect(answers.filter(({ isReplay }) => !isReplay)).toHaveLength(1)
    expect(new Set(answers.map(({ stored }) => stored))).toEqual(new Set([20]))
    expect((await allFlows(store)).every(({ hits }) => hits === 1)).toBe(true)
  })

  test('reports of one pod at once make one incarnation', async () => {
    const { store } = opened()
    await Promise.all(
      Array.from({ length: 10 }, (_, index) =>
        putPod(store, 'shop/web', '10.0.0.1', { uid: 'w', nodeName: `n${index % 3}` }),
      ),
    )
    expect((await store.pods({}, { limit: 10 })).rows).toHaveLength(1)
  })

  test('what is stored is heard of', async () => {
    const { store } = opened()
    const events: StoreEvent[] = []
    const stop = await store.listen((event) => void events.push(event))
    await ingest(store, [egress('10.0.1.1', noon)])
    await until(() => events.length > 0)
    expect(events[0]?.flows.map(({ peerAddress }) => peerAddress)).toEqual(['10.0.1.1'])
    await stop()
  })
})

describePostgres('two brokers on one PostgreSQL', (opened) => {
  test('they start at once, a pass that one runs the other leaves, and both hear of every flow', async () => {
    const { engine, postgres, store } = opened()
    const other = await openStore({ database: postgres?.url() ?? '', poolSize: 2 })
    const events: StoreEvent[] = []
    const stop = await other.listen((event) => void events.push(event))
    await until(async () => {
      await ingest(store, [egress('10.0.1.1', noon)])
      return events.length > 0
    })
    expect(events[0]?.flows[0]?.peerAddress).toBe('10.0.1.1')
    await stop()

    await engine.session(async (session) => {
      await session.query({ text: 'select pg_advisory_lock(1886351476, 2)' })
      expect(await other.passes.lateResolve(noon, { windowSeconds: 600 })).toEqual({ kind: 'held-elsewhere' })
      await session.query({ text: 'select pg_advisory_unlock(1886351476, 2)' })
    })
    expect(await other.passes.lateResolve(noon, { windowSeconds: 600 })).toMatchObject({ kind: 'done' })
    await other.close()
  })
})

describePostgres('large batches that take long', (opened) => {
  test('reads go on beside them, and who waits too long for a turn hears why', async () => {
    const { engine, postgres } = opened()
    const busy = await openStore({ database: postgres?.url() ?? '', batchConnections: 1 })
    const rows = Array.from({ length: 100 }, (_, index) => egress(`10.0.1.${index}`, noon))
    await engine.transaction(async (session) => {
      await session.query({ text: 'lock table flows in exclusive mode' })
      const first = ingest(busy, rows)
      const second = ingest(busy, rows)
      expect(await allFlows(busy)).toEqual([])
      expect(busy.poolGauges().waiting).toBe(1)
      await expect(second).rejects.toMatchObject({
        code: 'database-unavailable',
        message: expect.stringMatching(/too slow for what is asked of it: no connection was free in time$/),
      })
      await session.query({ text: 'commit' })
      expect(await first).toMatchObject({ stored: 100 })
    })
    await busy.close()
  })
})

describePostgres('a PostgreSQL that goes away', (opened) => {
  test('is a failure of its own kind under load, and is used again when it is back, without a new start', async () => {
    const { postgres, store } = opened()
    if (postgres === undefined) return
    const codes = new Set<string>()
    let stored = 0
    let isOver = false
    const load = Array.from({ length: 4 }, async (_, worker) => {
      for (let batch = 0; !isOver; batch++) {
        try {
          const answer = await ingest(store, [egress(`10.${worker}.${batch >> 8}.${batch & 255}`, noon)])
          stored += answer.stored
        } catch (error) {
          codes.add(error instanceof Failure ? error.code : String(error))
          await wait(20)
        }
      }
    })
    await wait(300)
    postgres.stop('immediate')
    // Answers that were on their way are answers still.
    await until(async () => !(await store.health()).schemaReady)
    await wait(300)
    postgres.start()
    const before = stored
    await until(() => stored > before + 20)
    isOver = true
    await Promise.all(load)
    expect([...codes]).toEqual(['database-unavailable'])
    expect((await store.health(2000)).reachable).toBe(true)
    expect((await allFlows(store)).length).toBeGreaterThanOrEqual(stored)
  })
})

async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 300; tries++) {
    if (await isSo()) return
    await wait(100)
  }
  throw new Error('it did not become so within half a minute')
}

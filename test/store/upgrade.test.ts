/** Opening a database that an older version left: columns are added, old rows stay as they were. */
import { expect, test, vi } from 'vitest'
import { printInstant } from '#flows/instant'
import { openEmbedded } from '#store/embedded-engine'
import { migrate } from '#store/migrate'
import { storeOf } from '#store/open-store'
import { openPostgres } from '#store/postgres-engine'
import type { EdgeEnd, Store } from '#store/store'
import { describePostgres } from './describe-stores'
import { allFlows, at, egress, ingest, noon, putPod } from './story'

type Opened = Awaited<ReturnType<typeof openEmbedded>>

async function upgrade(engine: Opened): Promise<void> {
  expect(await migrate(engine, '02-flows')).toEqual(['01-holders', '02-flows'])
  await engine.query({
    text: `create table flows_20260723 partition of flows for values from ('2026-07-23') to ('2026-07-24')`,
  })
  await engine.query({
    text: `insert into flows (day, flow_key, flow_id, first_seen, last_seen, hits, pod_namespace, pod_name, direction, protocol, peer_ip,
        peer_port, decision, peer_range)
      values ('2026-07-23', gen_random_uuid(), gen_random_uuid(), '2026-07-23 09:00Z', '2026-07-23 09:00Z', 3, 'shop', 'web', 'EGRESS',
        'TCP', '10.0.0.9', 5432, 'ALLOW', 'private')`,
  })
  expect((await migrate(engine, '08-long-offenders')).slice(0, 2)).toEqual(['03-peer-identity', '04-edges'])
  await engine.query({
    text: `insert into edge_deltas (day, hour, pod_end, pod_namespace, pod_name, peer_end, is_ingress, protocol, port, decision, hits,
        first_seen, last_seen)
      values ('2026-07-23', 9, null, 'shop', 'web', 1, false, 'TCP', 443, 'ALLOW', 4, '2026-07-23 09:10Z', '2026-07-23 09:50Z'),
        ('2026-07-23', 9, 2, null, null, 1, true, 'TCP', 443, 'ALLOW', 1, '2026-07-23 09:20Z', '2026-07-23 09:20Z')`,
  })
  expect(await migrate(engine)).toEqual(['09-edges-by-batch'])
  expect(await migrate(engine)).toEqual([])
  const store = storeOf(engine, [], undefined)
  await store.passes.foldEdges(noon)
  expect(await edgesOf(store)).toEqual([
    ['internet', 'private-network', 1, '2026-07-23T09:20:00Z', '2026-07-23T09:20:00Z'],
    ['shop/web', 'internet', 4, '2026-07-23T09:10:00Z', '2026-07-23T09:50:00Z'],
  ])
  await putPod(store, 'shop/db', '10.0.0.9')
  await ingest(store, [egress('10.0.0.9', noon)])
  await store.passes.lateResolve(noon, { windowSeconds: 600 })
  const [stampedRow, oldRow] = await allFlows(store)
  expect(oldRow).toMatchObject({ hits: 3, peer: null, outcome: null })
  expect(stampedRow?.peer?.name).toBe('db')
}

async function edgesOf(store: Store): Promise<unknown> {
  const { rows } = await store.edges({ since: at('2026-07-23T00:00:00'), until: noon }, { limit: 10 })
  const nameOf = ({ kind, namespace, name }: EdgeEnd): string => (name === null ? kind : `${namespace}/${name}`)
  return rows.map(({ from, to, hits, firstSeen, lastSeen }) => [
    nameOf(from),
    nameOf(to),
    hits,
    printInstant(firstSeen),
    printInstant(lastSeen),
  ])
}

test('no backfill: the old row names nobody, embedded', async () => {
  const engine = await openEmbedded()
  await upgrade(engine)
  await engine.close()
})

describePostgres('an upgrade of PostgreSQL', (opened) => {
  const makeDatabase = async (name: string): Promise<Opened> => {
    const { engine, postgres } = opened()
    await engine.query({ text: `create database ${name}` })
    return openPostgres({
      database: postgres?.url(name) ?? '',
      poolSize: 3,
      batchConnections: 1,
      statementTimeoutMillis: 0,
    })
  }

  test('no backfill: the old row names nobody', async () => {
    const older = await makeDatabase('older')
    await upgrade(older)
    await older.close()
  })

  test('what a broker of before is writing and taking meanwhile is neither lost nor counted twice', async () => {
    const older = await makeDatabase('shared')
    await migrate(older, '08-long-offenders')
    const write = (hour: number): string =>
      `insert into edge_deltas (day, hour, pod_end, peer_end, is_ingress, protocol, port, decision, hits, first_seen, last_seen)
        values ('2026-07-23', ${hour}, 2, 1, true, 'TCP', 443, 'ALLOW', 1, '2026-07-23 0${hour}:20Z', '2026-07-23 0${hour}:20Z')`
    await older.query({ text: write(8) })
    let upgraded: Promise<unknown> = Promise.resolve()
    await older.transaction(async (session) => {
      await session.query({ text: 'delete from edge_deltas' })
      await session.query({ text: write(9) })
      upgraded = migrate(older)
      await vi.waitFor(async () => {
        const { rows } = await older.query({ text: 'select from pg_locks where not granted' })
        expect(rows).toHaveLength(1)
      })
    })
    await upgraded
    const store = storeOf(older, [], undefined)
    await store.passes.foldEdges(noon)
    expect(await edgesOf(store)).toEqual([
      ['internet', 'private-network', 1, '2026-07-23T09:20:00Z', '2026-07-23T09:20:00Z'],
    ])
    await store.close()
  })
})

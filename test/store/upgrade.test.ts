/** Opening a database that an older version left: columns are added, old rows stay as they were. */
import { expect, test } from 'vitest'
import { openEmbedded } from '#store/embedded-engine'
import { migrate } from '#store/migrate'
import { storeOf } from '#store/open-store'
import { openPostgres } from '#store/postgres-engine'
import { describePostgres } from './describe-stores'
import { allFlows, egress, ingest, noon, putPod } from './story'

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
  expect((await migrate(engine)).slice(0, 2)).toEqual(['03-peer-identity', '04-edges'])
  expect(await migrate(engine)).toEqual([])
  const store = storeOf(engine, [], undefined)
  await putPod(store, 'shop/db', '10.0.0.9')
  await ingest(store, [egress('10.0.0.9', noon)])
  await store.passes.lateResolve(noon, { windowSeconds: 600 })
  const [stampedRow, oldRow] = await allFlows(store)
  expect(oldRow).toMatchObject({ hits: 3, peer: null, outcome: null })
  expect(stampedRow?.peer?.name).toBe('db')
}

test('no backfill: the old row names nobody, embedded', async () => {
  const engine = await openEmbedded()
  await upgrade(engine)
  await engine.close()
})

describePostgres('no backfill, PostgreSQL', (opened) => {
  test('the old row names nobody', async () => {
    const { engine, postgres } = opened()
    await engine.query({ text: 'create database older' })
    const older = openPostgres({ database: postgres?.url('older') ?? '', poolSize: 2, statementTimeoutMillis: 0 })
    await upgrade(older)
    await older.close()
  })
})

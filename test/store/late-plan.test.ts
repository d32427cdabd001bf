/** The late pass on PostgreSQL whose statistics are behind: no step compares each row with each. */
import { expect, test } from 'vitest'
import type { Engine, Session } from '#store/engine'
import { lateResolve } from '#store/late-resolve'
import { describePostgres } from './describe-stores'
import { egress, ingest, noon, putPod, second } from './story'

const rowsOfChunk = 2000

describePostgres('the late pass with old statistics', (opened) => {
  test('each row is met once, whether or not it gets its peer, and waits to be audited under its new key', async () => {
    const { engine, store } = opened()
    await putPod(store, 'shop/known', '10.0.9.9')
    await ingest(store, [egress('10.0.9.9', noon)])
    await engine.query({ text: 'analyze flows, audit_queue' })
    await engine.query({
      text: `insert into audit_objects values ('NetworkPolicy', 'shop', 'any', 'uid', 'kubernetes', '{}', 1, now())`,
    })
    const addresses = Array.from({ length: rowsOfChunk }, (_, index) => `10.1.${index >> 8}.${index & 255}`)
    await ingest(
      store,
      addresses.map((address, index) => egress(address, noon + index)),
    )

    const plans: string[] = []
    const watched = explaining(engine, plans)
    expect(await lateResolve(watched, noon + second, { windowSeconds: 600 })).toMatchObject({ done: { resolved: 0 } })
    await putPod(store, 'shop/late', '', { addresses })
    expect(await lateResolve(watched, noon + second, { windowSeconds: 600 })).toMatchObject({
      done: { examined: rowsOfChunk, resolved: rowsOfChunk },
    })
    expect(plans.length).toBeGreaterThanOrEqual(2)
    expect(plans.map(mostComparisons).filter((count) => count > 10 * rowsOfChunk)).toEqual([])
    const { rows } = await engine.query<{ waiting: number }>({
      text: `select count(*) as waiting from audit_queue q join flows f on f.day = q.day and f.flow_key = q.flow_key
        where f.peer_name = 'late'`,
    })
    expect(rows).toEqual([{ waiting: rowsOfChunk }])
  })
})

/** Runs each chunk once more before it counts, to see its plan, and takes that back. */
function explaining(engine: Engine, plans: string[]): Engine {
  const watch = ({ query }: Session): Session => ({
    query: async (statement) => {
      if (statement.name === 'late-resolve') {
        await query({ text: 'savepoint plan' })
        const { text, values = [] } = statement
        const { rows } = await query<{ 'QUERY PLAN': string }>({
          text: `explain (analyze, timing off) ${text}`,
          values,
        })
        await query({ text: 'rollback to savepoint plan' })
        plans.push(rows.map((row) => row['QUERY PLAN']).join('\n'))
      }
      return query(statement)
    },
  })
  return { ...engine, session: (work) => engine.session((session) => work(watch(session))) }
}

/** Of the join that threw most pairs away. */
function mostComparisons(plan: string): number {
  const counts = [...plan.matchAll(/Rows Removed by Join Filter: (\d+)/g)].map(([, count]) => Number(count))
  return Math.max(0, ...counts)
}

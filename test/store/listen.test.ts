/** Listening on PostgreSQL that ends and begins again at once. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Engine } from '#store/engine'
import { listenerName } from '#store/postgres-engine'
import { describePostgres } from './describe-stores'

describePostgres('listening', (opened) => {
  test('a connection that is slow to close does not make the next one be forgotten', async () => {
    const { engine, store } = opened()
    const stop = await store.listen(() => {})
    const [pid] = await listeners(engine)
    if (pid === undefined) throw new Error('nobody listens')
    process.kill(pid, 'SIGSTOP')
    const stopping = stop()
    const stopNext = await store.listen(() => {})
    process.kill(pid, 'SIGCONT')
    await stopping
    expect(await listeners(engine)).toHaveLength(1)
    await stopNext()
    for (let tries = 0; tries < 100 && (await listeners(engine)).length > 0; tries++) await sleep(20)
    expect(await listeners(engine)).toEqual([])
  })
})

async function listeners(engine: Engine): Promise<readonly number[]> {
  const { rows } = await engine.query<{ pid: number }>({
    text: 'select pid from pg_stat_activity where application_name = $1',
    values: [listenerName],
  })
  return rows.map(({ pid }) => pid)
}

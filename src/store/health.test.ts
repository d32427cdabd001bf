import { describe, expect, test } from 'vitest'
import { Failure } from '#base/failure'
import type { Engine, Statement } from './engine'
import { watchHealth } from './health'

type Open = { readonly answer: () => void; readonly fail: () => void }

/** An engine whose statements and pings are answered by hand. */
function slowEngine() {
  const pings: Open[] = []
  const statements: Open[] = []
  const open = (list: Open[]) =>
    new Promise<void>((done, fail) =>
      list.push({ answer: done, fail: () => fail(new Failure('database-unavailable', 'away')) }),
    )
  const query = async () => {
    await open(statements)
    return { rows: [], affected: 0 }
  }
  const engine = {
    kind: 'postgres',
    query,
    session: (work: (one: { query: typeof query }) => unknown) => work({ query }),
    transaction: (work: (one: { query: typeof query }) => unknown) => work({ query }),
    ping: () => open(pings),
  } as unknown as Engine
  return { ...watchHealth(engine), pings, statements }
}

const statement: Statement = { text: 'select 1' }
const well = { reachable: true, schemaReady: true }
const away = { reachable: false, schemaReady: false }

describe('whether the database answers', () => {
  test('is asked of it when it has said nothing yet', async () => {
    const { health, pings } = slowEngine()
    const asked = health(5000)
    pings[0]?.answer()
    expect(await asked).toEqual(well)
  })

  test('is no when the ping fails, and when nothing is heard in time', async () => {
    const { health, pings } = slowEngine()
    const asked = health(5000)
    pings[0]?.fail()
    expect(await asked).toEqual(away)
    expect(await health(1)).toEqual(away)
  })

  test.each([
    ['a statement', (engine: Engine) => engine.query(statement)],
    ['a session', (engine: Engine) => engine.session((session) => session.query(statement))],
    ['a transaction', (engine: Engine) => engine.transaction((session) => session.query(statement))],
  ])('is known from the answer to %s while the ping still waits, and needs no ping right after it', async (_, ask) => {
    const { engine, health, pings, statements } = slowEngine()
    const asking = ask(engine)
    const asked = health(5000)
    statements[0]?.answer()
    await asking
    expect(await asked).toEqual(well)
    expect(await health(1)).toEqual(well)
    expect(pings).toHaveLength(1)
  })

  test('is asked again after a statement that did not reach it, however fresh the answer before', async () => {
    const { engine, health, pings, statements } = slowEngine()
    const first = engine.query(statement)
    statements[0]?.answer()
    await first
    const second = engine.query(statement)
    statements[1]?.fail()
    await expect(second).rejects.toThrow('away')
    const asked = health(5000)
    pings[0]?.fail()
    expect(await asked).toEqual(away)
  })
})

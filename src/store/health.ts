/** Whether the database answers: whatever it answers counts, so that a busy one is not taken for one that is away. */
import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises'
import { Failure } from '#base/failure'
import type { Engine, Session } from './engine'
import type { StoreHealth } from './store'

/** An answer of so many milliseconds ago is one of now. */
const freshMillis = 100

export type WatchedEngine = {
  /** The same engine, whose answers are noticed. */
  readonly engine: Engine
  /** True at the first answer, of any statement, within `waitMillis`. */
  readonly health: (waitMillis: number) => Promise<StoreHealth>
}

export function watchHealth(engine: Engine): WatchedEngine {
  let answered = Number.NEGATIVE_INFINITY
  const asking = new Set<() => void>()
  const note = (): void => {
    answered = performance.now()
    for (const done of asking) done()
    asking.clear()
  }
  const watched = (session: Session): Session => ({
    query: async (statement) => {
      try {
        const answer = await session.query<never>(statement)
        note()
        return answer
      } catch (error) {
        // What it answered before it was found away tells nothing of now; a refusal is an answer.
        if (error instanceof Failure && error.code === 'database-unavailable') answered = Number.NEGATIVE_INFINITY
        throw error
      }
    },
  })
  const isReachable = async (waitMillis: number): Promise<boolean> => {
    if (performance.now() - answered <= freshMillis) return true
    const enough = new AbortController()
    // A process that did not get its processor finds the time over and the answer in its sockets, which it reads after its timers.
    const late = wait(waitMillis, undefined, { signal: enough.signal })
      .then(() => nextTurn(false))
      .catch(() => false)
    const pinged = engine.ping().then(
      () => true,
      () => false,
    )
    let done = (): void => undefined
    const anyAnswer = new Promise<true>((resolve) => {
      done = () => resolve(true)
    })
    asking.add(done)
    const reachable = await Promise.race([anyAnswer, pinged, late])
    asking.delete(done)
    enough.abort()
    return reachable
  }
  return {
    engine: {
      ...engine,
      ...watched(engine),
      session: (work) => engine.session((session) => work(watched(session))),
      transaction: (work) => engine.transaction((session) => work(watched(session))),
      bulk: {
        ...watched(engine.bulk),
        transaction: (work) => engine.bulk.transaction((session) => work(watched(session))),
      },
    },
    health: async (waitMillis) => {
      const reachable = await isReachable(waitMillis)
      return { reachable, schemaReady: reachable }
    },
  }
}

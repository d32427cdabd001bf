/** A clock that a test turns: time stands still until it is told to go on, and then timers run in their order. */
import { setImmediate as turn } from 'node:timers/promises'
import type { Clock } from '../../src/broker/clock'
import { type Instant, parseInstant } from '../../src/flows/instant'

export type ManualClock = Clock & {
  readonly set: (time: string) => void
  /** Lets timers that fall due run, each to its end as far as that needs no other timer. */
  readonly advance: (seconds: number) => Promise<void>
}

type Timer = { readonly at: Instant; readonly run: () => void }

export function manualClock(start: string): ManualClock {
  let now = instantOf(start)
  const timers = new Set<Timer>()
  return {
    now: () => now,
    set: (time) => {
      now = instantOf(time)
    },
    after: (milliseconds, run) => {
      const timer = { at: now + milliseconds * 1000, run }
      timers.add(timer)
      return () => timers.delete(timer)
    },
    advance: async (seconds) => {
      const end = now + seconds * 1_000_000
      for (;;) {
        const [next] = [...timers].filter(({ at }) => at <= end).toSorted((left, right) => left.at - right.at)
        if (next === undefined) break
        timers.delete(next)
        now = Math.max(now, next.at)
        next.run()
        await turn()
      }
      now = end
    },
  }
}

export function instantOf(text: string): Instant {
  const instant = parseInstant(text)
  if (instant === undefined) throw new RangeError(`${text} is no time`)
  return instant
}

/** A clock that a test turns: timers run when their time is told, each to its end before the next. */
import type { AgentClock } from '../../src/agent/agent-clock'

export type TurnedClock = AgentClock & {
  /** Runs what falls due on the way; `settle` waits for what each timer set going. */
  readonly advance: (milliseconds: number, settle: () => Promise<void>) => Promise<void>
  readonly set: (time: string) => void
}

export function turnedClock(start = '2026-10-15T12:00:00Z'): TurnedClock {
  let now = Date.parse(start)
  const timers = new Set<{ readonly at: number; readonly run: () => void }>()
  return {
    now: () => now,
    after(milliseconds, run) {
      const timer = { at: now + milliseconds, run }
      timers.add(timer)
      return () => timers.delete(timer)
    },
    set(time) {
      now = Date.parse(time)
    },
    async advance(milliseconds, settle) {
      const end = now + milliseconds
      for (;;) {
        const [next] = [...timers].filter(({ at }) => at <= end).sort((one, other) => one.at - other.at)
        if (next === undefined) break
        timers.delete(next)
        now = Math.max(now, next.at)
        next.run()
        await settle()
      }
      now = end
    },
  }
}

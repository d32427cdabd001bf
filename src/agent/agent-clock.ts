/** Time as the agent sees it: what time it is, and a call later. Tests bring their own. */

export type AgentClock = {
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Calls `run` then; what is returned takes it back. */
  readonly after: (milliseconds: number, run: () => void) => () => void
}

/** What a timer of Node's takes: a longer one would run at once. */
const longestTimer = 2 ** 31 - 1

/** One that is due later than a timer can wait runs early: whoever waits looks at the time again. */
export const systemClock: AgentClock = {
  now: () => Date.now(),
  after: (milliseconds, run) => {
    const timer = setTimeout(run, Math.min(milliseconds, longestTimer))
    return () => clearTimeout(timer)
  },
}

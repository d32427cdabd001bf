/** Time as the agent sees it: what time it is, and a call later. Tests bring their own. */

export type AgentClock = {
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Calls `run` then; what is returned takes it back. */
  readonly after: (milliseconds: number, run: () => void) => () => void
}

export const systemClock: AgentClock = {
  now: () => Date.now(),
  after: (milliseconds, run) => {
    const timer = setTimeout(run, milliseconds)
    return () => clearTimeout(timer)
  },
}

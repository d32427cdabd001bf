/** Time as the broker sees it: what time it is, and a call later. Tests bring their own. */

export type Cancel = () => void

export type Clock = {
  /** Microseconds since the epoch. */
  readonly now: () => number
  readonly after: (milliseconds: number, run: () => void) => Cancel
}

export const systemClock: Clock = {
  now: () => Date.now() * 1000,
  after: (milliseconds, run) => {
    const timer = setTimeout(run, milliseconds)
    return () => clearTimeout(timer)
  },
}

/** Runs again and again, each time after the last run has ended, so that a slow run is never joined by a second one. */
export function repeat(
  clock: Clock,
  timing: { readonly firstAfterMs: number; readonly thenEveryMs: number },
  run: () => Promise<void>,
): { readonly stop: () => Promise<void> } {
  let isStopped = false
  let running: Promise<void> = Promise.resolve()
  let cancel: Cancel = clock.after(timing.firstAfterMs, tick)
  function tick(): void {
    running = run().then(() => {
      if (!isStopped) cancel = clock.after(timing.thenEveryMs, tick)
    })
  }
  return {
    stop: async () => {
      isStopped = true
      cancel()
      await running
    },
  }
}

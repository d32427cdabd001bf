/** Waits for a quiet moment after word of changes, but not for ever: others may never stop writing beside what is watched. */

export type QuietTimer = {
  /** Milliseconds without another call before it runs. */
  readonly wake: (quietMs: number) => void
  readonly close: () => void
}

const mostWaits = 10

/** At the latest after ten times the quiet that was asked for first. */
export function quietTimer(run: () => void): QuietTimer {
  let timer: NodeJS.Timeout | undefined
  let latest: number | undefined
  const start = (): void => {
    latest = undefined
    run()
  }
  return {
    wake(quietMs) {
      const now = performance.now()
      latest ??= now + mostWaits * quietMs
      clearTimeout(timer)
      timer = setTimeout(start, Math.max(0, Math.min(quietMs, latest - now)))
    },
    close: () => clearTimeout(timer),
  }
}

/** Statuses that another hand changes: looked at when somebody wrote there, and written anew, but for a hand that does not stop. */
import type { AgentOptions } from './agent-options'
import type { Reporter } from './report-status'
import type { StatusWatch } from './status-sink'

/** What several writers do at once is looked at once. */
const quietMs = 50
/** So many corrections in a minute are a contest, which nobody wins by writing faster. */
const mostCorrections = 10
const minuteMs = 60_000

type Options = Pick<AgentOptions, 'status' | 'clock' | 'log' | 'node'>

/** `wake` sets a pass going, which writes what is to stand there. */
export function guardStatuses(
  { status, clock, log, node }: Options,
  reporter: Pick<Reporter, 'isAsWritten'>,
  wake: () => void,
): StatusWatch {
  let cancel: (() => void) | undefined
  let corrections: number[] = []
  let isTold = false

  async function look(): Promise<void> {
    watch.refresh()
    if (await reporter.isAsWritten()) return
    const now = clock.now()
    corrections = corrections.filter((at) => at <= now && now - at < minuteMs)
    if (corrections.length < mostCorrections) {
      corrections.push(now)
      isTold = false
      wake()
    } else if (!isTold) {
      isTold = true
      log.error(
        `another hand keeps changing the statuses of ${node}, and they are written anew at regular rounds alone from now on; end a second agent of this node, or give it a --status of its own`,
      )
    }
  }

  const watch = status.watch(() => {
    cancel ??= clock.after(quietMs, () => {
      cancel = undefined
      // What nobody thought of must not end the agent.
      look().catch((error: unknown) => log.error({ err: error }, 'looking at the statuses failed'))
    })
  })
  return {
    refresh: watch.refresh,
    close() {
      cancel?.()
      watch.close()
    },
  }
}

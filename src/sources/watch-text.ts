/** One file of settings, read again when it changes; what cannot be read any more counts on as it was read last. */
import { resolve } from 'node:path'
import { Failure } from '#base/failure'
import { quietTimer } from './quiet-timer'
import { readText } from './read-text'
import { watchFolders } from './watch-folders'
import type { Watch } from './watch-source'

export type TextHandlers = {
  /** At first, and when it is another text. */
  readonly take: (text: string) => void
  /** Why it cannot be read, as a sentence. */
  readonly tell: (trouble: string) => void
}

/** Milliseconds without a change before it is read: what is being written is not read by half. */
const quietMs = 20

export function watchText(path: string, { take, tell }: TextHandlers): Watch {
  let known: string | undefined
  let isClosed = false
  const timer = quietTimer(() => void look())
  const folders = watchFolders(() => schedule(quietMs))

  function schedule(ms: number): void {
    if (!isClosed) timer.wake(ms)
  }

  async function look(): Promise<void> {
    folders.watch([resolve(path)])
    try {
      const text = await readText(path, { say: () => {} })
      if (isClosed || text === known) return
      known = text
      take(text)
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      // A text that comes back as it was is taken again, so that the trouble is over.
      known = undefined
      if (!isClosed) tell(error.message)
    }
  }

  schedule(0)
  return {
    refresh: () => schedule(0),
    close() {
      isClosed = true
      timer.close()
      folders.close()
    },
  }
}

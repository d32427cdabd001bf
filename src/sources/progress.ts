/** Telling a waiting person what goes on, once a reading has taken two seconds, and then once a second. */

export type Progress = {
  /** Called often; speaks seldom. */
  readonly tell: (sentence: () => string) => void
  /** Before a step that cannot be interrupted and will take long. */
  readonly announce: (sentence: string) => void
}

export type ProgressOptions = {
  readonly say: (sentence: string) => void
  /** Milliseconds of any clock. */
  readonly now: () => number
}

const quietMilliseconds = 2000
const pauseMilliseconds = 1000

export function startProgress({ say, now }: ProgressOptions): Progress {
  let next = now() + quietMilliseconds
  return {
    tell: (sentence) => {
      if (now() < next) return
      next = now() + pauseMilliseconds
      say(sentence())
    },
    announce: (sentence) => {
      next = now() + pauseMilliseconds
      say(sentence)
    },
  }
}

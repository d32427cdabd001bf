/**
 * The cluster's loop: conditions are derived anew whenever objects change, and at the moment when a heartbeat turns stale.
 * What it knows is in the objects: one that starts anew says the same.
 */
import type { Logger } from 'pino'
import { Failure } from '#base/failure'
import { type JudgedObject, surveyConditions } from '#enforce/condition-survey'
import { mergeStatuses } from '#enforce/merge-status'
import type { ObjectsRead, Watch } from '#sources/watch-source'
import { type ConditionPatch, printConditionPatch } from '#wire/condition-patch'
import type { ObjectStore } from './object-store'

export type ControllerClock = {
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Calls `run` then; what is returned takes it back. */
  readonly after: (milliseconds: number, run: () => void) => () => void
}

export type ControllerOptions = {
  readonly store: ObjectStore
  readonly clock: ControllerClock
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>
}

export type Controller = {
  /** Waits until nothing is being written. */
  readonly settled: () => Promise<void>
  readonly stop: () => Promise<void>
}

/** Looks again, in case word of a change was lost. */
const resyncMs = 5 * 60_000
const firstRetryMs = 1000
const longestRetryMs = 60_000

export function startController({ store, clock, log }: ControllerOptions): Controller {
  let objects: ObjectsRead | undefined
  let running: Promise<void> | undefined
  let isAgain = false
  let isStopped = false
  let retryMs = firstRetryMs
  let cancelTimer = (): void => {}
  let cancelResync = (): void => {}

  function wake(): void {
    if (isStopped) return
    isAgain = running !== undefined
    running ??= pass().finally(() => {
      running = undefined
      if (isAgain) wake()
    })
  }

  async function pass(): Promise<void> {
    isAgain = false
    cancelTimer()
    if (objects === undefined) return
    if (objects.isPartial) {
      log.warn(
        'a part of the objects could never be read, so that nothing is concluded and no condition is written; mend what the log names above',
      )
      return
    }
    const now = clock.now()
    const survey = surveyConditions(objects.cluster, now)
    const failed = await writeAll(survey.objects.filter(({ isChanged }) => isChanged))
    const moments = [...(survey.nextAt === undefined ? [] : [survey.nextAt]), ...(failed ? [now + retryMs] : [])]
    retryMs = failed ? Math.min(2 * retryMs, longestRetryMs) : firstRetryMs
    if (moments.length > 0 && !isStopped) cancelTimer = clock.after(Math.max(0, Math.min(...moments) - now), wake)
  }

  /** One that cannot be written keeps no other from being written. */
  async function writeAll(changed: readonly JudgedObject[]): Promise<boolean> {
    let failed = false
    for (const one of changed) {
      const patch = patchOf(one)
      try {
        await store.apply(patch)
        remember(patch)
        log.info(logLine(patch), 'conditions written')
      } catch (error) {
        if (!(error instanceof Failure)) throw error
        failed = true
        log.error({ ...logLine(patch), reason: error.message }, 'conditions could not be written; trying again')
      }
    }
    return failed
  }

  /** Until the watch brings it, so that a second pass does not date it anew. */
  function remember(patch: ConditionPatch): void {
    if (objects === undefined) return
    objects = { ...objects, cluster: mergeStatuses(objects.cluster, { nodes: [], conditions: [patch] }) }
  }

  const watch: Watch = store.watch({
    take(read) {
      objects = read
      wake()
    },
    tell: (trouble) => log.warn(trouble),
  })
  const resync = (): void => {
    watch.refresh()
    cancelResync = clock.after(resyncMs, resync)
  }
  cancelResync = clock.after(resyncMs, resync)

  const settled = async (): Promise<void> => {
    while (running !== undefined) await running
  }
  return {
    settled,
    async stop() {
      isStopped = true
      cancelTimer()
      cancelResync()
      watch.close()
      await settled()
      cancelTimer()
    },
  }
}

export function patchOf({ kind, meta, conditions }: JudgedObject): ConditionPatch {
  return printConditionPatch(kind, meta, conditions)
}

function logLine({ kind, metadata, status }: ConditionPatch): Readonly<Record<string, string>> {
  const short = status.conditions.map(({ type, status, reason }) => `${type}=${status}/${reason}`)
  return { object: `${kind} ${metadata.namespace}/${metadata.name}`, conditions: short.join(' ') }
}

/** Flows as they arrive, at this broker or another on the same database, offered to whoever listens. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { FlowFilter } from '#flows/filter'
import type { StoredFlow } from '#flows/flow'
import { matchesFlow } from '#flows/matches-flow'
import type { Store, StoreEvent } from '#store/store'

export type FlowListener = {
  readonly filter: FlowFilter
  readonly take: (flow: StoredFlow) => void
  /** Flows that came too fast to be told one by one. */
  readonly miss: (count: number) => void
  readonly end: () => void
}

export type LiveFlows = {
  /** Resolves when the listener hears; the answer takes it out again. */
  readonly add: (listener: FlowListener) => Promise<() => void>
  readonly count: () => number
  /** Ends every listener. */
  readonly end: () => Promise<void>
}

/** A socket writes what it was given when the turn is over: more at once would look like a client that does not read. */
const flowsATurn = 16

/** The store is listened to only while somebody wants to know: telling costs it a read of each batch. */
export function buildLiveFlows(listen: Store['listen']): LiveFlows {
  const listeners = new Set<FlowListener>()
  let hearing: Promise<() => Promise<void>> | undefined
  const offer = async ({ flows, missed }: StoreEvent): Promise<void> => {
    for (let start = 0; start < flows.length; start += flowsATurn) {
      if (start > 0) await nextTurn()
      for (const flow of flows.slice(start, start + flowsATurn)) {
        for (const listener of listeners) if (matchesFlow(listener.filter, flow)) listener.take(flow)
      }
    }
    if (missed > 0) for (const listener of listeners) listener.miss(missed)
  }
  const stopHearing = async (): Promise<void> => {
    const stop = hearing
    hearing = undefined
    await (await stop?.catch(() => undefined))?.()
  }
  const remove = (listener: FlowListener): void => {
    if (listeners.delete(listener) && listeners.size === 0) void stopHearing().catch(() => undefined)
  }
  return {
    add: async (listener) => {
      listeners.add(listener)
      try {
        hearing ??= listen(offer)
        await hearing
      } catch (error) {
        hearing = undefined
        listeners.delete(listener)
        throw error
      }
      return () => remove(listener)
    },
    count: () => listeners.size,
    end: async () => {
      for (const listener of [...listeners]) listener.end()
      await stopHearing()
    },
  }
}

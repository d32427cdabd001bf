/** Flows as they arrive, at this broker or another on the same database, offered to whoever listens. */
import type { FlowFilter } from '#flows/filter'
import type { StoredFlow } from '#flows/flow'
import { matchesFlow } from '#flows/matches-flow'
import type { StoreEvent } from '#store/store'

export type FlowListener = {
  readonly filter: FlowFilter
  readonly take: (flow: StoredFlow) => void
  /** Flows that came too fast to be told one by one. */
  readonly miss: (count: number) => void
  readonly end: () => void
}

export type LiveFlows = {
  /** The answer takes the listener out again. */
  readonly add: (listener: FlowListener) => () => void
  readonly offer: (event: StoreEvent) => void
  readonly count: () => number
  /** Ends every listener. */
  readonly end: () => void
}

export function buildLiveFlows(): LiveFlows {
  const listeners = new Set<FlowListener>()
  return {
    add: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    offer: ({ flows, missed }) => {
      for (const listener of listeners) {
        for (const flow of flows) if (matchesFlow(listener.filter, flow)) listener.take(flow)
        if (missed > 0) listener.miss(missed)
      }
    },
    count: () => listeners.size,
    end: () => {
      for (const listener of [...listeners]) listener.end()
    },
  }
}

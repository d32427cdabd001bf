/** Whether what is read still fits: V8 ends the program without a word to its user when the heap is full. */
import { constants, type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'
import { Failure } from '#base/failure'
import { countOf } from '#base/text'
import { heapLimit } from './heap-limit'

export type Memory = {
  /** Throws `Failure` when too little is left to go on; `count` objects of `context` are read. */
  readonly check: (context: string, count: number) => void
  readonly close: () => void
}

/** Of the heap: the last page, and the answer that is made of all pages, want some, too. */
const mostShare = 0.75

/** What the heap holds is known when V8 has just cleared it; before that most of it may be waste. */
export function watchMemory(): Memory {
  const limit = heapLimit()
  let held = 0
  const observer = new PerformanceObserver((list) => {
    if (list.getEntries().some(isMajor)) held = getHeapStatistics().used_heap_size
  })
  observer.observe({ entryTypes: ['gc'] })
  return {
    check: (context, count) => {
      if (held < limit * mostShare) return
      const [full, all] = [held, limit].map((bytes) => Math.round(bytes / 1024 / 1024))
      throw new Failure(
        'input.too-large',
        `cluster ${context} does not fit into the memory of this process: ${full} of ${all} MB are full after ${countOf(count, 'object')}; set NODE_OPTIONS=--max-old-space-size=${(all ?? 0) * 2}`,
      )
    },
    close: () => observer.disconnect(),
  }
}

/** `detail` is Node's own addition, which its types have for observers of functions alone. */
function isMajor(entry: PerformanceEntry & { readonly detail?: unknown }): boolean {
  const { detail } = entry
  const kind = typeof detail === 'object' && detail !== null && 'kind' in detail ? detail.kind : undefined
  return kind === constants.NODE_PERFORMANCE_GC_MAJOR
}

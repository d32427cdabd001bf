/** How a packet fares, or a part of the connections where a node chooses at random. */
import type { ObjectRef } from '#base/finding'
import type { Reason, Verdict, VerdictKind } from '#model/trace'
import type { StateRow, WalkStep } from '#model/walk'
import type { Flight } from './flight'
import type { NodeEntry } from './node-state'

/** Where it came to: a pod, a process of a node, or out of the cluster. */
export type Arrival = {
  readonly flight: Flight
  readonly node?: string
  /** `process` is also a host-networked pod’s. */
  readonly kind: 'pod' | 'process' | 'outside'
}

export type Fate = {
  readonly share: number
  readonly steps: readonly WalkStep[]
  readonly verdict: Verdict
  /** `ip:port` where it is delivered or leaves the cluster. */
  readonly target?: string
  readonly arrival?: Arrival
  readonly entries: readonly NodeEntry[]
  readonly noted: readonly StateRow[]
  /** No rule of the input hides the pod from the world outside. */
  readonly isMasqueradeAssumed?: boolean
}

export function judged(
  kind: VerdictKind,
  code: string,
  sentence: string,
  about?: { readonly object: ObjectRef },
): Verdict {
  const reason: Reason = { code, sentence, ...about }
  return { kind, because: [reason] }
}

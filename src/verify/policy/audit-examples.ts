/** Examples of flows that are counted together: the newest few, whatever the order in which they come. */
import type { Instant } from '#flows/instant'
import type { ObservedFlow } from '#flows/observed-flow'

/** A flow that would be denied, as it was recorded. */
export type AuditExample = {
  readonly time: Instant
  readonly pod: string
  readonly peer: string
  readonly peerAddress: string | null
  readonly direction: ObservedFlow['direction']
  readonly hits: number
}

/** Names are joined when they are shown: rows that come in the order of their times are examples each, for a while. */
export type KeptExample = Omit<AuditExample, 'pod'> & { readonly namespace: string | null; readonly name: string }

const mostExamples = 3

export function keepExample(kept: KeptExample[], flow: ObservedFlow, peer: string): void {
  const oldest = kept[mostExamples - 1]
  if (oldest !== undefined && oldest.time > flow.lastSeen) return
  const { pod, peerAddress, direction, hits, lastSeen: time } = flow
  const { namespace, name } = pod
  insertExample(kept, { time, namespace, name, peer, peerAddress, direction, hits })
}

export function insertExample(kept: KeptExample[], added: KeptExample): void {
  let at = kept.length
  for (; at > 0; at--) {
    const before = kept[at - 1]
    if (before === undefined || !isFirst(added, before)) break
    kept[at] = before
  }
  kept[at] = added
  if (kept.length > mostExamples) kept.pop()
}

export function showExample({ namespace, name, ...rest }: KeptExample): AuditExample {
  const { time, peer, peerAddress, direction, hits } = rest
  const pod = namespace === null ? `${name} (namespace not told)` : `${namespace}/${name}`
  return { time, pod, peer, peerAddress, direction, hits }
}

function isFirst(left: KeptExample, right: KeptExample): boolean {
  return left.time === right.time ? textOf(left) < textOf(right) : left.time > right.time
}

function textOf({ namespace, name, peer, peerAddress, direction, hits }: KeptExample): string {
  return `${namespace}/${name} ${peer} ${peerAddress} ${direction} ${hits}`
}

/** The flow key: what makes two sightings of one day the same flow. */
import type { Direction, Peer } from './flow'

export type KeyedFlow = {
  readonly pod: {
    readonly namespace: string | null
    readonly name: string
    readonly uid: string | null
    readonly address: string | null
  }
  readonly direction: Direction
  readonly protocol: string
  readonly ownPort: number | null
  readonly peerAddress: string | null
  readonly peerPort: number | null
  readonly decision: string
  readonly peer: Pick<Peer, 'kind' | 'namespace' | 'name' | 'uid'> | null
}

/** Between the parts; `checkFlow` lets no text with it in. */
export const keySeparator = '\u001f'

/**
 * The client's port is another one on each connection and no part of the key: only the port that was connected to is. The peer's
 * identity is part of it, so that a recycled address with a new owner is a new flow. The store hashes this text in SQL.
 */
export function flowKeyText(flow: KeyedFlow): string {
  const { pod, peer } = flow
  const own = pod.uid === null ? [pod.namespace, pod.name, pod.address] : ['', '', pod.uid]
  const identity =
    peer === null
      ? ['', '', '', '']
      : peer.uid === null
        ? [peer.kind, '', peer.namespace, peer.name]
        : [peer.kind, peer.uid, '', '']
  const [ownPort, peerPort] = flow.direction === 'INGRESS' ? [flow.ownPort, ''] : ['', flow.peerPort]
  const middle = [flow.direction, flow.protocol, ownPort, flow.peerAddress, peerPort, flow.decision]
  return [...own, ...middle, ...identity].map(orEmpty).join(keySeparator)
}

function orEmpty(part: string | number | null | undefined): string | number {
  return part ?? ''
}

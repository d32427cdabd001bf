/** An observed flow: what generators and audits need of a flow, wherever it was read; a stored flow is one. */
import type { Peer, StoredFlow } from './flow'

/** Groups of Cilium that stand for no pod. */
export type PeerEntity = 'host' | 'remote-node' | 'kube-apiserver'

/** When the peer was decided is of no matter here, and a file may not tell it. `entity` is Cilium's word for a node. */
export type ObservedPeer = Omit<Peer, 'resolvedAt'> & { readonly entity?: PeerEntity }

export type ObservedPod = StoredFlow['pod'] & {
  /** Absent: not told, and then what else is known of the pod counts. */
  readonly isHostNetwork?: boolean
}

export type ObservedFlow = Pick<
  StoredFlow,
  | 'firstSeen'
  | 'lastSeen'
  | 'hits'
  | 'direction'
  | 'protocol'
  | 'ownPort'
  | 'peerAddress'
  | 'peerPort'
  | 'decision'
  | 'outcome'
> & {
  readonly pod: ObservedPod
  readonly peer: ObservedPeer | null
}

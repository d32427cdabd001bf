/** Holders of an address: the pods and Services that had it, from when until when, and what a look-up answers. */
import type { Instant } from './instant'

export type Labels = Readonly<Record<string, string>>

/** The controller that a pod belongs to in the end: a Deployment rather than its ReplicaSet. */
export type Workload = { readonly kind: string; readonly name: string }

/** What became of a pod that is dead: told so, not heard of for too long, or another pod of its name was seen. */
export type DeathReason = 'marked' | 'stale' | 'replaced' | 'address-left'

export type PodHolder = {
  readonly kind: 'pod'
  readonly namespace: string
  readonly name: string
  readonly uid: string | null
  readonly workload: Workload | null
  readonly isHostNetwork: boolean
  /** Null while the pod's start is not known; such a holder is never chosen. */
  readonly startedAt: Instant | null
  /** The last time that the pod was reported with this address. */
  readonly lastSeen: Instant | null
  readonly isDead: boolean
  readonly diedAt: Instant | null
  readonly deathReason: DeathReason | null
}

export type ServiceAddressKind = 'cluster' | 'external' | 'load-balancer' | 'node-port'

export type ServiceHolder = {
  readonly kind: 'service'
  readonly namespace: string
  readonly name: string
  readonly uid: string | null
  readonly addressKind: ServiceAddressKind
  /** Of the object; null when the report did not say, and then the Service is taken to have been there. */
  readonly createdAt: Instant | null
  readonly lastSeen: Instant | null
  readonly isDead: boolean
  /** When it was deleted, or when another Service took the address. */
  readonly diedAt: Instant | null
}

export type Holder = PodHolder | ServiceHolder

/** What a flow's peer was: a pod, a node (seen through one of its host-network pods) or a Service. */
export type PeerKind = 'pod' | 'node' | 'service'

/** Why a holder cannot have been the one at a time. */
export type RejectionReason = 'started-after' | 'start-unknown' | 'ended-before' | 'end-unknown'

export type HolderAnswer =
  | { readonly kind: 'resolved'; readonly peerKind: PeerKind; readonly holder: Holder }
  | { readonly kind: 'rejected'; readonly nearest: Holder; readonly reason: RejectionReason }
  | { readonly kind: 'never-held' }

/** An address, who held it, and from when until when. */
export type Ownership = {
  readonly address: string
  readonly holder: {
    readonly kind: PeerKind
    readonly namespace: string
    readonly name: string
    readonly uid: string | null
  }
  readonly workload: Workload | null
  readonly addressKind: ServiceAddressKind | null
  readonly heldFrom: Instant | null
  /** Null while it holds the address. */
  readonly heldUntil: Instant | null
  readonly lastSeen: Instant
  readonly isDead: boolean
  readonly deathReason: DeathReason | 'deleted' | null
}

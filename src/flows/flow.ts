/** Flows: connections as a node saw them, with each end's identity as it was when they were seen. */
import type { Labels, PeerKind, RejectionReason, Workload } from './holder'
import type { Instant } from './instant'

/** Seen from the pod that the flow was observed at. */
export type Direction = 'INGRESS' | 'EGRESS'

/** One flow as it arrives. Nothing about the peer but its address is taken from the sender. */
export type IncomingFlow = {
  /** A UUID of the sender's; another is made when it is absent or not one. */
  readonly id?: string
  readonly pod: {
    readonly namespace: string | null
    readonly name: string
    readonly uid?: string | null
    /** Any text; an address is stored in its canonical form. */
    readonly address: string | null
  }
  readonly direction: Direction
  readonly protocol: string
  /** 0 or null: the sender did not say. */
  readonly ownPort: number | null
  readonly peerAddress: string | null
  readonly peerPort: number | null
  readonly decision: string
  readonly time: Instant
  /** How often it was seen; 1 when absent. */
  readonly hits?: number
}

/** The peer, as decided once; all of it is there or none. */
export type Peer = {
  readonly kind: PeerKind
  readonly namespace: string
  readonly name: string
  readonly uid: string | null
  readonly workload: Workload | null
  /** Labels that outlive a roll-out, kept so that a policy can be written after the pod's record is gone. */
  readonly labels: Labels | null
  readonly resolvedAt: Instant
}

/** Why a flow has its peer or none; null on rows that an older version stored. */
export type PeerOutcome =
  | { readonly kind: 'resolved' }
  | {
      readonly kind: 'rejected'
      readonly reason: RejectionReason
      readonly nearest: { readonly kind: PeerKind; readonly namespace: string; readonly name: string }
    }
  | { readonly kind: 'never-held' }

/** Where an address lies when nobody is known to have held it. */
export type AddressRange = 'internet' | 'private' | 'not-an-address'

/** One row: every sighting of one flow key on one UTC day. */
export type StoredFlow = {
  readonly id: string
  /** `2026-07-23`, UTC. */
  readonly day: string
  readonly firstSeen: Instant
  readonly lastSeen: Instant
  readonly hits: number
  readonly pod: {
    readonly namespace: string | null
    readonly name: string
    readonly uid: string | null
    readonly address: string | null
    readonly workload: Workload | null
    readonly labels: Labels | null
  }
  readonly direction: Direction
  readonly protocol: string
  readonly ownPort: number | null
  readonly peerAddress: string | null
  readonly peerPort: number | null
  readonly decision: string
  readonly peer: Peer | null
  readonly outcome: PeerOutcome | null
}

/** One row of a batch that was not stored, by its place and the field that is wrong. */
export type BadRow = { readonly index: number; readonly field: string; readonly message: string }

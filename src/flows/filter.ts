/** Filters of flows: terms that all must hold, each a list of conditions of which one is enough. */
import type { Direction } from './flow'
import type { PeerKind } from './holder'
import type { Instant } from './instant'

/** `from` is the connection's initiator, `to` its responder: an egress row goes from the pod to the peer. */
export type Side = 'from' | 'to' | 'either'

export type LabelRequirement = {
  readonly key: string
  readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist'
  readonly values: readonly string[]
}

export type FlowCondition =
  /** Without a namespace: of any. The name is a prefix, as Hubble has it; an empty one fits every pod. */
  | { readonly field: 'pod'; readonly side: Side; readonly namespace?: string; readonly namePrefix: string }
  /** The pod that the row was observed at, by its whole name. */
  | { readonly field: 'reporter'; readonly namespace?: string; readonly name: string }
  | { readonly field: 'namespace'; readonly side: Side; readonly namespace: string }
  | { readonly field: 'labels'; readonly side: Side; readonly requirements: readonly LabelRequirement[] }
  /** `kind` is compared without case. */
  | {
      readonly field: 'workload'
      readonly side: Side
      readonly namespace?: string
      readonly kind?: string
      readonly name: string
    }
  | { readonly field: 'ip'; readonly side: Side; readonly address: string }
  /** `10.0.0.0/8`; one that is not a range fits nothing. */
  | { readonly field: 'cidr'; readonly side: Side; readonly cidr: string }
  /** The port that was connected to: the pod's own of an ingress row, the peer's of an egress row. */
  | { readonly field: 'port'; readonly port: number }
  /** Compared without case, as is the decision. */
  | { readonly field: 'protocol'; readonly protocol: string }
  | { readonly field: 'decision'; readonly decision: string }
  | { readonly field: 'direction'; readonly direction: Direction }
  | { readonly field: 'peer-kind'; readonly peerKind: PeerKind | 'none' }

export type FilterTerm = { readonly anyOf: readonly FlowCondition[]; readonly isNegated?: boolean }

export type FlowFilter = {
  readonly terms: readonly FilterTerm[]
  /** Rows last seen at or after this. */
  readonly since?: Instant
  /** Rows first seen before this. */
  readonly until?: Instant
}

export const everyFlow: FlowFilter = { terms: [] }

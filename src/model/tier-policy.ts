/**
 * The cluster-wide policies of policy.networking.k8s.io in one shape: AdminNetworkPolicy and BaselineAdminNetworkPolicy
 * (v1alpha1), ClusterNetworkPolicy (v1alpha2).
 */
import type { PortRange } from '#base/port-range'
import type { Prefix } from '#base/prefix'
import type { Meta } from './meta'
import type { LabelSelector } from './selector'
import type { Protocol } from './service'

export type TierPolicyKind = 'AdminNetworkPolicy' | 'BaselineAdminNetworkPolicy' | 'ClusterNetworkPolicy'

export type PolicyTier = 'admin' | 'baseline'

export type TierPolicy = {
  readonly kind: TierPolicyKind
  readonly meta: Meta
  readonly tier: PolicyTier
  /** The lower one wins; 0 for a BaselineAdminNetworkPolicy, which has none. */
  readonly priority: number
  readonly subject: NamespacedPods
  readonly ingress: readonly TierRule[]
  readonly egress: readonly TierRule[]
}

/** Pods of namespaces; `namespaces` alone selects all their pods. Host-networked pods are never among them. */
export type NamespacedPods = {
  readonly kind: 'pods'
  readonly path: string
  readonly namespaceSelector: LabelSelector
  readonly podSelector: LabelSelector
}

/** `Accept` of ClusterNetworkPolicy is `allow`. */
export type TierAction = 'allow' | 'deny' | 'pass'

/** The first rule of a policy that matches counts. */
export type TierRule = {
  readonly path: string
  readonly name?: string
  readonly action: TierAction
  readonly peers: readonly TierPeer[]
  /** Absent for every port and protocol. */
  readonly ports?: readonly TierPort[]
}

export type TierPeer =
  | NamespacedPods
  | { readonly kind: 'nodes'; readonly path: string; readonly selector: LabelSelector }
  | { readonly kind: 'networks'; readonly path: string; readonly cidrs: readonly Prefix[] }
  | { readonly kind: 'domainNames'; readonly path: string; readonly names: readonly string[] }
  /** Its selector is one that nothing can read, so that whom it matches is unknown. */
  | { readonly kind: 'unreadable'; readonly path: string }
  /** Of a version of the API that Portolan does not know: such a rule fails closed. */
  | { readonly kind: 'unknown'; readonly path: string; readonly fields: readonly string[] }

export type TierPort =
  | { readonly kind: 'range'; readonly path: string; readonly protocol: Protocol; readonly range: PortRange }
  | { readonly kind: 'named'; readonly path: string; readonly name: string }

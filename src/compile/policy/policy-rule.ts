/** Policies as data: what every kind of policy compiles to, each rule with its place in the object that wrote it. */
import type { ObjectRef, Origin } from '#base/finding'
import type { PortRange } from '#base/port-range'
import type { Prefix } from '#base/prefix'
import type { LabelSelector } from '#model/selector'

export type Direction = 'ingress' | 'egress'

/** Of ICMP the port is the type; VRRP and IGMP, which Cilium alone knows, have none. */
export const policyProtocols = ['TCP', 'UDP', 'SCTP', 'ICMP', 'ICMPv6', 'VRRP', 'IGMP'] as const
export type PolicyProtocol = (typeof policyProtocols)[number]

/** Whether a peer is matched; `maybe` where the input cannot tell. */
export type Match = 'yes' | 'no' | 'maybe'

/** The tiers of the cluster-wide policies, and between them all other policies. */
export type RuleTier = 'admin' | 'normal' | 'baseline'

export type PolicySource = {
  readonly object: ObjectRef
  readonly origin: Origin
  /** Where in the object the policy stands: `spec`, or `specs[1]` in Cilium's. */
  readonly path: string
}

/** One direction of one policy. */
export type CompiledPolicy = {
  readonly source: PolicySource
  readonly tier: RuleTier
  /** The lower one goes first within its tier; of the tier `normal` all have 0 unless the kind has an order. */
  readonly priority: number
  readonly direction: Direction
  readonly subject: SubjectMatch
  /** Whether a subject is closed in this direction but for what rules allow. */
  readonly isolates: boolean
  readonly rules: readonly PolicyRule[]
}

export type RuleAction = 'allow' | 'deny' | 'pass'

export type PolicyRule = {
  /** `spec.ingress[0]`. */
  readonly path: string
  readonly name?: string
  readonly action: RuleAction
  /** One of them must match. */
  readonly peers: 'any' | readonly PeerMatch[]
  /** One of them must match. */
  readonly ports: 'any' | readonly PortMatch[]
  /** What follows a match beside the action, such as a redirection to a proxy; told, and never a reason to drop here. */
  readonly consequences?: readonly RuleConsequence[]
  /** What a semantics of its own reads of the rule, such as Cilium's redirections. */
  readonly detail?: unknown
}

export type RuleConsequence = {
  readonly kind: 'redirect' | 'authenticate'
  readonly path: string
  readonly sentence: string
}

/** Namespaces by their labels, or the policy's own by name. */
export type NamespaceMatch = { readonly name: string } | { readonly selector: LabelSelector }

export type PodsMatch = {
  readonly kind: 'pods'
  readonly path: string
  readonly namespaces: NamespaceMatch
  readonly pods: LabelSelector
}

export type NodesMatch = { readonly kind: 'nodes'; readonly path: string; readonly selector: LabelSelector }

/**
 * What a semantics of its own matches by, such as Cilium's identities: `text` is the match in a canonical form (equal
 * texts match alike), `detail` what that semantics reads.
 */
export type OwnMatch = {
  readonly kind: 'own'
  readonly path: string
  readonly text: string
  /** What the policy says, where several matches stand for it together, as of an entity. */
  readonly title?: string
  readonly detail: unknown
}

export type SubjectMatch = PodsMatch | NodesMatch | OwnMatch

export type AddressesMatch = {
  readonly kind: 'addresses'
  readonly path: string
  readonly cidr: Prefix
  readonly except: readonly Prefix[]
}

export type PeerMatch =
  | PodsMatch
  | NodesMatch
  | OwnMatch
  | AddressesMatch
  /** Names of the DNS, whose addresses the input does not tell. */
  | { readonly kind: 'names'; readonly path: string; readonly names: readonly string[] }
  /** Matches nobody, or everybody, for the reason given. */
  | { readonly kind: 'nobody' | 'everybody'; readonly path: string; readonly why: string }
  /** The input cannot tell whom it matches; `isOutside` if that is no pod in any case. */
  | { readonly kind: 'unknown'; readonly path: string; readonly why: string; readonly isOutside?: boolean }

/** `protocol` is absent where every protocol with ports is meant. */
export type PortMatch =
  | { readonly kind: 'range'; readonly path: string; readonly protocol?: PolicyProtocol; readonly range: PortRange }
  | { readonly kind: 'named'; readonly path: string; readonly protocol?: PolicyProtocol; readonly name: string }

export const everyPort: PortRange = { from: 0, to: 65535 }

/** A NetworkPolicy (networking.k8s.io/v1), API defaults applied; each rule, peer and port knows its path in the object. */
import type { Prefix } from '#base/prefix'
import type { Meta } from './meta'
import type { LabelSelector } from './selector'
import type { Protocol } from './service'

export const policyTypes = ['Ingress', 'Egress'] as const
export type PolicyType = (typeof policyTypes)[number]

export type NetworkPolicy = {
  readonly meta: Meta
  readonly podSelector: LabelSelector
  /** As the API server fills it in where the text has none. */
  readonly policyTypes: readonly PolicyType[]
  /** The text itself lists its policyTypes. */
  readonly hasPolicyTypes: boolean
  readonly ingress: readonly NetworkPolicyRule[]
  readonly egress: readonly NetworkPolicyRule[]
}

/** Without peers it holds for all, without ports for every port and protocol. */
export type NetworkPolicyRule = {
  readonly path: string
  readonly peers: readonly NetworkPolicyPeer[]
  readonly ports: readonly NetworkPolicyPort[]
}

/** Without a namespaceSelector the pods are those of the policy's namespace, without a podSelector all of the namespaces. */
export type SelectorPeer = {
  readonly kind: 'selectors'
  readonly path: string
  readonly namespaceSelector?: LabelSelector
  readonly podSelector?: LabelSelector
}

export type IpBlockPeer = {
  readonly kind: 'ipBlock'
  readonly path: string
  readonly cidr: Prefix
  readonly except: readonly Prefix[]
}

export type NetworkPolicyPeer = SelectorPeer | IpBlockPeer

export type NetworkPolicyPort = {
  readonly path: string
  readonly protocol: Protocol
  /** The text names no protocol, and the API server fills in TCP. */
  readonly assumesProtocol?: true
  /** Absent for every port of the protocol; a text is the name of a container's port. */
  readonly port?: number | string
  readonly endPort?: number
}

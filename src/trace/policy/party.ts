/** The two ends of a connection as policies see them: single parties, and the classes of parties that no policy tells apart. */
import type { Family, Ip } from '#base/ip'
import type { PolicyProtocol } from '#compile/policy/policy-rule'
import type { Labels } from '#model/meta'
import type { ClusterNode } from '#model/node'
import type { NamedPort, Pod } from '#model/pod'

export type Party =
  /** `namespaceLabels` stands for a namespace that the cluster does not hold, as of a pod that does not exist yet. */
  | { readonly kind: 'pod'; readonly pod: Pod; readonly namespaceLabels?: Labels }
  | { readonly kind: 'node'; readonly node: ClusterNode }
  | { readonly kind: 'address'; readonly ip: Ip }
  /** One of Cilium's names for a group of identities: `world`, `host`, `kube-apiserver` … */
  | { readonly kind: 'entity'; readonly name: string }

/** A connection between two parties; of ICMP the port is the type. `family` matters where both have addresses of both. */
export type PartyConnection = {
  readonly source: Party
  readonly target: Party
  readonly protocol: PolicyProtocol
  readonly port?: number
  readonly family?: Family
  readonly icmpCode?: number
}

/**
 * Parties that every policy of a world matches alike; `party` is one of them. A host-networked pod is of the kind `node`,
 * as its packets carry the node's address.
 */
export type PartyClass = {
  readonly id: number
  readonly kind: 'pod' | 'node' | 'address' | 'entity'
  readonly party: Party
  readonly namespace?: string
  /** Of the pod or the node. */
  readonly labels: Labels
  readonly namespaceLabels: Labels
  readonly ports: readonly NamedPort[]
  /** Of a member; all lie in the same ranges of the policies. Absent for a pod that has none yet. */
  readonly ip?: Ip
  /** False for a host-networked pod whose node the input does not tell: the labels are not known then. */
  readonly isNodeKnown: boolean
}

/** Where two parties stand to each other: what runs on a node reaches the pods of that node whatever policies say. */
export type Nearness = 'apart' | 'same-node' | 'perhaps-same-node' | 'same-pod'

/** A connection between two classes, by their ids. */
export type ClassConnection = {
  readonly source: number
  readonly target: number
  readonly protocol: PolicyProtocol
  readonly port: number
  /** Absent for `apart`. */
  readonly nearness?: Nearness
}

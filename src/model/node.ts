/** A node: its addresses, topology labels (in `meta.labels`) and pod ranges. */
import type { Meta } from './meta'

export type NodeAddress = { readonly type: string; readonly address: string }

export type ClusterNode = {
  readonly meta: Meta
  /** Canonical addresses for IP types; names for `Hostname` and DNS types. */
  readonly addresses: readonly NodeAddress[]
  readonly podCIDRs: readonly string[]
  /** Allocatable CPU in thousandths of a core; absent when the node tells none. */
  readonly allocatableMilliCpu?: number
  readonly isReady: boolean
}

export const zoneLabel = 'topology.kubernetes.io/zone'

/** The node's addresses that kube-proxy may call its own: InternalIP entries first, then ExternalIP. */
export function nodeIps(node: ClusterNode): readonly string[] {
  const of = (type: string): string[] =>
    node.addresses.filter((entry) => entry.type === type).map((entry) => entry.address)
  return [...of('InternalIP'), ...of('ExternalIP')]
}

/** How a node's kube-proxy is set: what changes the rules it writes, with its own defaults. */

/** How kube-proxy tells traffic of this node's pods from other traffic. */
export type DetectLocal =
  | { readonly kind: 'ClusterCIDR'; readonly cidrs: readonly string[] }
  /** The node's own pod ranges. */
  | { readonly kind: 'NodeCIDR' }
  | { readonly kind: 'BridgeInterface'; readonly name: string }
  | { readonly kind: 'InterfaceNamePrefix'; readonly prefix: string }

export type ProxyMode = 'iptables' | 'nftables' | 'ipvs'

export type ProxySettings = {
  readonly mode: ProxyMode
  readonly masqueradeAll: boolean
  /** 0 to 31: the bit of the packet mark that asks for masquerading. */
  readonly masqueradeBit: number
  readonly localhostNodePorts: boolean
  /** CIDRs, or `primary` alone; empty for the back-end's own default. */
  readonly nodePortAddresses: readonly string[]
  readonly detectLocal: DetectLocal
  /** Above this number of endpoints, iptables rules lose the comments of their endpoints. */
  readonly largeClusterEndpoints: number
  /** The kernel has nfacct counters for kube-proxy. */
  readonly nfacct: boolean
  /** iptables knows `--random-fully` (1.6.2 and later). */
  readonly randomFully: boolean
  /** The sysctl nf_conntrack_tcp_be_liberal is set. */
  readonly conntrackTcpBeLiberal: boolean
  /** The feature PreferSameTrafficDistribution: hints for nodes count. */
  readonly preferSameTrafficDistribution: boolean
}

/** Of kube-proxy 1.34 on a recent distribution. */
export const defaultSettings: ProxySettings = {
  mode: 'iptables',
  masqueradeAll: false,
  masqueradeBit: 14,
  localhostNodePorts: true,
  nodePortAddresses: [],
  detectLocal: { kind: 'ClusterCIDR', cidrs: [] },
  largeClusterEndpoints: 1000,
  nfacct: false,
  randomFully: true,
  conntrackTcpBeLiberal: false,
  preferSameTrafficDistribution: true,
}

/** The mark as kube-proxy writes it, with eight digits: `0x00004000`. */
export function printMasqueradeMark({ masqueradeBit }: ProxySettings): string {
  return `0x${(2 ** masqueradeBit).toString(16).padStart(8, '0')}`
}

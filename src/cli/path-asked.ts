/** What a walker of `portolan path` is asked, whichever datapath it is of. */
import type { CiliumVersion } from '#model/cilium-version'
import type { Cluster } from '#model/cluster'
import type { EndpointSlice } from '#model/endpoint-slice'
import type { Walk, WalkQuestion } from '#model/walk'
import type { KubeProxyAsked } from './path-kube-proxy'

export const datapaths = ['cilium', 'iptables', 'nftables'] as const
export type Datapath = (typeof datapaths)[number]

/** One text of `--state`, and the node whose rows they are where it is named. */
export type GivenState = { readonly node?: string; readonly file: string; readonly text: string }

export type PathAsked = {
  readonly cluster: Cluster
  readonly slices: readonly EndpointSlice[]
  readonly question: WalkQuestion
  readonly datapath: Datapath
  readonly cilium: CiliumVersion
  readonly state: readonly GivenState[]
  /** Addresses of devices by node and name, beyond what the objects tell. */
  readonly devices: ReadonlyMap<string, ReadonlyMap<string, readonly string[]>>
  /** Of nodes that run it. */
  readonly kubeProxy?: KubeProxyAsked
}

export type Walker = (asked: PathAsked) => Walk

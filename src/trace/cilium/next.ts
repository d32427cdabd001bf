/** What happens to a packet after a program: each names the program that runs next, or the end of the leg. */
import type { Ip } from '#base/ip'
import type { LocalEndpoint } from '#compile/cilium/node-world'
import type { MapLookup } from '#model/walk'
import type { NodeTables } from './node-tables'
import type { Ending } from './walk-draft'

export type Next =
  | { readonly kind: 'end'; readonly ending: Ending }
  /** cil_from_container: a pod sends. */
  | { readonly kind: 'from-pod'; readonly node: NodeTables; readonly endpoint: LocalEndpoint }
  /** The endpoint's policy program: a pod receives. */
  | Delivery
  /** A process of the host sends, or answers from the address it was asked at. */
  | { readonly kind: 'from-process'; readonly node: NodeTables; readonly isAnswer?: boolean }
  /** cil_from_host: what the host or the proxy sends by way of cilium_host. */
  | { readonly kind: 'from-host'; readonly node: NodeTables; readonly identity: number; readonly isProxy?: boolean }
  /** The host's stack receives. */
  | { readonly kind: 'to-host'; readonly node: NodeTables; readonly identity: number }
  /** Into the tunnel. */
  | Encapsulation
  /** cil_to_netdev: the packet leaves through a NIC. */
  | {
      readonly kind: 'leave'
      readonly node: NodeTables
      readonly why: string
      readonly isTranslated?: boolean
      /** Sent back out by the driver's program, which neither tc nor the stack sees. */
      readonly isXdp?: boolean
      readonly identity: number
    }
  /** On the wire between nodes, or out of the cluster. */
  | { readonly kind: 'wire'; readonly from?: NodeTables }
  | { readonly kind: 'from-netdev'; readonly node: NodeTables }
  | { readonly kind: 'from-overlay'; readonly node: NodeTables }

export type Delivery = {
  readonly kind: 'deliver'
  readonly node: NodeTables
  readonly endpoint: LocalEndpoint
  /** Of the sender, as this node sees it. */
  readonly identity: number
  /** A pod that reaches itself through a Service, and what the proxy sends on, are not judged. */
  readonly isHairpin?: boolean
  readonly isFromProxy?: boolean
  readonly isFromTunnel?: boolean
}

export type Encapsulation = {
  readonly kind: 'encapsulate'
  readonly node: NodeTables
  /** The program that does it. */
  readonly at: { readonly device: string; readonly hook: string; readonly program: string }
  readonly to: Ip
  readonly identity: number
  readonly why: string
  readonly lookups: readonly MapLookup[]
}

export function end(ending: Ending): Next {
  return { kind: 'end', ending }
}

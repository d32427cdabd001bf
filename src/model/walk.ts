/** One packet's whole way through a cluster, step by step, and its answer's way back, whichever datapath carries them. */
import type { Finding, ObjectRef, Origin } from '#base/finding'
import type { Ip } from '#base/ip'
import type { Pod } from './pod'
import type { Hop, Target, Verdict } from './trace'

export type WalkProtocol = 'TCP' | 'UDP' | 'SCTP' | 'ICMP' | 'ICMPv6'

/** An address and who holds it: a pod, a node by name, or nobody of the cluster. */
export type WalkEnd = {
  readonly ip: Ip
  readonly pod?: Pod
  readonly node?: string
  /** The sender is known by name alone: its routes choose among its addresses. */
  readonly isByName?: boolean
}

/** The packet that is asked about: a connection's first, unless state that is given knows it. */
export type WalkQuestion = {
  readonly source: WalkEnd
  /** Also an address of a Service, which nobody holds. */
  readonly destination: WalkEnd
  readonly protocol: WalkProtocol
  /** Of ICMP the identifier. */
  readonly sourcePort: number
  /** Of ICMP the type. */
  readonly port: number
  /** Of ICMP; absent: of type 3 that fragmentation is needed (4), and 0 of others. */
  readonly icmpCode?: number
  /** Where a packet from outside comes in; absent: at the node that holds the destination, or the first. */
  readonly entryNode?: string
  /** `ip:port` of the backend to follow where the datapath chooses; absent: by its rule, or the first. */
  readonly backend?: string
  readonly isReplyWanted: boolean
  /** Of an error of ICMP: the packet that it is about. */
  readonly about?: WalkInner
}

/** A packet inside an error of ICMP, as whoever sends the error met it; of an echo the identifier is its source port. */
export type WalkInner = {
  readonly protocol: WalkProtocol
  readonly source: Ip
  readonly sourcePort: number
  readonly destination: Ip
  readonly port: number
}

/** `node` is absent outside the cluster; `device` is as the node names it, or the pod and its device. */
export type WalkPlace = {
  readonly node?: string
  readonly device?: string
  /** `cgroup/connect4`, `tc ingress`, `xdp`, `routing`, `wire`, or netfilter's hook. */
  readonly hook: string
  readonly program?: string
}

/** One look-up; `value` is absent when nothing was found. Texts are as the datapath's own tool prints them. */
export type MapLookup = {
  readonly map: string
  readonly key: string
  readonly value?: string
  readonly object?: ObjectRef
  readonly path?: string
  readonly origin?: Origin
}

/** `by` is the helper that does it, where a program does. */
export type HeaderChange = {
  readonly field: string
  readonly before: string
  readonly after: string
  readonly by?: string
}

/** The packet after a step: `10.244.1.10:43210`, the mark in hex, and what it is wrapped in, outermost last. */
export type WalkPacket = {
  readonly protocol: string
  readonly source: string
  readonly destination: string
  /** Of an error of ICMP. */
  readonly about?: string
  readonly mark?: string
  readonly identity?: number
  readonly wrappedIn?: string
}

export type WalkStep = {
  readonly at: WalkPlace
  readonly did: string
  readonly because: string
  readonly packet: WalkPacket
  readonly lookups?: readonly MapLookup[]
  readonly changes?: readonly HeaderChange[]
  /** What the step rests on, beside its look-ups. */
  readonly object?: ObjectRef
  readonly origin?: Origin
  /** Netfilter's own hops inside this step. */
  readonly hops?: readonly Hop[]
  /** The part of connections that take this step, absent when all do. */
  readonly share?: number
}

/** As the datapath numbers and names it. */
export type DropReason = { readonly number: number; readonly name: string }

export type Leg = {
  readonly steps: readonly WalkStep[]
  readonly verdict: Verdict
  readonly drop?: DropReason
  /** Where it ends, with shares where the datapath chooses. */
  readonly targets: readonly Target[]
}

/** A row of connection tracking or NAT of one node, as its tool prints it. */
export type StateRow = {
  readonly node: string
  readonly table: string
  readonly row: string
  /** Of Cilium's maps of connections and translations: the row's key as the kernel holds it, in hex. */
  readonly key?: string
  readonly isNew: boolean
}

export type Walk = {
  readonly datapath: 'cilium' | 'iptables' | 'nftables'
  readonly request: Leg
  /** Absent when nobody asked, or nothing came that could be answered. */
  readonly reply?: Leg
  readonly before: readonly StateRow[]
  readonly after: readonly StateRow[]
  readonly findings: readonly Finding[]
}

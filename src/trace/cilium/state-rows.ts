/** Rows that traffic leaves on a node, whichever way they are told. Mirrors bpf/lib/conntrack.h and bpf/lib/nat.h, Cilium 1.16 to 1.19. */
import type { Family, Ip } from '#base/ip'
import type { WalkProtocol } from '#model/walk'
import type { NewEnd } from './flow-packet'

export type Direction = 'OUT' | 'IN'

/** Addresses and ports as the dump prints them: of the connection's first packet. */
export type StateTuple = {
  readonly protocol: WalkProtocol
  readonly source: Ip
  readonly sourcePort: number
  readonly destination: Ip
  readonly port: number
}

export const ctFlags = {
  rxClosing: 1,
  txClosing: 2,
  loopback: 8,
  seenNonSyn: 16,
  nodePort: 32,
  proxyRedirect: 64,
  dsr: 128,
  fromL7: 256,
  fromTunnel: 1024,
} as const

export type CtRow = StateTuple & {
  readonly direction: Direction
  readonly isService: boolean
  readonly isRelated: boolean
  readonly flags: number
  readonly revNat: number
  readonly sourceIdentity: number
  /** Of services. */
  readonly backendId?: number
  /** What the client sent to, where the backend answers it directly. */
  readonly nat?: NewEnd
}

export type NatRow = StateTuple & {
  readonly direction: Direction
  readonly to: NewEnd
  readonly needsCt: boolean
}

export type AffinityRow = {
  readonly client: Ip
  readonly isSocket: boolean
  readonly revNat: number
  readonly backendId: number
}

export type SocketRow = {
  readonly backend: string
  readonly frontend: string
  readonly family: Family
  readonly revNat: number
}

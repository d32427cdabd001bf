/** A packet, as far as it is known: an absent field is unknown, never a default. */
import type { Ip } from '#base/ip'

export type PacketProtocol = 'tcp' | 'udp' | 'sctp' | 'icmp' | 'icmpv6' | 'all'

export type ConnectionState = 'NEW' | 'ESTABLISHED' | 'RELATED' | 'INVALID' | 'UNTRACKED'

export type Packet = {
  readonly destination: Ip
  readonly destinationPort?: number
  readonly protocol: PacketProtocol
  readonly source?: Ip
  readonly sourcePort?: number
  readonly inInterface?: string
  readonly outInterface?: string
  readonly mark?: number
  readonly state?: ConnectionState
  readonly icmp?: { readonly type: number; readonly code: number }
}

/** A packet that a test sends, described by what a rule can see of it. */
import { compareText } from '#base/text'

export type TcpFlag = 'FIN' | 'SYN' | 'RST' | 'PSH' | 'ACK' | 'URG'

/** `icmp` between IPv6 addresses is ICMPv6. */
type SentProtocol = 'tcp' | 'udp' | 'sctp' | 'icmp'

export type SentPacket = {
  /** The link whose far end sends it, or `local`: a process on the node. */
  readonly from: string
  readonly protocol: SentProtocol
  readonly source: string
  readonly destination: string
  readonly sourcePort?: number
  readonly destinationPort?: number
  /** SYN alone unless given; only SYN alone from `local`. */
  readonly flags?: readonly TcpFlag[]
  /** An echo request with id 1 unless given; only echo requests from `local`. */
  readonly icmp?: { readonly type: number; readonly code: number; readonly id: number }
  readonly ttl?: number
  readonly payload?: string
}

export const fromLocal = 'local'

/** The type of an echo request in the packet's family. */
export function echoRequestType(packet: SentPacket): number {
  return packet.source.includes(':') ? 128 : 8
}

/** Neighbours from one sender go out together, which is much faster. */
export function bySender(packets: readonly SentPacket[]): readonly SentPacket[] {
  return packets.toSorted((a, b) => compareText(a.from, b.from))
}

/** A packet in flight between nodes: every field known, of ICMP the identifier as source port and the type as port. */
import { type Ip, isSameIp, printEndpoint, printIp } from '#base/ip'
import type { PacketProtocol } from '#model/packet'
import type { WalkPacket, WalkProtocol } from '#model/walk'

export type Flight = {
  readonly protocol: WalkProtocol
  readonly source: Ip
  readonly sourcePort: number
  readonly destination: Ip
  readonly port: number
}

export function isIcmp({ protocol }: Pick<Flight, 'protocol'>): boolean {
  return protocol === 'ICMP' || protocol === 'ICMPv6'
}

export function packetProtocol({ protocol }: Pick<Flight, 'protocol'>): PacketProtocol {
  const names = { TCP: 'tcp', UDP: 'udp', SCTP: 'sctp', ICMP: 'icmp', ICMPv6: 'icmpv6' } as const
  return names[protocol]
}

export function sourceText(flight: Flight): string {
  const ip = printIp(flight.source)
  return isIcmp(flight) ? ip : printEndpoint(ip, flight.sourcePort)
}

export function destinationText(flight: Flight): string {
  const ip = printIp(flight.destination)
  return isIcmp(flight) ? ip : printEndpoint(ip, flight.port)
}

export function walkPacket(flight: Flight): WalkPacket {
  return { protocol: flight.protocol, source: sourceText(flight), destination: destinationText(flight) }
}

export function isSameSource(a: Flight, b: Flight): boolean {
  return isSameIp(a.source, b.source) && a.sourcePort === b.sourcePort
}

export function isSameDestination(a: Flight, b: Flight): boolean {
  return isSameIp(a.destination, b.destination) && a.port === b.port
}

/** What answers it: an echo reply where it is an echo request (8 and 0 of ICMP, 128 and 129 of ICMPv6). */
export function answerOf(flight: Flight): Flight {
  const { protocol, source, sourcePort, destination, port } = flight
  const back = { protocol, source: destination, destination: source }
  if (!isIcmp(flight)) return { ...back, sourcePort: port, port: sourcePort }
  return { ...back, sourcePort, port: answerTypes[port] ?? port }
}

export function hasAnswer(flight: Flight): boolean {
  return !isIcmp(flight) || answerTypes[flight.port] !== undefined
}

/** nf_conntrack_proto_icmp.c and nf_conntrack_proto_icmpv6.c, both ways. */
const answerTypes: Readonly<Record<number, number>> = { 8: 0, 0: 8, 13: 14, 14: 13, 128: 129, 129: 128 }

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
  readonly icmpCode?: number
  /** Of an error of ICMP: the packet that it carries. */
  readonly about?: Flight
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
  return {
    protocol: isIcmp(flight) && !hasAnswer(flight) ? typeText(flight) : flight.protocol,
    source: sourceText(flight),
    destination: destinationText(flight),
    ...(flight.about !== undefined && { about: flightText(flight.about) }),
  }
}

function typeText({ protocol, port, icmpCode }: Flight): string {
  return `${protocol} type ${port}${icmpCode === undefined ? '' : ` code ${icmpCode}`}`
}

/** `TCP 10.244.1.10:43210 → 10.244.1.20:8080`. */
export function flightText(flight: Flight): string {
  const what = isIcmp(flight) ? `${flight.protocol} id ${flight.sourcePort}` : flight.protocol
  return `${what} ${sourceText(flight)} → ${destinationText(flight)}`
}

/** Those that connection tracking looks into for the packet that they are about (nf_conntrack_icmpv4_error, _icmpv6_error). */
export function isError({ protocol, port }: Pick<Flight, 'protocol' | 'port'>): boolean {
  return protocol === 'ICMP' ? [3, 4, 5, 11, 12].includes(port) : protocol === 'ICMPv6' && port < 128
}

/** Whether connection tracking takes it for a connection's first packet: of ICMP questions alone (nf_conntrack_proto_icmp.c, _icmpv6.c). */
export function maybeFirst(flight: Flight): boolean {
  return !isIcmp(flight) || (flight.protocol === 'ICMP' ? [8, 13, 15, 17] : [128]).includes(flight.port)
}

/** That fragmentation is needed, where no code of type 3 is told. */
export function icmpCodeOf({ protocol, port, icmpCode }: Flight): number {
  return icmpCode ?? (protocol === 'ICMP' && port === 3 ? 4 : 0)
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

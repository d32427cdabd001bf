/** Ethernet frames, byte by byte: IPv4 and IPv6 with TCP, UDP, an SCTP INIT or ICMP inside, and right checksums. */
import { parseIp } from '#base/ip'
import { echoRequestType, type SentPacket, type TcpFlag } from './sent-packet'

export type FrameEnds = { readonly sourceMac: string; readonly destinationMac: string }

const protocolNumbers = { tcp: 6, udp: 17, sctp: 132, icmp: 1, icmpv6: 58 } as const
const flagBits: Readonly<Record<TcpFlag, number>> = { FIN: 1, SYN: 2, RST: 4, PSH: 8, ACK: 16, URG: 32 }

/** `id` becomes the IPv4 identification or the IPv6 flow label: routers and NAT leave both as they are. */
export function buildFrame(packet: SentPacket, id: number, ends: FrameEnds): Buffer {
  const isIpv6 = packet.source.includes(':')
  const number = packet.protocol === 'icmp' && isIpv6 ? protocolNumbers.icmpv6 : protocolNumbers[packet.protocol]
  const addresses = Buffer.concat([ipBytes(packet.source), ipBytes(packet.destination)])
  const segment = buildSegment(packet, pseudoHeader(addresses, number))
  const header = isIpv6
    ? ipv6Header(packet, number, segment.length, id)
    : ipv4Header(packet, number, segment.length, id)
  const ip = Buffer.concat([header, addresses])
  if (!isIpv6) ip.writeUInt16BE(checksum([ip]), 10)
  const type = Buffer.from(isIpv6 ? [0x86, 0xdd] : [0x08, 0x00])
  const destination = groupMac(packet.destination) ?? macBytes(ends.destinationMac)
  return Buffer.concat([destination, macBytes(ends.sourceMac), type, ip, segment])
}

/** What a broadcast or multicast address is on the link (RFC 1112, RFC 2464); undefined for one receiver's address. */
function groupMac(address: string): Buffer | undefined {
  const bytes = ipBytes(address)
  if (bytes.length === 16) {
    return bytes[0] === 0xff ? Buffer.concat([Buffer.from([0x33, 0x33]), bytes.subarray(12)]) : undefined
  }
  if (address === '255.255.255.255') return Buffer.alloc(6, 0xff)
  const [first = 0, second = 0, third = 0, fourth = 0] = bytes
  return first >>> 4 === 14 ? Buffer.from([0x01, 0x00, 0x5e, second & 0x7f, third, fourth]) : undefined
}

function ipv4Header(packet: SentPacket, protocol: number, length: number, id: number): Buffer {
  const header = Buffer.alloc(12)
  header[0] = 0x45
  header.writeUInt16BE(20 + length, 2)
  header.writeUInt16BE(id, 4)
  header[8] = packet.ttl ?? 64
  header[9] = protocol
  return header
}

function ipv6Header(packet: SentPacket, protocol: number, length: number, id: number): Buffer {
  const header = Buffer.alloc(8)
  header.writeUInt32BE(0x6000_0000 + id, 0)
  header.writeUInt16BE(length, 4)
  header[6] = protocol
  header[7] = packet.ttl ?? 64
  return header
}

type PseudoHeader = (length: number) => readonly Buffer[]

function pseudoHeader(addresses: Buffer, protocol: number): PseudoHeader {
  return (length) => {
    const tail = Buffer.alloc(8)
    tail.writeUInt32BE(length, 0)
    tail[7] = protocol
    return [addresses, tail]
  }
}

function buildSegment(packet: SentPacket, pseudo: PseudoHeader): Buffer {
  switch (packet.protocol) {
    case 'tcp':
      return tcpSegment(packet, pseudo)
    case 'udp':
      return udpSegment(packet, pseudo)
    case 'sctp':
      return sctpInit(packet)
    case 'icmp':
      return icmpMessage(packet, pseudo)
    default:
      return packet.protocol satisfies never
  }
}

function tcpSegment(packet: SentPacket, pseudo: PseudoHeader): Buffer {
  const flags = packet.flags ?? ['SYN']
  const segment = Buffer.concat([ports(packet), Buffer.alloc(16), Buffer.from(packet.payload ?? '')])
  segment.writeUInt32BE(1000, 4)
  if (flags.includes('ACK')) segment.writeUInt32BE(2000, 8)
  segment[12] = 5 << 4
  segment[13] = flags.reduce((bits, flag) => bits | flagBits[flag], 0)
  segment.writeUInt16BE(64_240, 14)
  segment.writeUInt16BE(checksum([...pseudo(segment.length), segment]), 16)
  return segment
}

function udpSegment(packet: SentPacket, pseudo: PseudoHeader): Buffer {
  const segment = Buffer.concat([ports(packet), Buffer.alloc(4), Buffer.from(packet.payload ?? 'portolan')])
  segment.writeUInt16BE(segment.length, 4)
  // Zero would mean "no checksum", so a sum of zero is sent as all ones.
  segment.writeUInt16BE(checksum([...pseudo(segment.length), segment]) || 0xffff, 6)
  return segment
}

/** The first packet of an association: no tag of the other side yet, and one INIT chunk. */
function sctpInit(packet: SentPacket): Buffer {
  const segment = Buffer.concat([ports(packet), Buffer.alloc(28)])
  segment[12] = 1
  segment.writeUInt16BE(20, 14)
  segment.writeUInt32BE(0x1234_5678, 16)
  segment.writeUInt32BE(106_496, 20)
  segment.writeUInt16BE(10, 24)
  segment.writeUInt16BE(10, 26)
  segment.writeUInt32BE(1, 28)
  segment.writeUInt32LE(crc32c(segment), 8)
  return segment
}

function icmpMessage(packet: SentPacket, pseudo: PseudoHeader): Buffer {
  const { type, code, id } = packet.icmp ?? { type: echoRequestType(packet), code: 0, id: 1 }
  const message = Buffer.concat([
    Buffer.from([type, code, 0, 0]),
    Buffer.alloc(4),
    Buffer.from(packet.payload ?? 'portolan'),
  ])
  message.writeUInt16BE(id, 4)
  message.writeUInt16BE(1, 6)
  const covered = packet.source.includes(':') ? [...pseudo(message.length), message] : [message]
  message.writeUInt16BE(checksum(covered), 2)
  return message
}

function ports(packet: SentPacket): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt16BE(packet.sourcePort ?? 0, 0)
  bytes.writeUInt16BE(packet.destinationPort ?? 0, 2)
  return bytes
}

function ipBytes(text: string): Buffer {
  const ip = parseIp(text)
  if (ip === undefined) throw new Error(`${text} is no IP address`)
  const bytes = Buffer.alloc(ip.words.length * 4)
  ip.words.forEach((word, index) => {
    bytes.writeUInt32BE(word, index * 4)
  })
  return bytes
}

function macBytes(text: string): Buffer {
  return Buffer.from(text.replaceAll(':', ''), 'hex')
}

/** The Internet checksum (RFC 1071); each part but the last is of even length. */
function checksum(parts: readonly Buffer[]): number {
  let sum = 0
  for (const part of parts) {
    for (let at = 0; at < part.length; at += 2) sum += ((part[at] ?? 0) << 8) | (part[at + 1] ?? 0)
  }
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16)
  return ~sum & 0xffff
}

/** SCTP's checksum (RFC 9260, appendix A): CRC32c, least significant byte first on the wire. */
function crc32c(bytes: Buffer): number {
  let crc = 0xffff_ffff
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f6_3b78 : crc >>> 1
  }
  return ~crc >>> 0
}

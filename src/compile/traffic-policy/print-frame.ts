/** A packet of a question as an Ethernet frame, for the kernel to decide; undefined for one that a few fields do not make. */
import type { Ip } from '#base/ip'
import type { PolicyPacket } from './policy-packet'

const numbers = { tcp: 6, udp: 17, sctp: 132, icmp: 1, icmpv6: 58 } as const

/** Headers of IPv6 that go before a protocol: as a protocol they would be read on. */
const ipv6Headers = [0, 43, 44, 51, 59, 60]

/** Errors are about a packet that the question does not tell. */
const icmpErrors = { icmp: [3, 4, 5, 11, 12], icmpv6: [1, 2, 3, 4] } as const

export function printFrame(packet: PolicyPacket): Uint8Array | undefined {
  const { source, destination, protocol, isLaterFragment = false } = packet
  const number = typeof protocol === 'number' ? protocol : numbers[protocol]
  const isIpv6 = source.family === 'ipv6'
  if (isIpv6 && ipv6Headers.includes(number)) return undefined
  if (protocol === 'icmp' || protocol === 'icmpv6') {
    const errors: readonly number[] = icmpErrors[protocol]
    if (errors.includes(packet.icmpType ?? -1)) return undefined
  }
  const payload = isLaterFragment ? Array<number>(32).fill(0) : transportOf(packet)
  const ends = { source, destination }
  const ip = isIpv6
    ? ipv6Of(ends, { number, payload, isLaterFragment })
    : ipv4Of(ends, { number, payload, isLaterFragment })
  const macs = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]
  return Uint8Array.from([...macs, ...(isIpv6 ? [0x86, 0xdd] : [8, 0]), ...ip])
}

type Ends = { readonly source: Ip; readonly destination: Ip }
type Body = { readonly number: number; readonly payload: readonly number[]; readonly isLaterFragment: boolean }

/** The kernel does not ask for checksums here. */
function ipv4Of({ source, destination }: Ends, { number, payload, isLaterFragment }: Body): readonly number[] {
  const fragment = isLaterFragment ? [0, 185] : [0, 0]
  const length = 20 + payload.length
  return [
    0x45,
    0,
    ...word(length),
    0x12,
    0x34,
    ...fragment,
    64,
    number,
    0,
    0,
    ...bytesOf(source),
    ...bytesOf(destination),
    ...payload,
  ]
}

function ipv6Of({ source, destination }: Ends, { number, payload, isLaterFragment }: Body): readonly number[] {
  const fragment = isLaterFragment ? [number, 0, ...word(185 << 3), 0, 0, 0x12, 0x34] : []
  const next = isLaterFragment ? 44 : number
  const length = fragment.length + payload.length
  return [
    0x60,
    0,
    0,
    0,
    ...word(length),
    next,
    64,
    ...bytesOf(source),
    ...bytesOf(destination),
    ...fragment,
    ...payload,
  ]
}

/** The first packet of a connection: a SYN, an INIT, an echo request. */
function transportOf({
  protocol,
  sourcePort = 0,
  destinationPort = 0,
  icmpType = 0,
  icmpCode = 0,
}: PolicyPacket): readonly number[] {
  const ports = [...word(sourcePort), ...word(destinationPort)]
  const zeros = (count: number): readonly number[] => Array<number>(count).fill(0)
  switch (protocol) {
    case 'tcp':
      return [...ports, 0, 0, 0, 1, ...zeros(4), 0x50, 0x02, 0xff, 0xff, ...zeros(4)]
    case 'udp':
      return [...ports, ...word(16), 0, 0, ...zeros(8)]
    case 'sctp':
      return [...ports, ...zeros(8), 1, 0, ...word(20), ...zeros(16)]
    case 'icmp':
    case 'icmpv6':
      return [icmpType, icmpCode, 0, 0, 0x12, 0x34, 0, 1, ...zeros(8)]
    default:
      return zeros(24)
  }
}

function word(value: number): readonly number[] {
  return [(value >> 8) & 0xff, value & 0xff]
}

function bytesOf({ words }: Ip): readonly number[] {
  return words.flatMap((one) => [one >>> 24, (one >>> 16) & 0xff, (one >>> 8) & 0xff, one & 0xff])
}

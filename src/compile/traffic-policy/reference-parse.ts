/** What the datapath must read in a packet, told plainly: the reference that its program is tested against. */
import type { Family, Ip } from '#base/ip'
import type { EntryProtocol } from './entry'

/** What a packet says of its connection. */
export type Signal = 'opens' | 'answers' | 'acknowledges' | 'finishes' | 'resets'

export type ParsedTransport = {
  readonly protocol: EntryProtocol
  readonly sourcePort?: number
  readonly destinationPort?: number
  readonly icmpType?: number
  readonly icmpCode?: number
  readonly signals: ReadonlySet<Signal>
  /** Of an ICMP request or its answer: what pairs them. */
  readonly echo?: { readonly id: number; readonly asks: number; readonly isAnswer: boolean }
  /** Of an ICMP error: the packet it is about, as far as it can be read. */
  readonly about?: ParsedInner
}

export type ParsedInner = {
  readonly source: Ip
  readonly destination: Ip
  readonly protocol: number
  readonly sourcePort?: number
  readonly destinationPort?: number
  readonly echo?: ParsedTransport['echo']
}

export type Fragment = { readonly id: number; readonly protocol: number; readonly isFirst: boolean }

export type ParsedPacket =
  | { readonly kind: 'link' | 'malformed' | 'unsupported' }
  | {
      readonly kind: 'ip'
      readonly source: Ip
      readonly destination: Ip
      readonly transport?: ParsedTransport
      readonly fragment?: Fragment
    }

type Bytes = DataView
const malformed = { kind: 'malformed' } as const
const unsupported = { kind: 'unsupported' } as const

const linkTypes = new Set([0x0806, 0x8809, 0x888e, 0x88cc])
const vlanTypes = new Set([0x8100, 0x88a8, 0x9100])

export type ParseSettings = {
  readonly linkLayer: 'ethernet' | 'ip'
  /** Whether the packet goes towards the interface: routers advertise that way. */
  readonly isIngress: boolean
  /** The kernel will make several packets of it: lengths of zero are then "too long to tell". */
  readonly isSegmented?: boolean
}

export function parsePacket(frame: Uint8Array, settings: ParseSettings): ParsedPacket {
  const bytes = new DataView(frame.buffer, frame.byteOffset, frame.byteLength)
  if (settings.linkLayer === 'ip') {
    const version = bytes.byteLength === 0 ? 0 : bytes.getUint8(0) >> 4
    if (bytes.byteLength === 0) return malformed
    return version === 4 || version === 6 ? parseIp(bytes, version, settings) : unsupported
  }
  if (bytes.byteLength < 14) return malformed
  let at = 12
  for (let tags = 0; ; tags++) {
    if (bytes.byteLength < at + 2) return malformed
    const type = bytes.getUint16(at)
    if (linkTypes.has(type)) return { kind: 'link' }
    if (type === 0x0800) return parseIp(rest(bytes, at + 2), 4, settings)
    if (type === 0x86dd) return parseIp(rest(bytes, at + 2), 6, settings)
    if (!vlanTypes.has(type) || tags === 2) return unsupported
    at += 4
  }
}

function parseIp(bytes: Bytes, version: 4 | 6, settings: ParseSettings): ParsedPacket {
  return version === 4 ? parseIpv4(bytes, settings) : parseIpv6(bytes, settings)
}

function parseIpv4(bytes: Bytes, settings: ParseSettings): ParsedPacket {
  if (bytes.byteLength < 20 || bytes.getUint8(0) >> 4 !== 4) return malformed
  const headerLength = (bytes.getUint8(0) & 15) * 4
  const stated = bytes.getUint16(2)
  const total = stated === 0 && settings.isSegmented === true ? bytes.byteLength : stated
  if (headerLength < 20 || total < headerLength || total > bytes.byteLength) return malformed
  const protocol = bytes.getUint8(9)
  const word = bytes.getUint16(6)
  const ends = { kind: 'ip', source: ipAt(bytes, 12, 'ipv4'), destination: ipAt(bytes, 16, 'ipv4') } as const
  const id = bytes.getUint16(4)
  if ((word & 0x1fff) !== 0) return { ...ends, fragment: { id, protocol, isFirst: false } }
  const payload = rest(bytes, headerLength, total - headerLength)
  const isFirst = (word & 0x2000) !== 0
  const place = { family: 'ipv4', hopLimit: 0, settings, isFragment: isFirst, hasFragmentHeader: false } as const
  const packet = withTransport(ends, parseTransport(payload, protocol, place))
  return packet.kind === 'ip' && isFirst ? { ...packet, fragment: { id, protocol, isFirst } } : packet
}

const extensionHeaders = new Set([0, 43, 44, 51, 60])
const transportProtocols = new Set([6, 17, 58, 132])

function parseIpv6(bytes: Bytes, settings: ParseSettings): ParsedPacket {
  if (bytes.byteLength < 40 || bytes.getUint8(0) >> 4 !== 6) return malformed
  const stated = bytes.getUint16(4)
  const length = stated === 0 && settings.isSegmented === true ? bytes.byteLength - 40 : stated
  if (length > bytes.byteLength - 40) return malformed
  const ends = { kind: 'ip', source: ipAt(bytes, 8, 'ipv6'), destination: ipAt(bytes, 24, 'ipv6') } as const
  const chain = walkChain(rest(bytes, 40, length), bytes.getUint8(6))
  if (typeof chain === 'string') return { kind: chain }
  if (chain.fragment?.isFirst === false) return { ...ends, fragment: chain.fragment }
  const { fragment, hasFragmentHeader } = chain
  const place = {
    family: 'ipv6',
    hopLimit: bytes.getUint8(7),
    settings,
    isFragment: fragment !== undefined,
    hasFragmentHeader,
  } as const
  const packet = withTransport(ends, parseTransport(chain.payload, chain.protocol, place))
  return packet.kind === 'ip' && fragment !== undefined ? { ...packet, fragment } : packet
}

type Chain = {
  readonly payload: Bytes
  readonly protocol: number
  readonly fragment?: Fragment
  readonly hasFragmentHeader: boolean
}

/** At most six headers, hop-by-hop options only as the first, one fragment header. */
function walkChain(payload: Bytes, first: number): Chain | 'malformed' | 'unsupported' {
  let bytes = payload
  let protocol = first
  let fragment: Fragment | undefined
  let hasFragmentHeader = false
  for (let count = 0; !transportProtocols.has(protocol); count++) {
    if (!extensionHeaders.has(protocol) || count === 6) return 'unsupported'
    if ((protocol === 0 && count > 0) || bytes.byteLength < 8) return 'malformed'
    const next = bytes.getUint8(0)
    let length = 8
    if (protocol === 44) {
      if (hasFragmentHeader) return 'malformed'
      hasFragmentHeader = true
      const word = bytes.getUint16(2)
      const id = bytes.getUint32(4)
      const later = { id, protocol: next, isFirst: false }
      if (word >> 3 !== 0) return { payload: bytes, protocol: next, fragment: later, hasFragmentHeader }
      if ((word & 1) !== 0) fragment = { id, protocol: next, isFirst: true }
    } else length = protocol === 51 ? (bytes.getUint8(1) + 2) * 4 : (bytes.getUint8(1) + 1) * 8
    if (length > bytes.byteLength) return 'malformed'
    bytes = rest(bytes, length)
    protocol = next
  }
  return { payload: bytes, protocol, hasFragmentHeader, ...(fragment === undefined ? {} : { fragment }) }
}

type Ends = { readonly kind: 'ip'; readonly source: Ip; readonly destination: Ip }
type TransportParse = ParsedTransport | 'malformed' | 'unsupported' | 'link'

function withTransport(ends: Ends, transport: TransportParse): ParsedPacket {
  if (typeof transport === 'string') return { kind: transport }
  const { about } = transport
  // An error goes to the one whose packet it is about; otherwise it is about nothing we know.
  if (about === undefined || sameIp(about.source, ends.destination)) return { ...ends, transport }
  const { about: _, ...plain } = transport
  return { ...ends, transport: plain }
}

type TransportPlace = {
  readonly family: Family
  readonly hopLimit: number
  readonly settings: ParseSettings
  /** The first of several. */
  readonly isFragment: boolean
  readonly hasFragmentHeader: boolean
}

function parseTransport(bytes: Bytes, protocol: number, place: TransportPlace): TransportParse {
  if (protocol === 6) return parseTcp(bytes)
  if (protocol === 17) return parseUdp(bytes, place)
  if (protocol === 132) return parseSctp(bytes, place)
  if (protocol === 1 && place.family === 'ipv4') return parseIcmp(bytes)
  if (protocol === 58 && place.family === 'ipv6') return parseIcmpv6(bytes, place)
  return 'unsupported'
}

function portsOf(bytes: Bytes, protocol: 'tcp' | 'udp' | 'sctp') {
  return { protocol, sourcePort: bytes.getUint16(0), destinationPort: bytes.getUint16(2) }
}

function parseUdp(bytes: Bytes, { isFragment, settings }: TransportPlace): TransportParse {
  if (bytes.byteLength < 8) return 'malformed'
  const stated = bytes.getUint16(4)
  const isTold = stated !== 0 || settings.isSegmented !== true
  if (isTold && (stated < 8 || (stated > bytes.byteLength && !isFragment))) return 'malformed'
  return { ...portsOf(bytes, 'udp'), signals: new Set() }
}

const tcpSignals: Readonly<Record<string, readonly Signal[]>> = {
  S: ['opens'],
  SA: ['answers', 'acknowledges'],
  A: ['acknowledges'],
  FA: ['finishes', 'acknowledges'],
  R: ['resets'],
  RA: ['resets', 'acknowledges'],
}

function parseTcp(bytes: Bytes): TransportParse {
  if (bytes.byteLength < 20) return 'malformed'
  const headerLength = (bytes.getUint8(12) >> 4) * 4
  if (headerLength < 20 || headerLength > bytes.byteLength) return 'malformed'
  const flags = bytes.getUint8(13)
  const letters = ['F', 'S', 'R', '', 'A'].filter((_, bit) => (flags & (1 << bit)) !== 0).join('')
  const signals = tcpSignals[letters]
  return signals === undefined ? 'malformed' : { ...portsOf(bytes, 'tcp'), signals: new Set(signals) }
}

function parseSctp(bytes: Bytes, { isFragment }: TransportPlace): TransportParse {
  if (bytes.byteLength < 16) return 'malformed'
  const chunk = bytes.getUint16(14)
  if (chunk < 4 || (12 + chunk > bytes.byteLength && !isFragment)) return 'malformed'
  const signals: Readonly<Record<number, Signal>> = { 1: 'opens', 2: 'answers', 6: 'resets', 14: 'resets' }
  const signal = signals[bytes.getUint8(12)]
  return { ...portsOf(bytes, 'sctp'), signals: new Set(signal === undefined ? [] : [signal]) }
}

function parseIcmp(bytes: Bytes): TransportParse {
  if (bytes.byteLength < 8) return 'malformed'
  const type = bytes.getUint8(0)
  const about = [3, 4, 11, 12].includes(type) ? parseInner(rest(bytes, 8), 4) : undefined
  return icmpOf(bytes, 'icmp', about)
}

function parseIcmpv6(bytes: Bytes, { hopLimit, settings, hasFragmentHeader }: TransportPlace): TransportParse {
  if (bytes.byteLength < 8) return 'malformed'
  const type = bytes.getUint8(0)
  const router = settings.isIngress ? 134 : 133
  const isNeighbourly = [135, 136, router].includes(type) && hopLimit === 255 && bytes.getUint8(1) === 0
  const isListening = [130, 131, 132, 143].includes(type) && hopLimit === 1
  if ((isNeighbourly || isListening) && !hasFragmentHeader) return 'link'
  const about = type >= 1 && type <= 4 ? parseInner(rest(bytes, 8), 6) : undefined
  return icmpOf(bytes, 'icmpv6', about)
}

function icmpOf(bytes: Bytes, protocol: 'icmp' | 'icmpv6', about: ParsedInner | undefined): ParsedTransport {
  const echo = echoOf(bytes, protocol)
  return {
    protocol,
    icmpType: bytes.getUint8(0),
    icmpCode: bytes.getUint8(1),
    signals: new Set(),
    ...(echo === undefined ? {} : { echo }),
    ...(about === undefined ? {} : { about }),
  }
}

function echoOf(bytes: Bytes, protocol: 'icmp' | 'icmpv6'): ParsedTransport['echo'] {
  const pairs = protocol === 'icmp' ? [[8, 0] as const, [13, 14] as const] : [[128, 129] as const]
  const type = bytes.getUint8(0)
  const pair = pairs.find((one) => one.some((each) => each === type))
  return pair === undefined ? undefined : { id: bytes.getUint16(4), asks: pair[0], isAnswer: type === pair[1] }
}

/** Not a later fragment, with eight bytes of its protocol at least. */
function parseInner(bytes: Bytes, version: 4 | 6): ParsedInner | undefined {
  const fixed = version === 4 ? 20 : 40
  if (bytes.byteLength < fixed + 8 || bytes.getUint8(0) >> 4 !== version) return undefined
  const family = version === 4 ? 'ipv4' : 'ipv6'
  const inner = version === 4 ? innerOfIpv4(bytes) : innerOfIpv6(rest(bytes, 40), bytes.getUint8(6))
  if (inner === undefined || inner.payload.byteLength < 8) return undefined
  const { payload, protocol } = inner
  const ends = {
    source: ipAt(bytes, version === 4 ? 12 : 8, family),
    destination: ipAt(bytes, version === 4 ? 16 : 24, family),
    protocol,
  }
  if ([6, 17, 132].includes(protocol)) {
    return { ...ends, sourcePort: payload.getUint16(0), destinationPort: payload.getUint16(2) }
  }
  if (protocol !== (version === 4 ? 1 : 58)) return undefined
  const echo = echoOf(payload, version === 4 ? 'icmp' : 'icmpv6')
  return echo === undefined ? undefined : { ...ends, echo }
}

type InnerPayload = { readonly payload: Bytes; readonly protocol: number }

function innerOfIpv4(bytes: Bytes): InnerPayload | undefined {
  const headerLength = (bytes.getUint8(0) & 15) * 4
  const isLater = (bytes.getUint16(6) & 0x1fff) !== 0
  if (headerLength < 20 || headerLength > bytes.byteLength || isLater) return undefined
  return { payload: rest(bytes, headerLength), protocol: bytes.getUint8(9) }
}

/** At most six extension headers, in any order. */
function innerOfIpv6(bytes: Bytes, protocol: number, count = 0): InnerPayload | undefined {
  if (!extensionHeaders.has(protocol)) return { payload: bytes, protocol }
  if (count === 6 || bytes.byteLength < 8) return undefined
  if (protocol === 44 && bytes.getUint16(2) >> 3 !== 0) return undefined
  const units = bytes.getUint8(1)
  const length = protocol === 44 ? 8 : protocol === 51 ? (units + 2) * 4 : (units + 1) * 8
  return length > bytes.byteLength ? undefined : innerOfIpv6(rest(bytes, length), bytes.getUint8(0), count + 1)
}

function ipAt(bytes: Bytes, at: number, family: Family): Ip {
  const count = family === 'ipv4' ? 1 : 4
  return { family, words: Array.from({ length: count }, (_, index) => bytes.getUint32(at + 4 * index)) }
}

function sameIp(one: Ip, other: Ip): boolean {
  return one.words.length === other.words.length && one.words.every((word, index) => word === other.words[index])
}

function rest(bytes: Bytes, at: number, length = bytes.byteLength - at): Bytes {
  return new DataView(bytes.buffer, bytes.byteOffset + at, length)
}

/** The packet on its way, and how programs rewrite it: addresses, ports and the checksums over them. */
import { type Ip, printEndpoint, printIp } from '#base/ip'
import type { HeaderChange, WalkInner, WalkPacket, WalkProtocol } from '#model/walk'

/** What a packet is wrapped in; `identity` is what travels in a tunnel's header. */
export type Wrapping = {
  readonly kind: 'VXLAN' | 'Geneve' | 'IPIP' | 'WireGuard' | 'ESP'
  readonly source: Ip
  readonly destination: Ip
  readonly port?: number
  readonly identity?: number
}

/** Where a client thinks it sent to: carried along where the backend answers it directly. */
export type DsrInfo = { readonly ip: Ip; readonly port: number; readonly carrier: 'option' | 'geneve' | 'ipip' }

export type FlowPacket = {
  readonly protocol: WalkProtocol
  readonly source: Ip
  readonly destination: Ip
  /** Of an echo's request the identifier, and of its answer 0. */
  readonly sourcePort: number
  /** The other way round. */
  readonly port: number
  readonly icmpType?: number
  readonly icmpCode?: number
  readonly mark?: number
  /** Outermost last. */
  readonly wrappings: readonly Wrapping[]
  readonly dsr?: DsrInfo
  /** Of an error of ICMP. */
  readonly about?: WalkInner
}

export function isIcmp(protocol: WalkProtocol): boolean {
  return protocol === 'ICMP' || protocol === 'ICMPv6'
}

export const numbers: Readonly<Record<WalkProtocol, number>> = { TCP: 6, UDP: 17, SCTP: 132, ICMP: 1, ICMPv6: 58 }

/** Errors of ICMP and ICMPv6 about another packet. */
export function isError({ protocol, icmpType }: FlowPacket): boolean {
  if (!isIcmp(protocol)) return false
  return protocol === 'ICMP' ? [3, 11, 12].includes(icmpType ?? 8) : (icmpType ?? 128) < 128
}

/** That fragmentation is needed, where no code of type 3 is told. */
export function icmpCodeOf({ protocol, icmpType, icmpCode }: FlowPacket): number {
  return icmpCode ?? (protocol === 'ICMP' && icmpType === 3 ? 4 : 0)
}

export function reversePacket({ source, destination, sourcePort, port, protocol, icmpType }: FlowPacket): FlowPacket {
  const answer = icmpType === undefined ? {} : { icmpType: answerType(icmpType) }
  return {
    protocol,
    source: destination,
    destination: source,
    sourcePort: port,
    port: sourcePort,
    wrappings: [],
    ...answer,
  }
}

/** Of ICMP echoes alone are. */
export function isAnswered({ icmpType }: FlowPacket): boolean {
  return icmpType === undefined || [0, 8, 128, 129].includes(icmpType)
}

function answerType(type: number): number {
  return type === 8 ? 0 : type === 128 ? 129 : type
}

export function addressText({ protocol }: Pick<FlowPacket, 'protocol'>, ip: Ip, port: number): string {
  return isIcmp(protocol) ? printIp(ip) : printEndpoint(printIp(ip), port)
}

/** `10.244.1.10:43210`; of ICMP the address alone. */
export function sourceText(packet: FlowPacket): string {
  return addressText(packet, packet.source, packet.sourcePort)
}

export function destinationText(packet: FlowPacket): string {
  return addressText(packet, packet.destination, packet.port)
}

export function walkPacket(packet: FlowPacket): WalkPacket {
  const { sourcePort, port, mark, wrappings, dsr } = packet
  const inner = wrappings[0]?.identity
  const outer = wrappings.map(({ kind, source, destination, port: outerPort }) => {
    const to = outerPort === undefined ? printIp(destination) : printEndpoint(printIp(destination), outerPort)
    return `${kind} ${printIp(source)} → ${to}`
  })
  const option = dsr === undefined ? [] : [`${dsrNames[dsr.carrier]} ${printEndpoint(printIp(dsr.ip), dsr.port)}`]
  const carried = [...option, ...outer]
  return {
    protocol: icmpText(packet, sourcePort + port),
    source: sourceText(packet),
    destination: destinationText(packet),
    ...(packet.about !== undefined && { about: innerText(packet.about) }),
    ...(mark !== undefined && { mark: `0x${mark.toString(16)}` }),
    ...(inner !== undefined && { identity: inner }),
    ...(carried.length > 0 && { wrappedIn: carried.join(' in ') }),
  }
}

/** Echoes alone have an identifier. */
function icmpText(packet: FlowPacket, id: number): string {
  const { protocol, icmpType, icmpCode } = packet
  if (icmpType === undefined) return protocol
  const what = `${protocol} type ${icmpType}${icmpCode === undefined ? '' : ` code ${icmpCode}`}`
  return isAnswered(packet) ? `${what} id ${id}` : what
}

export function innerText({ protocol, source, sourcePort, destination, port }: WalkInner): string {
  const what = isIcmp(protocol) ? `${protocol} id ${sourcePort}` : protocol
  return `${what} ${addressText({ protocol }, source, sourcePort)} → ${addressText({ protocol }, destination, port)}`
}

const dsrNames = { option: 'IP option', geneve: 'Geneve option', ipip: 'IPIP to' } as const

/** Where a program runs decides which helpers rewrite. */
export type RewritePlace = 'tc' | 'xdp' | 'cgroup'

export function rewritePlace({ hook }: { readonly hook: string }): RewritePlace {
  return hook === 'xdp' ? 'xdp' : 'tc'
}

export type Rewrite = {
  readonly packet: FlowPacket
  readonly changes: readonly HeaderChange[]
}

export type NewEnd = { readonly ip: Ip; readonly port: number }

export function rewriteDestination(packet: FlowPacket, to: NewEnd, place: RewritePlace): Rewrite {
  const next = { ...packet, destination: to.ip, port: to.port }
  return { packet: next, changes: changesBetween(packet, next, { end: 'destination', place }) }
}

export function rewriteSource(packet: FlowPacket, to: NewEnd, place: RewritePlace): Rewrite {
  const next = { ...packet, source: to.ip, sourcePort: to.port }
  return { packet: next, changes: changesBetween(packet, next, { end: 'source', place }) }
}

type Edit = { readonly end: 'source' | 'destination'; readonly place: RewritePlace }

const helpers: Readonly<Record<RewritePlace, Readonly<Record<'store' | 'ip' | 'l4', string>>>> = {
  tc: { store: 'bpf_skb_store_bytes', ip: 'bpf_l3_csum_replace', l4: 'bpf_l4_csum_replace' },
  xdp: { store: 'written to the frame', ip: 'bpf_csum_diff', l4: 'bpf_csum_diff' },
  cgroup: { store: 'written to the socket address', ip: '', l4: '' },
}

function changesBetween(before: FlowPacket, after: FlowPacket, { end, place }: Edit): readonly HeaderChange[] {
  const by = helpers[place]
  const [fromIp, toIp] = end === 'source' ? [before.source, after.source] : [before.destination, after.destination]
  const ofPort = end === 'source' ? 'sourcePort' : 'port'
  const [fromPort, toPort] = [before[ofPort], after[ofPort]]
  const isMoved = printIp(fromIp) !== printIp(toIp)
  if (!isMoved && fromPort === toPort) return []
  const changes: HeaderChange[] = []
  if (isMoved) changes.push({ field: `${end} address`, before: printIp(fromIp), after: printIp(toIp), by: by.store })
  if (fromPort !== toPort) {
    const field = isIcmp(before.protocol) ? 'ICMP identifier' : `${end} port`
    changes.push({ field, before: String(fromPort), after: String(toPort), by: by.store })
  }
  if (place === 'cgroup') return changes
  return [...changes, ...checksums({ before, fromIp, toIp, isMoved, fromPort, toPort }, by)]
}

type Sums = {
  readonly before: FlowPacket
  readonly fromIp: Ip
  readonly toIp: Ip
  readonly isMoved: boolean
  readonly fromPort: number
  readonly toPort: number
}

/** Each is adjusted by what changed under it (RFC 1624); ICMP has no pseudo header, and SCTP's CRC covers no address. */
function checksums(
  { before: { protocol }, fromIp, toIp, isMoved, fromPort, toPort }: Sums,
  by: Readonly<Record<'ip' | 'l4', string>>,
): readonly HeaderChange[] {
  const ofAddress = isMoved ? difference(wordsOf(fromIp), wordsOf(toIp)) : 0
  const ofPort = difference([fromPort], [toPort])
  const adjusted = (field: string, by: string, sum: number): HeaderChange => ({
    field,
    before: 'sum',
    after: `sum ${sum === 0 ? '+ 0' : `+ 0x${sum.toString(16).padStart(4, '0')}`}`,
    by,
  })
  const changes: HeaderChange[] = []
  if (isMoved && fromIp.family === 'ipv4') changes.push(adjusted('IPv4 checksum', by.ip, ofAddress))
  if (protocol === 'SCTP') return changes
  const sum = protocol === 'ICMP' ? ofPort : fold(ofAddress + ofPort)
  if (protocol !== 'ICMP' || fromPort !== toPort) changes.push(adjusted(`${protocol} checksum`, by.l4, sum))
  return changes
}

function wordsOf({ words }: Ip): readonly number[] {
  return words.flatMap((word) => [word >>> 16, word & 0xffff])
}

/** What a checksum, the complement of a sum, gains when these words take the place of those. */
function difference(from: readonly number[], to: readonly number[]): number {
  return fold(from.reduce((sum, word) => sum + word, 0) + to.reduce((sum, word) => sum + (~word & 0xffff), 0))
}

function fold(sum: number): number {
  let folded = sum
  while (folded > 0xffff) folded = (folded & 0xffff) + Math.floor(folded / 0x10000)
  return folded === 0xffff ? 0 : folded
}

/** Connection tracking, NAT, affinity and reverse sockets of the nodes: what is given, and what a walk writes. Mirrors bpf/lib/conntrack.h, bpf/lib/nat.h and their dumps, Cilium 1.16 to 1.19. */
import { type Family, type Ip, printEndpoint, printIp } from '#base/ip'
import { compareText } from '#base/text'
import { printHex } from '#compile/cilium/struct-bytes'
import { type CiliumVersion, isAtLeast } from '#model/cilium-version'
import type { MapLookup, StateRow } from '#model/walk'
import { type FlowPacket, isError, isIcmp, type NewEnd } from './flow-packet'
import { ctKeyBytes, natKeyBytes } from './state-bytes'
import {
  type AffinityRow,
  type CtRow,
  ctFlags,
  type Direction,
  type NatRow,
  type SocketRow,
  type StateTuple,
} from './state-rows'

/** One node's tables; keys are what tells rows apart. */
export type NodeState = {
  readonly ct: Map<string, CtRow>
  readonly nat: Map<string, NatRow>
  readonly affinity: Map<string, AffinityRow>
  readonly sockets: Map<string, SocketRow>
  /** What the kernel's own masquerading remembers: of an answer's addresses, where it goes back to. */
  readonly kernel: Map<string, NewEnd>
}

export type CiliumState = {
  readonly version: CiliumVersion
  readonly of: (node: string) => NodeState
  readonly rows: () => readonly StateRow[]
  /** The same rows, apart from what is written afterwards. */
  readonly copy: () => CiliumState
}

export function newState(version: CiliumVersion, nodes = new Map<string, NodeState>()): CiliumState {
  return {
    version,
    of: (node) => {
      const there = nodes.get(node)
      if (there !== undefined) return there
      const empty: NodeState = {
        ct: new Map(),
        nat: new Map(),
        affinity: new Map(),
        sockets: new Map(),
        kernel: new Map(),
      }
      nodes.set(node, empty)
      return empty
    },
    copy: () => newState(version, new Map([...nodes].map(([name, own]) => [name, copyNode(own)]))),
    rows: () =>
      [...nodes].sort(([a], [b]) => compareText(a, b)).flatMap(([node, state]) => rowsOf(node, state, version)),
  }
}

function copyNode({ ct, nat, affinity, sockets, kernel }: NodeState): NodeState {
  return {
    ct: new Map(ct),
    nat: new Map(nat),
    affinity: new Map(affinity),
    sockets: new Map(sockets),
    kernel: new Map(kernel),
  }
}

function rowsOf(
  node: string,
  { ct, nat, affinity, sockets, kernel }: NodeState,
  version: CiliumVersion,
): readonly StateRow[] {
  const row = (table: string, text: string, key?: Uint8Array): StateRow => ({
    node,
    table,
    row: text,
    ...(key !== undefined && { key: printHex(key) }),
    isNew: false,
  })
  return [
    ...[...ct.values()].map((one) => row(ctTable(one), ctText(one), ctKeyBytes(one))),
    ...[...nat.values()].map((one) => row(natTable(one.source.family), natText(one, version), natKeyBytes(one))),
    ...[...affinity.values()].map((one) => row(affinityTable(one.client.family), affinityText(one))),
    ...[...sockets.values()].map((one) => row(socketTable(one.family), socketText(one))),
    ...[...kernel].map(([key, { ip, port }]) =>
      row('nf_conntrack', `${key} back to ${printEndpoint(printIp(ip), port)}`),
    ),
  ]
}

export function ctTable({
  protocol,
  source,
  isRelated = false,
}: StateTuple & { readonly isRelated?: boolean }): string {
  const digit = source.family === 'ipv4' ? 4 : 6
  return protocol === 'TCP' && !isRelated ? `cilium_ct${digit}_global` : `cilium_ct_any${digit}_global`
}

export function natTable(family: Family): string {
  return `cilium_snat_${family === 'ipv4' ? 'v4' : 'v6'}_external`
}

export function affinityTable(family: Family): string {
  return `cilium_lb${family === 'ipv4' ? 4 : 6}_affinity`
}

export function socketTable(family: Family): string {
  return `cilium_lb${family === 'ipv4' ? 4 : 6}_reverse_sk`
}

const flagNames: readonly (readonly [number, string])[] = [
  [ctFlags.rxClosing, 'RxClosing'],
  [ctFlags.txClosing, 'TxClosing'],
  [ctFlags.loopback, 'LBLoopback'],
  [ctFlags.seenNonSyn, 'SeenNonSyn'],
  [ctFlags.nodePort, 'NodePort'],
  [ctFlags.proxyRedirect, 'ProxyRedirect'],
  [ctFlags.dsr, 'DSR'],
  [ctFlags.fromL7, 'FromL7LB'],
  [ctFlags.fromTunnel, 'FromTunnel'],
]

/** `TCP OUT 10.244.1.10:43210 -> 10.244.1.20:8080 service`. */
export function tupleText(tuple: StateTuple & { readonly direction: Direction }): string {
  const { protocol, direction, source, sourcePort, destination, port } = tuple
  return `${protocol} ${direction} ${printEndpoint(printIp(source), sourcePort)} -> ${printEndpoint(printIp(destination), port)}`
}

function ctKey(row: CtRow): string {
  return `${tupleText(row)}${row.isRelated ? ' related' : ''}${row.isService ? ' service' : ''}`
}

/** Without lifetime and counters, which time and traffic make. */
function ctText(row: CtRow): string {
  const names = flagNames.filter(([flag]) => (row.flags & flag) !== 0).map(([, name]) => `${name} `)
  const parts = [
    ctKey(row),
    `Flags=0x${row.flags.toString(16).padStart(4, '0')} [ ${names.join('')}]`,
    `RevNAT=${row.revNat}`,
    `SourceSecurityID=${row.sourceIdentity}`,
    ...(row.backendId === undefined ? [] : [`BackendID=${row.backendId}`]),
    ...(row.nat === undefined ? [] : [`NatAddr=${printEndpoint(printIp(row.nat.ip), row.nat.port)}`]),
  ]
  return parts.join(' ')
}

function natText(row: NatRow, version: CiliumVersion): string {
  const need = isAtLeast(version, '1.17') ? 'NeedsCT' : 'HostLocal'
  const what = row.direction === 'OUT' ? 'XLATE_SRC' : 'XLATE_DST'
  return `${tupleText(row)} ${what} ${printEndpoint(printIp(row.to.ip), row.to.port)} ${need}=${row.needsCt ? 1 : 0}`
}

function affinityText({ client, isSocket, revNat, backendId }: AffinityRow): string {
  return `${isSocket ? 'netns of ' : ''}${printIp(client)} RevNAT=${revNat} BackendID=${backendId}`
}

function socketText({ backend, frontend, revNat }: SocketRow): string {
  return `${backend} -> ${frontend} RevNAT=${revNat}`
}

export type CtResult = 'NEW' | 'ESTABLISHED' | 'REPLY' | 'RELATED'

export type CtAnswer = { readonly result: CtResult; readonly row?: CtRow; readonly lookups: readonly MapLookup[] }

/** The reverse tuple first, then its own; a SYN on a row that closes begins anew. */
export function lookUpCt({ ct }: NodeState, packet: FlowPacket, direction: 'egress' | 'ingress'): CtAnswer {
  const isRelated = isError(packet)
  const own: Direction = direction === 'egress' ? 'OUT' : 'IN'
  const other: Direction = direction === 'egress' ? 'IN' : 'OUT'
  const forward = tupleOf(packet, isRelated)
  const backward = swapTuple(forward)
  // The twin of a connection has no ports, and its direction's flag.
  const related = { isRelated, isService: false }
  const reverse = ct.get(ctKey(blankRow(backward, other, related)))
  const asked = [lookupOf({ ...backward, direction: other }, related, reverse)]
  if (reverse !== undefined) return { result: isRelated ? 'RELATED' : 'REPLY', row: reverse, lookups: asked }
  const row = ct.get(ctKey(blankRow(forward, own, related)))
  const lookups = [...asked, lookupOf({ ...forward, direction: own }, related, row)]
  if (row === undefined || isClosing(row)) return { result: 'NEW', lookups }
  return { result: isRelated ? 'RELATED' : 'ESTABLISHED', row, lookups }
}

/** Whether a packet on its way out answers a connection that came in, or is an error about one (ct_is_reply4). */
export function isReply({ ct }: NodeState, packet: FlowPacket): boolean {
  const isRelated = isError(packet)
  const came = swapTuple(tupleOf(packet, isRelated))
  return ct.has(ctKey(blankRow(came, 'IN', { isRelated, isService: false })))
}

function isClosing({ flags }: CtRow): boolean {
  return (flags & (ctFlags.rxClosing | ctFlags.txClosing)) !== 0
}

function tupleOf({ protocol, source, sourcePort, destination, port }: FlowPacket, isBare: boolean): StateTuple {
  return { protocol, source, destination, sourcePort: isBare ? 0 : sourcePort, port: isBare ? 0 : port }
}

function swapTuple({ protocol, source, sourcePort, destination, port }: StateTuple): StateTuple {
  return { protocol, source: destination, sourcePort: port, destination: source, port: sourcePort }
}

type Kind = Pick<CtRow, 'isRelated' | 'isService'>

function blankRow(tuple: StateTuple, direction: Direction, kind: Kind): CtRow {
  return { ...tuple, ...kind, direction, flags: 0, revNat: 0, sourceIdentity: 0 }
}

function lookupOf(
  tuple: StateTuple & { readonly direction: Direction },
  kind: Kind,
  row: CtRow | undefined,
): MapLookup {
  const key = `${tupleText(tuple)}${kind.isRelated ? ' related' : ''}${kind.isService ? ' service' : ''}`
  const map = ctTable({ ...tuple, isRelated: kind.isRelated })
  return row === undefined ? { map, key } : { map, key, value: ctText(row).slice(ctKey(row).length + 1) }
}

/** Services are asked for forward alone. */
export function lookUpService({ ct }: NodeState, packet: FlowPacket): { row?: CtRow; lookup: MapLookup } {
  const kind = { isRelated: false, isService: true }
  const tuple = tupleOf(packet, false)
  const row = ct.get(ctKey(blankRow(tuple, 'OUT', kind)))
  const lookup = lookupOf({ ...tuple, direction: 'OUT' }, kind, row)
  return row === undefined ? { lookup } : { row, lookup }
}

export type NewCt = {
  readonly direction: Direction
  readonly isService?: boolean
  readonly flags?: number
  readonly revNat?: number
  readonly sourceIdentity: number
  readonly backendId?: number
  readonly nat?: NewEnd
}

/** Its ICMP twin stands beside it, so that errors about the connection find it. */
export function createCt({ ct }: NodeState, packet: FlowPacket, made: NewCt): CtRow {
  const { isService = false, flags = 0, revNat = 0, ...rest } = made
  const isRelated = isError(packet)
  const row: CtRow = { ...tupleOf(packet, isRelated), isService, isRelated, flags, revNat, ...rest }
  ct.set(ctKey(row), row)
  if (!isService && !isIcmp(packet.protocol)) {
    const protocol = packet.source.family === 'ipv4' ? 'ICMP' : 'ICMPv6'
    const twin: CtRow = { ...row, protocol, sourcePort: 0, port: 0, isRelated: true }
    ct.set(ctKey(twin), twin)
  }
  return row
}

export function putCt({ ct }: NodeState, row: CtRow): void {
  ct.set(ctKey(row), row)
}

export function natKey(row: StateTuple & { readonly direction: Direction }): string {
  return tupleText(row)
}

export function putNat({ nat }: NodeState, row: NatRow): void {
  nat.set(natKey(row), row)
}

export type NatFound = { readonly row?: NatRow; readonly lookup: MapLookup }

/** A translated connection's row, by the packet as it is. */
export function lookUpNat({ nat }: NodeState, packet: FlowPacket, direction: Direction): NatFound {
  const tuple = { ...tupleOf(packet, false), direction }
  const row = nat.get(natKey(tuple))
  const map = natTable(packet.source.family)
  const key = natKey(tuple)
  if (row === undefined) return { lookup: { map, key } }
  const what = direction === 'OUT' ? 'XLATE_SRC' : 'XLATE_DST'
  return { row, lookup: { map, key, value: `${what} ${printEndpoint(printIp(row.to.ip), row.to.port)}` } }
}

export function affinityKey(client: Ip, revNat: number, isSocket: boolean): string {
  return `${isSocket ? 'netns ' : ''}${printIp(client)} ${revNat}`
}

/** An OUT row that a node port left for this connection, as seen from its backend. */
export function nodePortRow({ ct }: NodeState, packet: FlowPacket): CtRow | undefined {
  const row = ct.get(ctKey(blankRow(tupleOf(packet, false), 'OUT', { isRelated: false, isService: false })))
  return row !== undefined && (row.flags & (ctFlags.nodePort | ctFlags.dsr)) !== 0 ? row : undefined
}

export function ctSentence({ result }: CtAnswer): string {
  switch (result) {
    case 'NEW':
      return 'neither direction of the connection is known'
    case 'ESTABLISHED':
      return 'the connection is known; policy is asked all the same, so that a change cuts it'
    case 'REPLY':
      return 'it answers a known connection: policy is not asked'
    case 'RELATED':
      return 'it is an error about a known connection: policy is not asked'
    default:
      return result satisfies never
  }
}

/** `tcp 8.8.8.8:443 -> 192.168.1.10:43210`, of the answer. */
export function kernelKey({ protocol, source, sourcePort, destination, port }: FlowPacket): string {
  return `${protocol.toLowerCase()} ${printEndpoint(printIp(source), sourcePort)} -> ${printEndpoint(printIp(destination), port)}`
}

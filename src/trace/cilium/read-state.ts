/** Rows of connection tracking and NAT as `cilium-dbg bpf ct|nat list` prints them, as text or JSON, or as a walk left them. Mirrors pkg/maps/ctmap, pkg/maps/nat and their dumps, Cilium 1.16 to 1.19. */

import type { Finding } from '#base/finding'
import { type Ip, parseEndpoint, parseIp } from '#base/ip'
import { countOf } from '#base/text'
import type { RawRow } from '#compile/cilium/decode-raw'
import { parseRawJson, parseRawText } from '#compile/cilium/raw-rows'
import type { WalkProtocol } from '#model/walk'
import { pathFinding } from './findings'
import { readCtBytes, readNatBytes, stateMapOf } from './state-bytes'
import type { CtRow, NatRow } from './state-rows'
import { affinityKey, type CiliumState, type NodeState, putCt, putNat } from './state-tables'

export type StateText = { readonly node?: string; readonly file: string; readonly text: string }

/** Rows that tell no node are those of `usual`. */
export function readState(state: CiliumState, texts: readonly StateText[], usual: string): readonly Finding[] {
  return texts.flatMap(({ node, file, text }) =>
    readText(state, { node: node ?? usual, isTold: node !== undefined, file, text }),
  )
}

type Asked = { readonly node: string; readonly isTold: boolean; readonly file: string; readonly text: string }

function readText(state: CiliumState, { node, isTold, file, text }: Asked): readonly Finding[] {
  const findings: Finding[] = []
  const parsed = parseJson(text)
  const raw = parsed === undefined ? parseRawText(file, text)?.rows : parseRawJson(file, parsed)
  const rows: readonly JsonRow[] =
    raw?.map((row) => ({ node, row })) ??
    (parsed === undefined ? text.split('\n').map((line) => ({ node, row: line })) : rowsOfJson(parsed, node))
  let bad = 0
  let good = 0
  let isUsual = false
  for (const row of rows) {
    if (typeof row.row === 'string' && row.row.trim() === '') continue
    const own = row.isOwn === true
    const of = state.of(row.node)
    const isRead =
      typeof row.row === 'string'
        ? readLine(of, row.row)
        : isRawRow(row.row)
          ? readBytes(of, file, row.row)
          : readRecord(of, row.row)
    if (isRead) good++
    if (!isRead) bad++
    else if (!own && !isTold) isUsual = true
  }
  if (bad > 0) {
    const message = `${countOf(bad, 'row')} of it cannot be read, and ${bad === 1 ? 'is' : 'are'} passed over`
    const hint = 'such tables are printed by cilium-dbg bpf ct list global and bpf nat list'
    findings.push(pathFinding('path.state-unread', { message, origin: { file }, ...(good === 0 && { hint }) }))
  }
  if (isUsual) {
    const message = `it does not say whose rows they are; they are taken to be those of ${node}`
    findings.push(pathFinding('path.state-node', { message, origin: { file }, hint: `write --state NODE=${file}` }))
  }
  return findings
}

function isRawRow(row: unknown): row is RawRow {
  return isRecord(row) && row.key instanceof Uint8Array
}

/** As bpftool dumps them. */
function readBytes(state: NodeState, file: string, row: RawRow): boolean {
  const kind = stateMapOf(file, row)
  const ct = kind === 'ct' ? readCtBytes(row) : undefined
  const nat = kind === 'nat' ? readNatBytes(row) : undefined
  if (ct !== undefined) putCt(state, ct)
  if (nat !== undefined) putNat(state, nat)
  return (ct ?? nat) !== undefined
}

function parseJson(text: string): unknown {
  if (!/^\s*[[{]/.test(text)) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

type JsonRow = { readonly node: string; readonly row: unknown; readonly isOwn?: boolean }

/** A list of keys and values, or a walk with its rows of state. */
function rowsOfJson(parsed: unknown, node: string): readonly JsonRow[] {
  if (Array.isArray(parsed)) return parsed.map((row: unknown) => ({ node, row }))
  const after = isRecord(parsed) ? parsed.after : undefined
  if (!Array.isArray(after)) return [{ node, row: parsed }]
  return after.map((one: unknown): JsonRow => {
    if (!isRecord(one) || typeof one.row !== 'string' || typeof one.node !== 'string') return { node, row: one }
    return { node: one.node, row: one.row, isOwn: true }
  })
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const protocols: Readonly<Record<string, WalkProtocol>> = {
  TCP: 'TCP',
  UDP: 'UDP',
  SCTP: 'SCTP',
  ICMP: 'ICMP',
  ICMPv6: 'ICMPv6',
  ICMPV6: 'ICMPv6',
}

type Tuple = Pick<CtRow, 'protocol' | 'direction' | 'source' | 'sourcePort' | 'destination' | 'port'>

/** `TCP OUT 10.244.1.10:43210 -> 10.244.1.20:8080 …`. */
function readLine(state: NodeState, line: string): boolean {
  const text = line.trim()
  const [, name = '', direction, from = '', to = '', rest = ''] =
    /^(\S+) (OUT|IN) (\S+) -> (\S+)\s*(.*)$/.exec(text) ?? []
  const protocol = protocols[name]
  const [source, destination] = [endpointOf(from), endpointOf(to)]
  if (protocol === undefined || (direction !== 'OUT' && direction !== 'IN')) return readOther(state, text)
  if (source === undefined || destination === undefined) return false
  const tuple = {
    protocol,
    direction,
    source: source.ip,
    sourcePort: source.port,
    destination: destination.ip,
    port: destination.port,
  } as const
  const [, target] = /XLATE_(?:SRC|DST) (\S+)/.exec(rest) ?? []
  if (target !== undefined) return readNat(state, tuple, { target, rest })
  // A line that is cut short could be another connection's.
  if (!rest.includes('Flags=0x')) return false
  putCt(state, ctOf(tuple, rest))
  return true
}

function endpointOf(text: string): { readonly ip: Ip; readonly port: number } | undefined {
  const endpoint = parseEndpoint(text)
  if (endpoint?.port !== undefined) return { ip: endpoint.ip, port: endpoint.port }
  // Dumps of IPv6 before 1.18 have no brackets.
  const [, ip = '', port = ''] = /^(.*):(\d+)$/.exec(text) ?? []
  const bare = parseIp(ip)
  return bare === undefined ? undefined : { ip: bare, port: Number(port) }
}

function readNat(
  state: NodeState,
  tuple: Tuple,
  { target, rest }: { readonly target: string; readonly rest: string },
): boolean {
  const to = endpointOf(target)
  if (to === undefined) return false
  const row: NatRow = { ...tuple, to, needsCt: /(?:NeedsCT|HostLocal)=1/.test(rest) }
  putNat(state, row)
  return true
}

function ctOf(tuple: Tuple, rest: string): CtRow {
  const number = (name: string): number => Number(new RegExp(`${name}=(\\d+)`).exec(rest)?.[1] ?? 0)
  const nat = endpointOf(/NatAddr=(\S+)/.exec(rest)?.[1] ?? '')
  const isService = /(?:^|\s)service\s/.test(` ${rest} `)
  return {
    ...tuple,
    isService,
    isRelated: /(?:^|\s)related\s/.test(` ${rest} `),
    flags: Number.parseInt(/Flags=0x([0-9a-fA-F]+)/.exec(rest)?.[1] ?? '0', 16),
    revNat: number('RevNAT'),
    sourceIdentity: number('SourceSecurityID'),
    ...(isService && { backendId: number('BackendID') }),
    ...(nat !== undefined && { nat }),
  }
}

/** Rows of affinity, of sockets and of the kernel, as a walk prints them. */
function readOther(state: NodeState, text: string): boolean {
  const affinity = /^(netns of )?(\S+) RevNAT=(\d+) BackendID=(\d+)$/.exec(text)
  const client = affinity === null ? undefined : parseIp(affinity[2] ?? '')
  if (affinity !== null && client !== undefined) {
    const isSocket = affinity[1] !== undefined
    const [revNat, backendId] = [Number(affinity[3]), Number(affinity[4])]
    state.affinity.set(affinityKey(client, revNat, isSocket), { client, isSocket, revNat, backendId })
    return true
  }
  const kernel = /^(\S+ \S+ -> \S+) back to (\S+)$/.exec(text)
  const back = endpointOf(kernel?.[2] ?? '')
  if (kernel !== null && back !== undefined) {
    state.kernel.set(kernel[1] ?? '', back)
    return true
  }
  const socket = /^(\S+) -> (\S+) RevNAT=(\d+)$/.exec(text)
  const backend = endpointOf(socket?.[1] ?? '')
  if (socket === null || backend === undefined) return false
  const [own = '', frontend = ''] = [socket[1], socket[2]]
  state.sockets.set(`${own} ${frontend}`, {
    backend: own,
    frontend,
    family: backend.ip.family,
    revNat: Number(socket[3]),
  })
  return true
}

const names: Readonly<Record<number, WalkProtocol>> = { 6: 'TCP', 17: 'UDP', 132: 'SCTP', 1: 'ICMP', 58: 'ICMPv6' }

/** As JSON all is raw: ports and RevNAT in network order; of connections the addresses stand swapped (cilium/cilium#5848). */
function readRecord(state: NodeState, row: unknown): boolean {
  const key = isRecord(row) ? unwrap(row.Key) : undefined
  const value = isRecord(row) ? unwrap(row.Value) : undefined
  if (key === undefined || value === undefined) return false
  const protocol = names[numberOf(key.NextHeader)]
  const flags = numberOf(key.Flags)
  const [daddr, saddr] = [ipOf(key.DestAddr), ipOf(key.SourceAddr)]
  if (protocol === undefined || daddr === undefined || saddr === undefined) return false
  const direction = (flags & 1) === 0 ? 'OUT' : 'IN'
  const ports = { sourcePort: swapped(numberOf(key.SourcePort)), port: swapped(numberOf(key.DestPort)) }
  const to = ipOf(value.Addr)
  if (to !== undefined && value.Port !== undefined) {
    const tuple = { protocol, direction, source: saddr, destination: daddr, ...ports } as const
    putNat(state, {
      ...tuple,
      to: { ip: to, port: swapped(numberOf(value.Port)) },
      needsCt: numberOf(value.NeedsCT ?? value.HostLocal) === 1,
    })
    return true
  }
  const isService = (flags & 4) !== 0
  putCt(state, {
    protocol,
    direction,
    source: daddr,
    destination: saddr,
    ...ports,
    isService,
    isRelated: (flags & 2) !== 0,
    flags: numberOf(value.Flags),
    revNat: swapped(numberOf(value.RevNAT)),
    sourceIdentity: numberOf(value.SourceSecurityID),
    ...(isService && { backendId: backendOf(value) }),
  })
  return true
}

function backendOf({ BackendID, Union0 }: Readonly<Record<string, unknown>>): number {
  return numberOf(Array.isArray(Union0) ? Union0[1] : BackendID)
}

/** Keys of global maps are wrapped in the name of the tuple they are. */
function unwrap(value: unknown): Readonly<Record<string, unknown>> | undefined {
  if (!isRecord(value)) return undefined
  const inner = value.TupleKey4Global ?? value.TupleKey6Global ?? value.TupleKey4 ?? value.TupleKey6
  return isRecord(inner) ? (unwrap(inner) ?? inner) : value
}

function numberOf(value: unknown): number {
  return typeof value === 'number' ? value : Number(value ?? 0) || 0
}

function swapped(value: number): number {
  return ((value & 0xff) << 8) | ((value >>> 8) & 0xff)
}

/** A text, or the bytes, as a list or in base64. */
function ipOf(told: unknown): Ip | undefined {
  if (typeof told === 'string' && !/^[A-Za-z0-9+/]{6}==$|^[A-Za-z0-9+/]{22}==$/.test(told)) return parseIp(told)
  const value = typeof told === 'string' ? bytesOf(told) : told
  if (!Array.isArray(value) || !value.every((byte) => typeof byte === 'number')) return undefined
  const bytes = value as readonly number[]
  if (bytes.length !== 4 && bytes.length !== 16) return undefined
  const words = Array.from({ length: bytes.length / 4 }, (_, word) =>
    [0, 1, 2, 3].reduce((sum, index) => sum * 256 + (bytes[word * 4 + index] ?? 0), 0),
  )
  return { family: bytes.length === 4 ? 'ipv4' : 'ipv6', words }
}

const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

function bytesOf(base64: string): readonly number[] {
  const bits = [...base64.replaceAll('=', '')].map((digit) => digits.indexOf(digit))
  const count = Math.floor((bits.length * 6) / 8)
  return Array.from({ length: count }, (_, index) => {
    const at = Math.floor((index * 8) / 6)
    const shift = (index * 8) % 6
    const pair = ((bits[at] ?? 0) << 6) | (bits[at + 1] ?? 0)
    return (pair >>> (4 - shift)) & 0xff
  })
}

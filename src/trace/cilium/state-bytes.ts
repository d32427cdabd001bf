/**
 * Rows of connection tracking and NAT as the kernel holds them. Mirrors struct ipv4_ct_tuple, ct_entry and ipv4_nat_entry of
 * bpf/lib/common.h and bpf/lib/nat.h, Cilium 1.16 to 1.19; 14 B → 56 B and 14 B → 40 B in IPv4, 38 B → 56 B in IPv6.
 */
import type { Family, Ip } from '#base/ip'
import { mapNameOf } from '#compile/cilium/parse-dump'
import { getBe16, getIp, getU16, getU32 } from '#compile/cilium/read-bytes'
import { putBe16, putIp } from '#compile/cilium/struct-bytes'
import { protocolNumbers } from '#compile/policy/cilium-policy-entry'
import type { WalkProtocol } from '#model/walk'
import { type CtRow, ctFlags, type NatRow } from './state-rows'

const flagBits = { in: 1, related: 2, service: 4 } as const

type Tuple = Pick<CtRow, 'protocol' | 'source' | 'sourcePort' | 'destination' | 'port'>

/** Connections stand with their addresses swapped and their ports not (cilium/cilium#5848). */
export function ctKeyBytes(row: CtRow): Uint8Array {
  const flags =
    (row.direction === 'IN' ? flagBits.in : 0) |
    (row.isRelated ? flagBits.related : 0) |
    (row.isService ? flagBits.service : 0)
  return tupleBytes(row, { daddr: row.source, saddr: row.destination, flags })
}

/** Translations stand as the packet has them. */
export function natKeyBytes(row: NatRow): Uint8Array {
  const flags = row.direction === 'IN' ? flagBits.in : 0
  return tupleBytes(row, { daddr: row.destination, saddr: row.source, flags })
}

type Placed = { readonly daddr: Ip; readonly saddr: Ip; readonly flags: number }

function tupleBytes({ protocol, sourcePort, port }: Tuple, { daddr, saddr, flags }: Placed): Uint8Array {
  const size = daddr.family === 'ipv4' ? 4 : 16
  const bytes = new Uint8Array(2 * size + 6)
  putIp(bytes, 0, daddr)
  putIp(bytes, size, saddr)
  putBe16(bytes, 2 * size, port)
  putBe16(bytes, 2 * size + 2, sourcePort)
  bytes[2 * size + 4] = protocolNumbers[protocol]
  bytes[2 * size + 5] = flags
  return bytes
}

type Bytes = { readonly key: Uint8Array; readonly value: Uint8Array }

/** By the name of the file, or by sizes where those tell; undefined for rows of other maps. */
export function stateMapOf(file: string, { key, value }: Bytes): 'ct' | 'nat' | undefined {
  const name = mapNameOf(file) ?? ''
  if (/^cilium_ct(?:_any)?[46]?_/.test(name)) return 'ct'
  if (/^cilium_snat_v[46]_external/.test(name)) return 'nat'
  if (key.length !== 14) return undefined
  return value.length === 56 ? 'ct' : value.length === 40 ? 'nat' : undefined
}

/** Undefined for sizes and protocols that no version has. */
export function readCtBytes({ key, value }: Bytes): CtRow | undefined {
  const tuple = readTuple(key)
  if (tuple === undefined || value.length !== 56) return undefined
  const { daddr, saddr, flags, ...rest } = tuple
  const isService = (flags & flagBits.service) !== 0
  const bits = getU16(value, 36)
  const natPort = getBe16(value, 40)
  const isTranslated = !isService && (bits & ctFlags.dsr) !== 0 && natPort !== 0
  return {
    ...rest,
    source: daddr,
    destination: saddr,
    isService,
    isRelated: (flags & flagBits.related) !== 0,
    flags: bits,
    revNat: getBe16(value, 38),
    sourceIdentity: getU32(value, 44),
    ...(isService && { backendId: getU32(value, 8) }),
    ...(isTranslated && { nat: { ip: getIp(value, 0, daddr.family), port: natPort } }),
  }
}

export function readNatBytes({ key, value }: Bytes): NatRow | undefined {
  const tuple = readTuple(key)
  if (tuple === undefined || value.length !== (key.length === 14 ? 40 : 56)) return undefined
  const { daddr, saddr, flags: _, ...rest } = tuple
  const at = 32 + (daddr.family === 'ipv4' ? 4 : 16)
  return {
    ...rest,
    source: saddr,
    destination: daddr,
    to: { ip: getIp(value, 32, daddr.family), port: getBe16(value, at) },
    needsCt: getU32(value, 8) !== 0,
  }
}

const protocols: ReadonlyMap<number, WalkProtocol> = new Map(
  (['TCP', 'UDP', 'SCTP', 'ICMP', 'ICMPv6'] as const).map((name) => [protocolNumbers[name], name]),
)

function readTuple(key: Uint8Array) {
  const family: Family | undefined = key.length === 14 ? 'ipv4' : key.length === 38 ? 'ipv6' : undefined
  const size = family === 'ipv4' ? 4 : 16
  const protocol = protocols.get(key[2 * size + 4] ?? 0)
  if (family === undefined || protocol === undefined) return undefined
  const flags = key[2 * size + 5] ?? 0
  return {
    protocol,
    direction: (flags & flagBits.in) === 0 ? ('OUT' as const) : ('IN' as const),
    daddr: getIp(key, 0, family),
    saddr: getIp(key, size, family),
    port: getBe16(key, 2 * size),
    sourcePort: getBe16(key, 2 * size + 2),
    flags,
  }
}

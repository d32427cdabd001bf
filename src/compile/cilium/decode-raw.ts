/** Raw rows of a map, as bpftool dumps them, in one form with what `cilium-dbg` prints; sizes tell the version's layout. */

import type { Origin } from '#base/finding'
import { type Ip, printEndpoint, printIp } from '#base/ip'
import { prefixOf, printPrefix } from '#base/prefix'
import { prefixRange } from '#compile/policy/cilium-port-prefix'
import { gatewayText } from './dump-egress'
import type { FoundKind, FoundRow } from './found-map'
import { protocolName } from './node-maps'
import { nodeText } from './parse-cells'
import { joinServices } from './parse-dump-table'
import { getBe16, getIp, getU16, getU32 } from './read-bytes'
import { printServiceFlags } from './service-flags'

export type RawRow = { readonly key: Uint8Array; readonly value: Uint8Array; readonly origin: Origin }

type Decoder = {
  readonly kind: FoundKind
  readonly name: RegExp
  readonly decode: (row: RawRow) => Omit<FoundRow, 'origin'> | undefined
}

const decoders: readonly Decoder[] = [
  { kind: 'lxc', name: /^cilium_lxc$/, decode: decodeLxc },
  { kind: 'ipcache', name: /^cilium_ipcache(_v2)?$/, decode: decodeIpcache },
  { kind: 'policy', name: /^cilium_policy_(v\d_)?\d+$/, decode: decodePolicy },
  { kind: 'reverseNat', name: /^cilium_lb[46]_reverse_nat$/, decode: decodeReverse },
  { kind: 'backends', name: /^cilium_lb[46]_backends_v\d$/, decode: decodeBackend },
  { kind: 'egress', name: /^cilium_egress_gw_policy_v[46]$/, decode: decodeEgress },
  { kind: 'nodeIds', name: /^cilium_node_map_v2$/, decode: decodeNodeId },
  { kind: 'affinityMatch', name: /^cilium_lb_affinity_match$/, decode: decodeAffinity },
  { kind: 'tunnels', name: /^cilium_tunnel_map$/, decode: decodeTunnel },
  { kind: 'ipMasq', name: /^cilium_ipmasq_v[46]$/, decode: decodeIpMasq },
  { kind: 'sourceRanges', name: /^cilium_lb[46]_source_range$/, decode: decodeRange },
]

export type RawMap = {
  readonly kind: FoundKind
  readonly rows: readonly FoundRow[]
  readonly bad: readonly RawRow[]
  readonly endpoint?: number
  readonly family?: 'ipv4' | 'ipv6'
  readonly era?: string
}

/** Undefined for a map that is not compared. Slots of services name backends by number, which their map translates. */
export function decodeRaw(
  name: string,
  rows: readonly RawRow[],
  backends: ReadonlyMap<number, string>,
): RawMap | undefined {
  const family = /lb6|_v6$/.test(name) ? ('ipv6' as const) : /lb4|_v4$/.test(name) ? ('ipv4' as const) : undefined
  const ofFamily = family === undefined ? {} : { family }
  if (/^cilium_lb[46]_services_v2$/.test(name))
    return { kind: 'services', ...decodeServices(rows, backends), ...ofFamily }
  const decoder = decoders.find((one) => one.name.test(name))
  if (decoder === undefined) return undefined
  const bad: RawRow[] = []
  const found = rows.flatMap((row): readonly FoundRow[] => {
    const decoded = decoder.decode(row)
    if (decoded === undefined) bad.push(row)
    return decoded === undefined ? [] : [{ ...decoded, origin: row.origin }]
  })
  const endpoint = decoder.kind === 'policy' ? Number(/(\d+)$/.exec(name)?.[1]) : undefined
  const era = eraOf(name, rows[0]?.value.length)
  return {
    kind: decoder.kind,
    rows: found,
    bad,
    ...ofFamily,
    ...(endpoint !== undefined && { endpoint }),
    ...(era !== undefined && { era }),
  }
}

/** Values of policy maps have changed with every version. */
function eraOf(name: string, size: number | undefined): string | undefined {
  if (!name.startsWith('cilium_policy_') || size === undefined) return undefined
  if (size === 12) return name.startsWith('cilium_policy_v3_') ? '1.19' : '1.18'
  return size === 24 ? '1.16' : size === 8 ? '1.17' : undefined
}

/** Addresses and ports by the numbers of backends. */
export function backendsByNumber(rows: readonly RawRow[]): ReadonlyMap<number, string> {
  return new Map(
    rows.flatMap(({ key, value }) => {
      const end = backendOf(value)
      return key.length === 4 && end !== undefined ? [[getU32(key, 0), end]] : []
    }),
  )
}

function backendOf(value: Uint8Array): string | undefined {
  const at = value.length === 12 ? 4 : value.length === 24 ? 16 : undefined
  if (at === undefined) return undefined
  const address = printEndpoint(printIp(getIp(value, 0, at === 4 ? 'ipv4' : 'ipv6')), getBe16(value, at))
  const protocol = value[at + 2] ?? 0
  return protocol === 0 ? address : `${address}/${protocolName(protocol)}`
}

function decodeServices(rows: readonly RawRow[], backends: ReadonlyMap<number, string>): Pick<RawMap, 'rows' | 'bad'> {
  const bad: RawRow[] = []
  const parts = rows.flatMap((row) => {
    const { key, value, origin } = row
    const at = key.length === 12 ? 4 : key.length === 24 ? 16 : undefined
    if (at === undefined || value.length !== 12) {
      bad.push(row)
      return []
    }
    const address = printEndpoint(printIp(getIp(key, 0, at === 4 ? 'ipv4' : 'ipv6')), getBe16(key, at))
    const frontend = `${address}/${protocolName(key[at + 4] ?? 0)}${key[at + 5] === 1 ? '/i' : ''}`
    if (getU16(key, at + 2) === 0)
      return [{ frontend, flags: printServiceFlags(getU16(value, 8)), number: getBe16(value, 6), origin }]
    const id = getU32(value, 0)
    const backend = backends.get(id)
    if (backend !== undefined) return [{ frontend, backend, origin }]
    return backends.size === 0 ? [{ frontend, origin }] : [{ frontend, lost: String(id), origin }]
  })
  // Without the map of backends slots say nothing that another node's would.
  const found = joinServices(parts).map((row) =>
    backends.size > 0 ? row : { ...row, fields: withoutBackends(row.fields) },
  )
  return { rows: found, bad }
}

function withoutBackends({ backends: _, ...fields }: FoundRow['fields']): FoundRow['fields'] {
  return fields
}

function decodeLxc({ key, value }: RawRow): Omit<FoundRow, 'origin'> | undefined {
  if (key.length !== 20 || value.length !== 48) return undefined
  const ip = printIp(getIp(key, 0, key[16] === 2 ? 'ipv6' : 'ipv4'))
  if ((getU32(value, 8) & 1) === 1) return { key: ip, fields: { host: 'yes' } }
  return { key: ip, fields: { host: 'no', id: String(getU16(value, 6)), identity: String(getU32(value, 32)) } }
}

function decodeIpcache({ key, value }: RawRow): Omit<FoundRow, 'origin'> | undefined {
  if (key.length !== 24 || (value.length !== 24 && value.length !== 12)) return undefined
  const ip = getIp(key, 8, key[7] === 2 ? 'ipv6' : 'ipv4')
  const flags = value.length === 24 ? (value[23] ?? 0) : 0
  const tunnel = getIp(value, 4, (flags & 4) !== 0 ? 'ipv6' : 'ipv4')
  const prefix = prefixOf(ip, Math.max(0, getU32(key, 0) - 32))
  return { key: printPrefix(prefix), fields: { identity: String(getU32(value, 0)), node: nodeText(printIp(tunnel)) } }
}

/** The layout of 24 bytes, without lengths in its values, is that of 1.16. */
function decodePolicy({ key, value }: RawRow): Omit<FoundRow, 'origin'> | undefined {
  if (key.length !== 12 || ![24, 12, 8].includes(value.length)) return undefined
  const length = getU32(key, 0) - 40
  const protocol = protocolName(key[9] ?? 0)
  const port = getBe16(key, 10)
  const { from, to } = prefixRange({ port, bits: Math.max(0, length - 8) })
  const text =
    length <= 0 ? 'ANY' : length <= 8 ? protocol : from === to ? `${from}/${protocol}` : `${from}-${to}/${protocol}`
  const auth = (value[3] ?? 0) & 0x7f
  return {
    key: `${(key[8] ?? 0) === 1 ? 'Egress' : 'Ingress'} ${getU32(key, 4)} ${text}`,
    fields: {
      verdict: ((value[2] ?? 0) & 1) === 1 ? 'Deny' : 'Allow',
      proxy: getBe16(value, 0) === 0 ? 'no' : 'yes',
      auth: ['disabled', 'spire', 'always-fail'][auth] ?? String(auth),
    },
  }
}

function decodeBackend({ key, value }: RawRow): Omit<FoundRow, 'origin'> | undefined {
  const end = backendOf(value)
  return end === undefined || key.length !== 4
    ? undefined
    : { key: end.replace(/\/[A-Za-z0-9]+$/, ''), fields: {}, number: getU32(key, 0) }
}

function decodeReverse({ key, value }: RawRow): Omit<FoundRow, 'origin'> | undefined {
  const at = value.length === 6 ? 4 : value.length === 18 ? 16 : undefined
  if (at === undefined) return undefined
  const address = printEndpoint(printIp(getIp(value, 0, at === 4 ? 'ipv4' : 'ipv6')), getBe16(value, at))
  return { key: address, fields: {}, number: getBe16(key, 0) }
}

function decodeEgress({ key, value }: RawRow): Omit<FoundRow, 'origin'> | undefined {
  const isIpv4 = key.length === 12
  if (!(isIpv4 && value.length === 8) && !(key.length === 36 && value.length === 40)) return undefined
  const family = isIpv4 ? 'ipv4' : 'ipv6'
  const size = isIpv4 ? 4 : 16
  const destination = prefixOf(getIp(key, 4 + size, family), Math.max(0, getU32(key, 0) - 8 * size))
  const gateway: Ip = getIp(value, isIpv4 ? 4 : 16, 'ipv4')
  return {
    key: `${printIp(getIp(key, 4, family))} to ${printPrefix(destination)}`,
    fields: { gateway: gatewayText(gateway), egress: nodeText(printIp(getIp(value, 0, family))) },
  }
}

function decodeNodeId({ key, value }: RawRow): Omit<FoundRow, 'origin'> | undefined {
  if (key.length !== 20 || (value.length !== 4 && value.length !== 2)) return undefined
  const ip = printIp(getIp(key, 4, key[3] === 2 ? 'ipv6' : 'ipv4'))
  return { key: ip, fields: value.length === 4 ? { spi: String(value[2] ?? 0) } : {} }
}

/** Both numbers are the node's own: what they stand for its other maps tell. */
function decodeAffinity({ key }: RawRow): Omit<FoundRow, 'origin'> | undefined {
  if (key.length !== 8) return undefined
  return { key: `${getU32(key, 0)} ${getBe16(key, 4)}`, fields: {}, number: getBe16(key, 4), table: [getU32(key, 0)] }
}

function decodeTunnel({ key, value }: RawRow): Omit<FoundRow, 'origin'> | undefined {
  if (key.length !== 20 || value.length !== 20) return undefined
  const of = (bytes: Uint8Array): string => printIp(getIp(bytes, 0, bytes[16] === 2 ? 'ipv6' : 'ipv4'))
  return { key: of(key), fields: { node: of(value) } }
}

function decodeIpMasq({ key }: RawRow): Omit<FoundRow, 'origin'> | undefined {
  const family = key.length === 8 ? 'ipv4' : key.length === 20 ? 'ipv6' : undefined
  return family === undefined
    ? undefined
    : { key: printPrefix(prefixOf(getIp(key, 4, family), getU32(key, 0))), fields: {} }
}

function decodeRange({ key }: RawRow): Omit<FoundRow, 'origin'> | undefined {
  const family = key.length === 12 ? 'ipv4' : key.length === 24 ? 'ipv6' : undefined
  return family === undefined
    ? undefined
    : { key: printPrefix(prefixOf(getIp(key, 8, family), Math.max(0, getU32(key, 0) - 32))), fields: {} }
}

/** JSON of `cilium-dbg … -o json` and `bpftool -j map dump`, recognised by its shape. */
import type { Origin } from '#base/finding'
import { parseIp, printEndpoint, printIp } from '#base/ip'
import { protocolNumbers } from '#compile/policy/cilium-policy-entry'
import { prefixRange } from '#compile/policy/cilium-port-prefix'
import type { RawRow } from './decode-raw'
import type { FoundKind, FoundMap, FoundRow } from './found-map'
import { protocolName } from './node-maps'
import {
  addressCell,
  backendCell,
  type Cell,
  egressCell,
  ipcacheCell,
  lxcCell,
  maglevCell,
  nodeIdCell,
  rangeCell,
  serviceLine,
  tunnelCell,
} from './parse-cells'
import { joinServices } from './parse-dump-table'
import { parseRawJson } from './raw-rows'

type Json = Readonly<Record<string, unknown>>

export type JsonDump =
  | { readonly kind: 'maps'; readonly maps: readonly FoundMap[] }
  /** Bytes, whose map the file's name tells. */
  | { readonly kind: 'raw'; readonly rows: readonly RawRow[] }

export type JsonFile = { readonly file: string; readonly isCut: boolean; readonly endpoint?: number }

/** Undefined for what none of the commands prints. */
export function parseDumpJson(value: unknown, at: JsonFile): JsonDump | undefined {
  if (Array.isArray(value)) return parseRanges(value, at) ?? parseList(value.filter(isJson), at)
  return isJson(value) ? parsePairs(value, at) : undefined
}

/** The masquerade agent's list is one of ranges alone. */
function parseRanges(values: readonly unknown[], at: JsonFile): JsonDump | undefined {
  const origin = { file: at.file }
  const rows = values.flatMap((value) => {
    const cell = typeof value === 'string' ? rangeCell(value) : undefined
    return cell === undefined ? [] : [{ ...cell, origin }]
  })
  return rows.length === 0 ? undefined : mapOf('ipMasq', rows, at)
}

function isJson(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const text = (value: unknown): string => (typeof value === 'string' || typeof value === 'number' ? String(value) : '')
const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
const inside = (value: unknown, ...path: readonly string[]): unknown =>
  path.reduce((at: unknown, key) => (isJson(at) ? at[key] : undefined), value)

function mapOf(kind: FoundKind, rows: readonly FoundRow[], at: JsonFile, endpoint = at.endpoint): JsonDump {
  const map = { kind, rows, isCut: at.isCut, origin: { file: at.file }, ...(endpoint !== undefined && { endpoint }) }
  return { kind: 'maps', maps: [map] }
}

/** Keys with lists of values, as most lists are printed. */
function parsePairs(value: Json, at: JsonFile): JsonDump | undefined {
  const origin = { file: at.file }
  const pairs = Object.entries(value).flatMap(([key, values]) => list(values).map((one) => [key, text(one)] as const))
  const [first] = pairs
  if (first === undefined) return undefined
  const [key, sample] = first
  const rowsBy = (kind: FoundKind, read: (key: string, value: string) => Cell | undefined): JsonDump =>
    mapOf(
      kind,
      pairs.flatMap(([one, other]) => {
        const cell = read(one, other)
        return cell === undefined ? [] : [{ ...cell, origin }]
      }),
      at,
    )
  if (maglevCell(key, sample) !== undefined) return rowsBy('maglev', maglevCell)
  if (sample.includes('(localhost)') || sample.includes('sec_id=')) return rowsBy('lxc', lxcCell)
  if (sample.startsWith('identity=')) return rowsBy('ipcache', ipcacheCell)
  if (/:\/\//.test(sample)) return rowsBy('backends', (one, other) => numbered(one, backendCell(other)))
  if (/\(\d+\)/.test(sample) || /not found/.test(sample)) {
    const parts = pairs.flatMap(([one, other]) => {
      const line = serviceLine(one, other)
      return line === undefined ? [] : [{ ...line, origin }]
    })
    return mapOf('services', joinServices(parts), at)
  }
  if (/^\d+$/.test(key) && addressCell(sample) !== undefined)
    return rowsBy('reverseNat', (one, other) => numbered(one, addressCell(other)))
  if (/\(\d+\)$/.test(key) && rangeCell(key) !== undefined) return rowsBy('sourceRanges', (one) => rangeCell(one))
  return tunnelCell(key, sample) === undefined ? undefined : rowsBy('tunnels', tunnelCell)
}

function numbered(key: string, cell: Cell | undefined): Cell | undefined {
  return cell === undefined || !/^\d+$/.test(key) ? cell : { ...cell, number: Number(key) }
}

function parseList(items: readonly Json[], at: JsonFile): JsonDump | undefined {
  const [first] = items
  if (first === undefined) return undefined
  const origin = { file: at.file }
  const raw = parseRawJson(at.file, items)
  if (raw !== undefined) return { kind: 'raw', rows: raw }
  if ('SourceIP' in first) {
    const rows = items.flatMap((item) => {
      const cell = egressCell({
        source: text(item.SourceIP),
        destination: text(item.DestCIDR),
        egress: text(item.EgressIP),
        gateway: text(item.GatewayIP),
      })
      return cell === undefined ? [] : [{ ...cell, origin }]
    })
    return mapOf('egress', rows, at)
  }
  if ('Address' in first && 'SPI' in first) {
    const rows = items.flatMap((item) => {
      const cell = nodeIdCell(text(item.Address), text(item.SPI))
      return cell === undefined ? [] : [{ ...cell, origin }]
    })
    return mapOf('nodeIds', rows, at)
  }
  if (isJson(first.Key) && 'TrafficDirection' in first.Key)
    return mapOf(
      'policy',
      items.flatMap((item) => policyRow(item, origin)),
      at,
    )
  if ('EndpointID' in first) return parseAll(items, at)
  if (inside(first, 'spec', 'frontend-address') !== undefined)
    return mapOf('services', joinServices(items.flatMap((item) => serviceParts(item, origin))), at)
  if (inside(first, 'status', 'networking') !== undefined)
    return mapOf(
      'endpoints',
      items.flatMap((item) => endpointRows(item, origin)),
      at,
    )
  if ('cidr' in first && 'identity' in first) {
    const rows = items.flatMap((item) => {
      const cell = ipcacheCell(text(item.cidr), `identity=${text(item.identity)}`)
      return cell === undefined ? [] : [{ ...cell, origin }]
    })
    return mapOf('ipcache', rows, at)
  }
  if ('id' in first && Array.isArray(first.labels)) {
    const rows = items.map((item) => ({
      key: text(item.id),
      fields: { labels: list(item.labels).map(text).sort().join(';') },
      origin,
    }))
    return mapOf('identities', rows, at)
  }
  return undefined
}

/** All policy maps of a node at once. */
function parseAll(items: readonly Json[], at: JsonFile): JsonDump {
  const origin = { file: at.file }
  const maps = items.map((item): FoundMap => {
    const rows = list(item.Content)
      .filter(isJson)
      .flatMap((entry) => policyRow(entry, origin))
    return { kind: 'policy', rows, isCut: at.isCut, origin, endpoint: Number(text(item.EndpointID)) }
  })
  return { kind: 'maps', maps }
}

/** Ports stand in network order. */
function policyRow(item: Json, origin: Origin): readonly FoundRow[] {
  const key = inside(item, 'Key')
  const number = (name: string): number => Number(text(inside(key, name)))
  const [length, identity, protocol, swapped] = ['Prefixlen', 'Identity', 'Nexthdr', 'DestPortNetwork'].map(number)
  if (length === undefined || identity === undefined || protocol === undefined || swapped === undefined) return []
  if ([length, identity, protocol, swapped].some(Number.isNaN)) return []
  const port = ((swapped & 0xff) << 8) | (swapped >>> 8)
  const bits = Math.max(0, length - 48)
  const { from, to } = prefixRange({ port, bits })
  const name = protocolName(protocol)
  const ports = length <= 40 ? 'ANY' : length <= 48 ? name : from === to ? `${from}/${name}` : `${from}-${to}/${name}`
  const direction = number('TrafficDirection') === 1 ? 'Egress' : 'Ingress'
  const flags = Number(text(item.Flags))
  const proxy = text(item.ProxyPortNetwork) || text(item.ProxyPort)
  return [
    {
      key: `${direction} ${identity} ${ports}`,
      fields: {
        ...(!Number.isNaN(flags) && 'Flags' in item && { verdict: (flags & 1) === 1 ? 'Deny' : 'Allow' }),
        ...(proxy !== '' && { proxy: proxy === '0' ? 'no' : 'yes' }),
      },
      origin,
    },
  ]
}

function serviceParts(item: Json, origin: Origin): Parameters<typeof joinServices>[0] {
  const spec = inside(item, 'spec')
  const frontend = endText(inside(spec, 'frontend-address'))
  if (frontend === undefined) return []
  const backends = list(inside(spec, 'backend-addresses')).flatMap((one) => endText(one) ?? [])
  const flags = text(inside(spec, 'flags', 'type'))
  const id = Number(text(inside(spec, 'id')))
  return [
    { frontend, origin, ...(flags !== '' && { flags }), ...(id > 0 && { number: id }) },
    ...backends.map((backend) => ({ frontend, backend: backend.replace(/\/ANY$/, ''), origin })),
  ]
}

function endText(value: unknown): string | undefined {
  const ip = parseIp(text(inside(value, 'ip')))
  const port = Number(text(inside(value, 'port')))
  if (ip === undefined || Number.isNaN(port)) return undefined
  const name = text(inside(value, 'protocol')).toUpperCase()
  const protocol = Object.keys(protocolNumbers).includes(name) ? name : 'ANY'
  return `${printEndpoint(printIp(ip), port)}/${protocol}${text(inside(value, 'scope')) === 'internal' ? '/i' : ''}`
}

function endpointRows(item: Json, origin: Origin): readonly FoundRow[] {
  const identity = text(inside(item, 'status', 'identity', 'id'))
  return list(inside(item, 'status', 'networking', 'addressing')).flatMap((pair) =>
    ['ipv4', 'ipv6'].flatMap((family) => {
      const ip = parseIp(text(inside(pair, family)))
      return ip === undefined ? [] : [{ key: printIp(ip), fields: { id: text(item.id), identity }, origin }]
    }),
  )
}

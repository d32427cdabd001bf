/** Cells of the tables that `cilium-dbg` prints, as rows in one form. */
import { type Ip, parseEndpoint, parseIp, printEndpoint, printIp } from '#base/ip'
import { parsePrefixOrIp, printPrefix } from '#base/prefix'
import type { FoundRow } from './found-map'

type Fields = FoundRow['fields']
export type Cell = Omit<FoundRow, 'origin'>

/** `name=value` pairs of a line. */
function pairsOf(text: string): Fields {
  return Object.fromEntries(
    [...text.matchAll(/([a-z_]+)=(\S+)/g)].map(([, name, value]) => [String(name), String(value)]),
  )
}

export function lxcCell(key: string, value: string): Cell | undefined {
  const ip = parseIp(key.replace(/:\d+$/, ''))
  if (ip === undefined) return undefined
  if (value.includes('(localhost)')) return { key: printIp(ip), fields: { host: 'yes' } }
  const { id, sec_id: identity } = pairsOf(value)
  return id === undefined
    ? undefined
    : { key: printIp(ip), fields: { host: 'no', id, ...(identity !== undefined && { identity }) } }
}

export function ipcacheCell(key: string, value: string): Cell | undefined {
  const prefix = parsePrefixOrIp(key.split('@')[0] ?? '')
  const { identity, tunnelendpoint } = pairsOf(value)
  if (prefix === undefined || identity === undefined) return undefined
  return {
    key: printPrefix(prefix),
    fields: { identity, ...(tunnelendpoint !== undefined && { node: nodeText(tunnelendpoint) }) },
  }
}

/** No node is written as either family's zero address. */
export function nodeText(text: string): string {
  const ip = parseIp(text)
  return ip === undefined || ip.words.every((word) => word === 0) ? 'none' : printIp(ip)
}

export function tunnelCell(key: string, value: string): Cell | undefined {
  const [range, node] = [key, value].map((text) => parseIp(text.trim().split(' ')[0]?.replace(/:\d+$/, '') ?? ''))
  return range === undefined || node === undefined
    ? undefined
    : { key: printIp(range), fields: { node: printIp(node) } }
}

/** `TCP://10.0.0.1:80`, and without its port from 1.18 on. */
export function backendCell(value: string): Cell | undefined {
  const found = /^[A-Za-z]+:\/\/(\S+?)(?:\[[^\]:]*\])?(?: .*)?$/.exec(value.trim())
  const text = found?.[1] ?? ''
  const bare = parseIp(text.replace(/^\[(.*)\]$/, '$1'))
  if (bare !== undefined) return { key: printIp(bare), fields: {} }
  const end = parseEndpoint(text)
  return end?.port === undefined ? undefined : { key: printEndpoint(printIp(end.ip), end.port), fields: {} }
}

export function addressCell(value: string): Cell | undefined {
  const end = parseEndpoint(value.trim())
  return end?.port === undefined ? undefined : { key: printEndpoint(printIp(end.ip), end.port), fields: {} }
}

/** One line of `bpf lb list`: a frontend, or one of its slots. */
export type ServiceLine = {
  readonly frontend: string
  readonly flags?: string
  /** Of its reverse NAT. */
  readonly number?: number
  readonly backend?: string
  readonly lost?: string
}

export function serviceLine(key: string, value: string): ServiceLine | undefined {
  const frontend = frontendText(key)
  if (frontend === undefined) return undefined
  const lost = /backend (\d+) not found/.exec(value)
  if (lost !== null) return { frontend, lost: String(lost[1]) }
  const found = /^(\S+) \((\d+)\)(?: \((\d+)\))?(?: \[([^\]]*)\])?/.exec(value.trim())
  if (found === null) return undefined
  const [, address = '', id, , flags] = found
  if (flags !== undefined) return { frontend, flags, number: Number(id) }
  const backend = frontendText(address)
  return backend === undefined ? undefined : { frontend, backend: backend.replace(/\/ANY$/, '') }
}

/** `10.96.0.50:80/TCP/i (1)` without its slot; a protocol that is not told counts as any. */
export function frontendText(text: string): string | undefined {
  const [, address = '', protocol = 'ANY', scope = ''] =
    /^(\S+?)(?:\/([A-Z]+))?(\/i)?(?: \(\d+\))?$/.exec(text.trim()) ?? []
  const end = parseEndpoint(address)
  return end?.port === undefined ? undefined : `${printEndpoint(printIp(end.ip), end.port)}/${protocol}${scope}`
}

export function rangeCell(key: string): Cell | undefined {
  const prefix = parsePrefixOrIp(key.trim().split(' ')[0] ?? '')
  return prefix === undefined ? undefined : { key: printPrefix(prefix), fields: {} }
}

export function egressCell(cells: {
  readonly source: string
  readonly destination: string
  readonly egress: string
  readonly gateway: string
}): Cell | undefined {
  const source = parseIp(cells.source)
  const destination = parsePrefixOrIp(cells.destination)
  if (source === undefined || destination === undefined) return undefined
  const egress = parseIp(cells.egress)
  return {
    key: `${printIp(source)} to ${printPrefix(destination)}`,
    fields: { gateway: gatewayOf(cells.gateway), ...(egress !== undefined && { egress: nodeText(printIp(egress)) }) },
  }
}

function gatewayOf(text: string): string {
  const ip: Ip | undefined = parseIp(text)
  if (ip === undefined) return text.trim()
  const [word = 0] = ip.words
  return word === 0 ? 'Not Found' : word === 1 ? 'Excluded CIDR' : printIp(ip)
}

/** `[5]/v4` and `[3 1 2 …]`: the number of a Service, and a backend for each row. */
export function maglevCell(key: string, value: string): Cell | undefined {
  const [, number, family] = /^\[(\d+)\]\/(v[46])$/.exec(key.trim()) ?? []
  const inner = /^\[([\d ,]*)\]$/.exec(value.trim())?.[1]
  if (number === undefined || inner === undefined) return undefined
  const table = inner
    .split(/[ ,]+/)
    .filter((text) => text !== '')
    .map(Number)
  return { key: `${number} ${family}`, fields: {}, number: Number(number), table }
}

/** `0x1f` or a number; nodes are told by their address, as each agent numbers them by itself. */
export function nodeIdCell(address: string, spi: string): Cell | undefined {
  const ip = parseIp(address.trim())
  if (ip === undefined) return undefined
  return { key: printIp(ip), fields: /^\d+$/.test(spi.trim()) ? { spi: spi.trim() } : {} }
}

/** `8080-8087/TCP`, `0x1f90/13/TCP` and the like in one form. */
export function portCell(text: string): string {
  const hex = /^0x([0-9a-f]+)\/(\d+)\/(\S+)$/i.exec(text.trim())
  if (hex === null) return text.trim()
  const from = Number.parseInt(String(hex[1]), 16)
  const to = from + 2 ** (16 - Number(hex[2])) - 1
  return from === to ? `${from}/${hex[3]}` : `${from}-${to}/${hex[3]}`
}

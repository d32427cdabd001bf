/** What the readers of both makers' rows share: fields of objects that may hold anything, protocols, ports and times. */
import type { FlowFindingCode } from './findings'
import type { Labels, Workload } from './holder'
import { type Instant, parseInstant } from './instant'

export type Row = { readonly [field: string]: unknown }

export type RowReading = { readonly tell: (code: FlowFindingCode, message: string) => void }

export function isRow(value: unknown): value is Row {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function rowIn(row: Row | undefined, field: string): Row | undefined {
  const value = row?.[field]
  return isRow(value) ? value : undefined
}

/** Blank texts count as absent. */
export function textIn(row: Row | undefined, field: string): string | null {
  const value = row?.[field]
  return typeof value === 'string' && value.trim() !== '' ? value : null
}

export function labelsIn(row: Row | undefined, field: string): Labels | null {
  const value = rowIn(row, field)
  if (value === undefined) return null
  return Object.fromEntries(
    Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  )
}

export function workloadOf(kind: string | null, name: string | null): Workload | null {
  return kind === null || name === null ? null : { kind, name }
}

export function instantIn(row: Row, field: string): Instant | undefined {
  const text = textIn(row, field)
  return text === null ? undefined : parseInstant(text.trim())
}

/** A whole number from 0 to 65535, as a number or as its plain digits; null for none, and for what is no port. */
export function portIn(row: Row, field: string, reading: RowReading): number | null {
  const value = row[field]
  if (value === undefined || value === null || value === '') return null
  const port = typeof value === 'number' ? value : /^\d{1,5}$/.test(String(value)) ? Number(value) : Number.NaN
  if (Number.isInteger(port) && port >= 0 && port <= 65535) return port
  reading.tell('flows.no-port', `${field} is ${JSON.stringify(value)}, which is no port`)
  return null
}

const known = new Set(['TCP', 'UDP', 'SCTP', 'ICMP', 'ICMPV4', 'ICMPV6', 'VRRP', 'IGMP'])

/** In capitals; one that nobody knows is told, and kept. */
export function protocolOf(text: string, reading: RowReading): string {
  const protocol = text.trim().toUpperCase()
  if (!known.has(protocol)) reading.tell('flows.unknown-protocol', `the protocol ${JSON.stringify(text)} is not known`)
  return protocol
}

export function tellMissingPort(port: number | null, protocol: string, reading: RowReading): void {
  if (protocol !== 'TCP' && protocol !== 'UDP' && protocol !== 'SCTP') return
  if (port === null || port === 0)
    reading.tell('flows.no-port', `the ${protocol} port that was connected to is not told`)
}

/** An entry that is well and tells nothing that is asked for. */
export function passOver(reading: RowReading): undefined {
  reading.tell('flows.passed-over', '')
  return undefined
}

export function lacks(what: string, reading: RowReading): undefined {
  reading.tell('flows.not-a-flow', `the flow lacks ${what}; it is left out`)
  return undefined
}

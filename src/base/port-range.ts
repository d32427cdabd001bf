/** Port ranges as iptables and policies write them: one port or two ends, inclusive. */

export type PortRange = { readonly from: number; readonly to: number }

/** Reads `80`, `80:90`, `:90` and `80:`; `separator` may be `-` elsewhere. */
export function parsePortRange(text: string, separator = ':'): PortRange | undefined {
  const parts = text.split(separator)
  if (parts.length > 2 || text === separator || text === '') return undefined
  const from = parts[0] === '' ? 0 : parsePort(parts[0] ?? '')
  const to = parts.length === 1 ? from : parts[1] === '' ? 65535 : parsePort(parts[1] ?? '')
  if (from === undefined || to === undefined || from > to) return undefined
  return { from, to }
}

export function parsePort(text: string): number | undefined {
  if (!/^\d{1,5}$/.test(text)) return undefined
  const port = Number(text)
  return port <= 65535 ? port : undefined
}

export function printPortRange(range: PortRange, separator = ':'): string {
  return range.from === range.to ? String(range.from) : `${range.from}${separator}${range.to}`
}

export function hasPort(range: PortRange, port: number): boolean {
  return port >= range.from && port <= range.to
}

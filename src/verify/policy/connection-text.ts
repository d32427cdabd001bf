/** Connections as the matrix writes them: `TCP 80,443; UDP 53`, `All Connections`; what the input cannot tell stands behind `unknown`. */
import { type PortRange, printPortRange } from '#base/port-range'
import type { ConnectionSet, PortRanges } from '#trace/policy/decide'

/** Those with ports, in the order of their names. */
export const matrixProtocols = ['SCTP', 'TCP', 'UDP'] as const
export type MatrixProtocol = (typeof matrixProtocols)[number]

export const allConnections = 'All Connections'

/** Empty for no connection. `partly` is what only some members of an end have. */
export function printConnections({ allowed, unknown }: ConnectionSet, partly?: PortRanges): string {
  const parts = [printPorts(allowed), named('partly', partly), named('unknown', unknown)]
  return parts.filter((part) => part !== '').join('; ')
}

function named(word: string, ranges: PortRanges | undefined): string {
  const text = ranges === undefined ? '' : printPorts(ranges)
  return mark(word, text)
}

/** Before each protocol, so that none of them looks certain: `unknown TCP 80; unknown UDP 53`. Nothing is `partly` twice. */
export function mark(word: string, text: string): string {
  return text.replaceAll(/(^|; )(?=.)(?!partly )/g, `$1${word} `)
}

function printPorts(ranges: PortRanges): string {
  const byProtocol = matrixProtocols.map((protocol) => ({ protocol, ports: portsOf(ranges, protocol) }))
  if (byProtocol.every(({ ports }) => isEveryPort(ports))) return allConnections
  return byProtocol
    .filter(({ ports }) => ports.length > 0)
    .map(({ protocol, ports }) => `${protocol} ${ports.map((range) => printPortRange(range, '-')).join(',')}`)
    .join('; ')
}

/** Nothing listens on port 0, so that 1 to 65535 is full. */
export function portsOf(ranges: PortRanges, protocol: MatrixProtocol): readonly PortRange[] {
  const own = ranges.get(protocol) ?? []
  const [first] = own
  if (first === undefined || first.from > 0) return own
  return first.to === 0 ? own.slice(1) : [{ from: 1, to: first.to }, ...own.slice(1)]
}

function isEveryPort([first]: readonly PortRange[]): boolean {
  return first?.from === 1 && first.to === 65535
}

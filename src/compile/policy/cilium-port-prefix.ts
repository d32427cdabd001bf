/** Port ranges as Cilium's maps hold them: the fewest aligned blocks. Mirrors pkg/policy PortRangeToMaskedPorts, Cilium 1.18. */
import type { PortRange } from '#base/port-range'

/** The first port of a block and how many of its 16 bits count; 0 bits are every port. */
export type PortPrefix = { readonly port: number; readonly bits: number }

export const everyPortPrefix: PortPrefix = { port: 0, bits: 0 }

/** Both ends 0, or 0 to 65535, is every port; an end that is not above the start is the start alone. */
export function portPrefixes({ from, to }: PortRange): readonly PortPrefix[] {
  if (from === 0 && (to === 0 || to === 65535)) return [everyPortPrefix]
  if (to <= from) return [{ port: from, bits: 16 }]
  const prefixes: PortPrefix[] = []
  for (let port = from; port <= to; ) {
    let size = port === 0 ? 65536 : port & -port
    while (port + size - 1 > to) size /= 2
    prefixes.push({ port, bits: 16 - Math.log2(size) })
    port += size
  }
  return prefixes
}

export function prefixRange({ port, bits }: PortPrefix): PortRange {
  return { from: port, to: port + 2 ** (16 - bits) - 1 }
}

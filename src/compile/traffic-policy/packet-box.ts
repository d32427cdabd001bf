/** Sets of packets as boxes: entries become boxes, and a box is covered when others leave nothing of it. */
import { ipToBigint } from '#base/ip'
import { bitsOf, type Prefix } from '#base/prefix'
import { type Entry, type EntryProtocol, hasIcmp, hasPorts, pathClasses } from './entry'

type Range = { readonly from: bigint; readonly to: bigint }

/** Whole packets of one family and one protocol; what a later fragment cannot tell is left aside. */
export type PacketBox = {
  readonly cell: string
  /** Of each path class one bit. */
  readonly paths: number
  /** Source and destination address, then ports, or ICMP type and code. */
  readonly ranges: readonly [Range, Range, Range, Range]
}

const cells: readonly (readonly ['ipv4' | 'ipv6', EntryProtocol])[] = [
  ['ipv4', 'tcp'],
  ['ipv4', 'udp'],
  ['ipv4', 'sctp'],
  ['ipv4', 'icmp'],
  ['ipv6', 'tcp'],
  ['ipv6', 'udp'],
  ['ipv6', 'sctp'],
  ['ipv6', 'icmpv6'],
]

export function boxesOf(entry: Entry): readonly PacketBox[] {
  const family = entry.family ?? entry.source?.ip.family ?? entry.destination?.ip.family
  return cells.flatMap(([of, protocol]) => {
    const isIcmp = protocol === 'icmp' || protocol === 'icmpv6'
    if ((family ?? of) !== of || (entry.protocol ?? protocol) !== protocol) return []
    if (isIcmp ? hasPorts(entry) : hasIcmp(entry)) return []
    const ends = isIcmp ? icmpRanges(entry) : portRanges(entry)
    const addresses = [rangeOfPrefix(entry.source, of), rangeOfPrefix(entry.destination, of)] as const
    return [{ cell: `${of} ${protocol}`, paths: pathBits(entry), ranges: [...addresses, ...ends] as const }]
  })
}

/** Undefined when it would take too long to tell. */
export function isCovered(box: PacketBox, by: readonly PacketBox[]): boolean | undefined {
  const budget = { left: 20_000 }
  const covered = covers(box, by, 0, budget)
  return budget.left <= 0 ? undefined : covered
}

/** Takes away the boxes one after the other; what stays of one is in pieces that are tried against the rest. */
function covers(box: PacketBox, by: readonly PacketBox[], from: number, budget: { left: number }): boolean {
  for (let at = from; at < by.length; at++) {
    if (--budget.left <= 0) return false
    const other = by[at]
    if (other === undefined || !meets(box, other)) continue
    return remainder(box, other).every((piece) => covers(piece, by, at + 1, budget))
  }
  return false
}

function meets(box: PacketBox, other: PacketBox): boolean {
  if (box.cell !== other.cell || (box.paths & other.paths) === 0) return false
  return box.ranges.every((range, at) => {
    const { from, to } = other.ranges[at] ?? range
    return range.from <= to && from <= range.to
  })
}

/** The parts of a box outside another one that meets it; they do not meet each other. */
function remainder(box: PacketBox, other: PacketBox): readonly PacketBox[] {
  const pieces: PacketBox[] = []
  let rest = box
  if ((box.paths & ~other.paths) !== 0) pieces.push({ ...box, paths: box.paths & ~other.paths })
  rest = { ...rest, paths: box.paths & other.paths }
  for (const at of [0, 1, 2, 3] as const) {
    const [mine, theirs] = [rest.ranges[at], other.ranges[at]]
    if (mine.from < theirs.from) pieces.push(withRange(rest, at, { from: mine.from, to: theirs.from - 1n }))
    if (mine.to > theirs.to) pieces.push(withRange(rest, at, { from: theirs.to + 1n, to: mine.to }))
    rest = withRange(rest, at, { from: later(mine.from, theirs.from), to: earlier(mine.to, theirs.to) })
  }
  return pieces
}

function earlier(one: bigint, other: bigint): bigint {
  if (one < other) return one
  return other
}

function later(one: bigint, other: bigint): bigint {
  if (one > other) return one
  return other
}

function withRange(box: PacketBox, at: 0 | 1 | 2 | 3, range: Range): PacketBox {
  const [a, b, c, d] = box.ranges
  return { ...box, ranges: [at === 0 ? range : a, at === 1 ? range : b, at === 2 ? range : c, at === 3 ? range : d] }
}

function pathBits({ paths = pathClasses }: Entry): number {
  return paths.reduce((bits, path) => bits | (1 << pathClasses.indexOf(path)), 0)
}

function rangeOfPrefix(prefix: Prefix | undefined, family: 'ipv4' | 'ipv6'): Range {
  const from = prefix === undefined ? 0n : ipToBigint(prefix.ip)
  return { from, to: from + (1n << BigInt(bitsOf(family) - (prefix?.length ?? 0))) - 1n }
}

function portRanges({ sourcePorts, destinationPorts }: Entry): readonly [Range, Range] {
  return [rangeOf(sourcePorts, 65535), rangeOf(destinationPorts, 65535)]
}

function icmpRanges({ icmpType, icmpCode }: Entry): readonly [Range, Range] {
  const one = (value: number | undefined) => (value === undefined ? undefined : { from: value, to: value })
  return [rangeOf(one(icmpType), 255), rangeOf(one(icmpCode), 255)]
}

function rangeOf(range: { readonly from: number; readonly to: number } | undefined, most: number): Range {
  return { from: BigInt(range?.from ?? 0), to: BigInt(range?.to ?? most) }
}

/** Address ranges as the kernel keeps them in a rule's own set: sorted, and joined where they meet. */
import { type Family, ipFromBigint, ipToBigint, printIp } from '#base/ip'
import { bitsOf, type Prefix, parsePrefixOrIp } from '#base/prefix'
import { constant, type Expression } from './expression'

type Range = { readonly from: bigint; readonly to: bigint }

/**
 * What `{ a, b }` becomes in a rule. One alone goes without braces. Addresses without a length stay apart unless a range
 * is among them: only then does the set hold intervals (nft 1.0.6).
 */
export function rangesExpression(texts: readonly string[], family: Family): Expression {
  const prefixes = texts.flatMap((text) => parsePrefixOrIp(text) ?? [])
  const [first] = prefixes
  if (prefixes.length === 1 && first !== undefined) return prefixExpression(first)
  const hasIntervals = texts.some((text) => text.includes('/'))
  const ranges = joinRanges(prefixes.map(rangeOf), hasIntervals)
  return { kind: 'set', elements: ranges.map((range) => ({ key: rangeExpression(range, family) })) }
}

/** One range or address, as a rule tests it. */
export function prefixOrAddress(text: string): Expression {
  const prefix = parsePrefixOrIp(text)
  return prefix === undefined ? constant(text) : prefixExpression(prefix)
}

function rangeOf({ ip, length }: Prefix): Range {
  const from = ipToBigint(ip)
  return { from, to: from + (1n << BigInt(bitsOf(ip.family) - length)) - 1n }
}

function joinRanges(ranges: readonly Range[], joinsNeighbours: boolean): readonly Range[] {
  const joined: Range[] = []
  for (const range of [...ranges].sort((a, b) => (a.from < b.from ? -1 : a.from > b.from ? 1 : 0))) {
    const last = joined[joined.length - 1]
    if (last === undefined || range.from > last.to + (joinsNeighbours ? 1n : 0n)) joined.push(range)
    else if (range.to > last.to) joined[joined.length - 1] = { from: last.from, to: range.to }
  }
  return joined
}

function prefixExpression({ ip, length }: Prefix): Expression {
  const address = constant(printIp(ip))
  return length === bitsOf(ip.family) ? address : { kind: 'prefix', address, length }
}

/** A range that is a prefix is told as one. */
function rangeExpression({ from, to }: Range, family: Family): Expression {
  const start = ipFromBigint(family, from)
  const size = to - from + 1n
  if ((size & (size - 1n)) === 0n && from % size === 0n) {
    const hostBits = size.toString(2).length - 1
    return prefixExpression({ ip: start, length: bitsOf(family) - hostBits })
  }
  return { kind: 'range', from: constant(printIp(start)), to: constant(printIp(ipFromBigint(family, to))) }
}

/** Counting through an address range. */

import { invariant } from '#base/invariant'
import { printIp } from '#base/ip'
import { bitsOf, type Prefix, parsePrefix } from '#base/prefix'

/** Addresses in a range, as far as they are counted: 2³¹ at most. */
export function sizeOf(range: Prefix): number {
  return 2 ** Math.min(31, bitsOf(range.ip.family) - range.length)
}

/** The address so many after the first of a range. */
export function addressIn(range: Prefix, offset: number): string {
  const words = [...range.ip.words]
  const last = words.length - 1
  words[last] = ((words[last] ?? 0) + offset) >>> 0
  return printIp({ family: range.ip.family, words })
}

/** The range of a length that holds an address known to be canonical. */
export function rangeAround(address: string, length: number): Prefix {
  return knownPrefix(`${address}/${length}`)
}

/** A prefix from text that this house has written. */
export function knownPrefix(text: string): Prefix {
  const parse = parsePrefix(text)
  invariant(parse, `${text} is an address range`)
  return parse.prefix
}

/** The range so many blocks of a length after the first of a pool; undefined when the pool ends before. */
export function blockIn(pool: Prefix, length: number, index: number): Prefix | undefined {
  if (length <= pool.length) return index === 0 ? pool : undefined
  if (index >= 2 ** Math.min(31, length - pool.length)) return undefined
  const word = Math.ceil(length / 32) - 1
  const words = [...pool.ip.words]
  words[word] = ((words[word] ?? 0) + index * 2 ** (32 * (word + 1) - length)) >>> 0
  return { ip: { family: pool.ip.family, words }, length }
}

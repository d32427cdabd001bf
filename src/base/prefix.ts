/** IP prefixes (CIDR blocks): parsing, containment, and the text Kubernetes and the kernel print. */
import { type Family, type Ip, ipToBigint, isSameIp, parseIp, printIp } from './ip'

/** `ip` has no bits set beyond `length`. */
export type Prefix = { readonly ip: Ip; readonly length: number }

export type PrefixParse = { readonly prefix: Prefix; readonly hasHostBits: boolean }

export function bitsOf(family: Family): number {
  return family === 'ipv4' ? 32 : 128
}

/** Reads `ADDRESS/LENGTH`; bits beyond the length are cleared and told. */
export function parsePrefix(text: string): PrefixParse | undefined {
  const slash = text.indexOf('/')
  if (slash < 0) return undefined
  const ip = parseIp(text.slice(0, slash))
  const lengthText = text.slice(slash + 1)
  if (ip === undefined || !/^(0|[1-9]\d{0,2})$/.test(lengthText)) return undefined
  const length = Number(lengthText)
  if (length > bitsOf(ip.family)) return undefined
  const prefix = prefixOf(ip, length)
  return { prefix, hasHostBits: !isSameIp(prefix.ip, ip) }
}

/** Reads a prefix or a bare address (as its one-address prefix). */
export function parsePrefixOrIp(text: string): Prefix | undefined {
  const ip = parseIp(text)
  return ip === undefined ? parsePrefix(text)?.prefix : hostPrefix(ip)
}

export function prefixOf(ip: Ip, length: number): Prefix {
  const mask = maskWords(ip.family, length)
  return { ip: { family: ip.family, words: ip.words.map((word, index) => (word & (mask[index] ?? 0)) >>> 0) }, length }
}

export function hostPrefix(ip: Ip): Prefix {
  return { ip, length: bitsOf(ip.family) }
}

export function printPrefix(prefix: Prefix): string {
  return `${printIp(prefix.ip)}/${prefix.length}`
}

export function containsIp(prefix: Prefix, ip: Ip): boolean {
  if (prefix.ip.family !== ip.family) return false
  for (let index = 0, bits = prefix.length; bits > 0; index++, bits -= 32) {
    const shift = bits >= 32 ? 0 : 32 - bits
    if ((ip.words[index] ?? 0) >>> shift !== (prefix.ip.words[index] ?? 0) >>> shift) return false
  }
  return true
}

export function containsPrefix(outer: Prefix, inner: Prefix): boolean {
  return inner.length >= outer.length && containsIp(outer, inner.ip)
}

export function overlaps(a: Prefix, b: Prefix): boolean {
  return containsPrefix(a, b) || containsPrefix(b, a)
}

/** The words of a netmask, most significant first. */
export function maskWords(family: Family, length: number): number[] {
  return Array.from({ length: bitsOf(family) / 32 }, (_, index) => {
    const bits = Math.min(32, Math.max(0, length - 32 * index))
    return bits === 0 ? 0 : (0xffffffff << (32 - bits)) >>> 0
  })
}

/** The prefix length of a contiguous netmask, undefined when it has holes. */
export function lengthOfMask(mask: Ip): number | undefined {
  const length = ipToBigint(mask).toString(2).replaceAll('0', '').length
  const words = maskWords(mask.family, length)
  return words.every((word, index) => word === mask.words[index]) ? length : undefined
}

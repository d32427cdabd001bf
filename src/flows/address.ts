/** Addresses as flows carry them: any text, made canonical where it is an address and left alone where it is not. */
import { parseIp, printIp } from '#base/ip'
import { containsIp, parsePrefix } from '#base/prefix'
import type { AddressRange } from './flow'

/**
 * Lower case, longest run of zeros compressed, IPv4-mapped IPv6 un-mapped; text that is no address unchanged, so that
 * `fe80::1%eth0`, `10.0.0.1/32` and `010.0.0.1` are stored as they came and never resolve.
 */
export function canonicalAddress(text: string): string {
  const ip = parseIp(text)
  if (ip !== undefined) return ip.family === 'ipv4' ? text : printIp(ip)
  return unmapped(text) ?? text
}

/** Blanks and repetitions dropped, the order kept. */
export function canonicalAddresses(texts: readonly string[]): readonly string[] {
  return [...new Set(texts.filter((text) => text.trim() !== '').map(canonicalAddress))]
}

/** Where a canonical address lies when nobody is known to hold it. */
export function addressRange(address: string | null): AddressRange {
  const ip = address === null ? undefined : parseIp(address)
  if (ip === undefined) return 'not-an-address'
  return privateRanges.some((range) => containsIp(range, ip)) ? 'private' : 'internet'
}

/**
 * `::ffff:10.0.0.1` in any spelling. The strict parser refuses these, so the mark is changed to one that it reads: in a mapped
 * address `ffff` is the first group that is not zero.
 */
function unmapped(text: string): string | undefined {
  const ip = parseIp(text.replace(/(^|:)ffff(?=:)/i, '$1fffe'))
  const [first, second, mark, word] = ip?.words ?? []
  if (first !== 0 || second !== 0 || mark !== 0xfffe || word === undefined) return undefined
  return printIp({ family: 'ipv4', words: [word] })
}

/**
 * RFC 1918, carrier-grade NAT, this network, loopback, link-local, and everything from multicast up; unspecified, loopback,
 * unique local, link-local and multicast of IPv6.
 */
const privateRanges = [
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '100.64.0.0/10',
  '0.0.0.0/8',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '224.0.0.0/3',
  '::/127',
  'fc00::/7',
  'fe80::/10',
  'ff00::/8',
].flatMap((cidr) => parsePrefix(cidr)?.prefix ?? [])

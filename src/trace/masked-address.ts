/** Addresses as rules write them: bare, with a length, or with a mask that may have holes. */
import { type Ip, parseIp, printIp } from '#base/ip'
import { containsIp, hostPrefix, lengthOfMask, type Prefix, parsePrefix, prefixOf } from '#base/prefix'

/** `prefix` is absent for a mask with holes. */
export type MaskedAddress = { readonly ip: Ip; readonly mask: Ip | undefined; readonly prefix: Prefix | undefined }

export function parseMaskedAddress(text: string): MaskedAddress | undefined {
  const slash = text.indexOf('/')
  const ip = parseIp(slash < 0 ? text : text.slice(0, slash))
  if (ip === undefined) return undefined
  if (slash < 0) return { ip, mask: undefined, prefix: hostPrefix(ip) }
  const rest = text.slice(slash + 1)
  if (!/[.:]/.test(rest)) {
    const prefix = parsePrefix(text)?.prefix
    return prefix === undefined ? undefined : { ip: prefix.ip, mask: undefined, prefix }
  }
  const mask = parseIp(rest)
  if (mask === undefined) return undefined
  const length = lengthOfMask(mask)
  return length === undefined ? { ip, mask, prefix: undefined } : { ip, mask: undefined, prefix: prefixOf(ip, length) }
}

export function hasAddress(masked: MaskedAddress, ip: Ip): boolean {
  if (masked.prefix !== undefined) return containsIp(masked.prefix, ip)
  const mask = masked.mask?.words ?? []
  if (ip.family !== masked.ip.family) return false
  return ip.words.every((word, index) => ((word ^ (masked.ip.words[index] ?? 0)) & (mask[index] ?? 0)) === 0)
}

/** `10.244.1.5` for one address, `10.244.0.0/16` for a range. */
export function printMasked(masked: MaskedAddress): string {
  const { prefix } = masked
  if (prefix === undefined) return `${printIp(masked.ip)}/${masked.mask === undefined ? '' : printIp(masked.mask)}`
  const isHost = prefix.length === (prefix.ip.family === 'ipv4' ? 32 : 128)
  return isHost ? printIp(prefix.ip) : `${printIp(prefix.ip)}/${prefix.length}`
}

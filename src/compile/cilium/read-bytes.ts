/** Numbers and addresses out of packed structs: the counterpart of `struct-bytes.ts`. */
import type { Ip } from '#base/ip'

export function getU16(bytes: Uint8Array, at: number): number {
  return (bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8)
}

export function getBe16(bytes: Uint8Array, at: number): number {
  return ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0)
}

export function getU32(bytes: Uint8Array, at: number): number {
  return (getU16(bytes, at) | (getU16(bytes, at + 2) << 16)) >>> 0
}

export function getIp(bytes: Uint8Array, at: number, family: Ip['family']): Ip {
  const count = family === 'ipv4' ? 1 : 4
  const words = Array.from({ length: count }, (_, index) => {
    const from = at + 4 * index
    return ((getBe16(bytes, from) << 16) | getBe16(bytes, from + 2)) >>> 0
  })
  return { family, words }
}

/** Bytes from `0a f4`, `0x0a 0xf4` or a list of either, in any case; undefined for what is none. */
export function parseHexBytes(texts: readonly string[]): Uint8Array | undefined {
  const bytes = texts.map((text) =>
    /^(?:0x)?[0-9a-f]{1,2}$/i.test(text) ? Number.parseInt(text.replace(/^0x/i, ''), 16) : -1,
  )
  return bytes.includes(-1) ? undefined : Uint8Array.from(bytes)
}

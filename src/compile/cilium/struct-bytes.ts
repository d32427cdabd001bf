/** Packed structs as the datapath reads them: numbers little-endian unless a function says otherwise, addresses as on the wire. */
import type { Ip } from '#base/ip'

export function putU16(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value & 0xff
  bytes[at + 1] = (value >>> 8) & 0xff
}

/** In network order. */
export function putBe16(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = (value >>> 8) & 0xff
  bytes[at + 1] = value & 0xff
}

export function putU32(bytes: Uint8Array, at: number, value: number): void {
  putU16(bytes, at, value & 0xffff)
  putU16(bytes, at + 2, value >>> 16)
}

/** Four bytes of IPv4, sixteen of IPv6; where an IPv4 address has room for sixteen the rest stays zero. */
export function putIp(bytes: Uint8Array, at: number, { words }: Ip): void {
  for (const [index, word] of words.entries()) {
    putBe16(bytes, at + 4 * index, word >>> 16)
    putBe16(bytes, at + 4 * index + 2, word & 0xffff)
  }
}

/** `0a f4 01 0a`. */
export function printHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join(' ')
}

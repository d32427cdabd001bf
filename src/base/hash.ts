/** SHA-256 in the two texts that chain names use: RFC 4648 base32 and hex. */
import { sha256 } from '@noble/hashes/sha2.js'
import { utf8ToBytes } from '@noble/hashes/utils.js'

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** The first `length` base32 digits (upper case, no padding) of the text's SHA-256; `length` is at most 51. */
export function sha256Base32(text: string, length: number): string {
  const bytes = sha256(utf8ToBytes(text))
  let digits = ''
  let buffer = 0
  let bits = 0
  for (let index = 0; digits.length < length; index++) {
    buffer = ((buffer << 8) | (bytes[index] ?? 0)) & 0xffff
    bits += 8
    while (bits >= 5 && digits.length < length) {
      bits -= 5
      digits += alphabet[(buffer >>> bits) & 31]
    }
  }
  return digits
}

/** The first `length` upper-case hex digits of the text's SHA-256. */
export function sha256Hex(text: string, length: number): string {
  const bytes = sha256(utf8ToBytes(text)).subarray(0, Math.ceil(length / 2))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0'))
    .join('')
    .slice(0, length)
    .toUpperCase()
}

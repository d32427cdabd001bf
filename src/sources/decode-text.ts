/** From bytes to text: UTF-8 and UTF-16 with their byte order marks, gzip; anything else is refused with a remedy. */
import { constants, isUtf8 } from 'node:buffer'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { Failure } from '#base/failure'
import { codeOf } from './system-error'

/** The longest text that V8 can hold, about 512 MB. */
export const mostBytes = constants.MAX_STRING_LENGTH

/** `foreign` says what stands there instead of text, and what to do. */
export type Decoded =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'foreign'; readonly message: string }

/** `name` is what a sentence calls the input, `remedy` what to do about one that is too large. */
export type Named = { readonly name: string; readonly remedy: string }

/** Throws `Failure` for gzip data that is damaged or too large. */
export async function decodeText(bytes: Buffer, named: Named): Promise<Decoded> {
  return startsWith(bytes, [0x1f, 0x8b]) ? decodePlain(await unpack(bytes, named)) : decodePlain(bytes)
}

export function tooLarge(name: string, remedy: string): Failure {
  const most = Math.floor(mostBytes / 1e6)
  return new Failure(
    'input.too-large',
    `${name} holds more than ${most} MB, the most that can be read at once; ${remedy}`,
  )
}

async function unpack(bytes: Buffer, { name, remedy }: Named): Promise<Buffer> {
  try {
    return await promisify(gunzip)(bytes, { maxOutputLength: mostBytes })
  } catch (error) {
    const code = codeOf(error)
    if (code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(name, remedy)
    const fact = code === 'Z_BUF_ERROR' ? 'the gzip data ends too early' : 'its gzip data is damaged'
    throw new Failure('input.unreadable', `${name} cannot be read: ${fact}; write the file again`, error)
  }
}

function decodePlain(bytes: Buffer): Decoded {
  if (startsWith(bytes, [0xff, 0xfe])) return decodeUtf16(bytes, 'utf-16le')
  if (startsWith(bytes, [0xfe, 0xff])) return decodeUtf16(bytes, 'utf-16be')
  const packed = packings.find(({ magic, at = 0 }) => startsWith(bytes.subarray(at), magic))
  if (packed !== undefined) return foreign(`is ${packed.what}, not text; unpack it and give the files in it`)
  if (bytes.subarray(0, 8192).includes(0)) return refuseNulls(bytes)
  if (!isUtf8(bytes)) return refuseEncoding(bytes)
  const start = startsWith(bytes, [0xef, 0xbb, 0xbf]) ? 3 : 0
  return { kind: 'text', text: bytes.toString('utf8', start) }
}

function decodeUtf16(bytes: Buffer, encoding: 'utf-16le' | 'utf-16be'): Decoded {
  try {
    return { kind: 'text', text: new TextDecoder(encoding, { fatal: true }).decode(bytes) }
  } catch {
    return foreign('begins as UTF-16 text but is none to its end; write it as UTF-8, or write the whole file again')
  }
}

type Packing = { readonly magic: readonly number[]; readonly at?: number; readonly what: string }

const packings: readonly Packing[] = [
  { magic: [0x50, 0x4b, 0x03, 0x04], what: 'a zip archive' },
  { magic: [0x28, 0xb5, 0x2f, 0xfd], what: 'compressed with zstd' },
  { magic: [0xfd, 0x37, 0x7a, 0x58, 0x5a], what: 'compressed with xz' },
  { magic: [0x42, 0x5a, 0x68, 0x39], what: 'compressed with bzip2' },
  { magic: [0x75, 0x73, 0x74, 0x61, 0x72], at: 257, what: 'a tar archive' },
]

function refuseNulls(bytes: Buffer): Decoded {
  const isWide = bytes.length > 3 && (bytes[0] === 0) !== (bytes[1] === 0) && (bytes[2] === 0) !== (bytes[3] === 0)
  if (isWide) return foreign('looks like UTF-16 text without a byte order mark; write it as UTF-8')
  return foreign('is a binary file, not text; give YAML, JSON or a ruleset as its command prints it')
}

function refuseEncoding(bytes: Buffer): Decoded {
  let line = 1
  for (let start = 0; ; line++) {
    const newline = bytes.indexOf(10, start)
    if (newline < 0 || !isUtf8(bytes.subarray(start, newline))) break
    start = newline + 1
  }
  return foreign(`is not UTF-8 text (line ${line} is the first that is not); write it as UTF-8`)
}

function foreign(message: string): Decoded {
  return { kind: 'foreign', message }
}

function startsWith(bytes: Buffer, magic: readonly number[]): boolean {
  return bytes.length >= magic.length && magic.every((byte, index) => bytes[index] === byte)
}

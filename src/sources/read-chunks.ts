/** Reading a text piece by piece: a file too large to hold, a pipe, or standard input (`-`), packed or not. */
import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { Failure } from '#base/failure'
import { explainError } from './explain-error'
import { kindOfPath, progressOf, type ReadOptions } from './read-text'
import { codeOf, reasonOf } from './system-error'

/** Throws `Failure` when the path cannot be read, or holds no text, at whatever place that shows. */
export async function* readChunks(path: string, options: ReadOptions = {}): AsyncGenerator<string> {
  const name = path === '-' ? 'standard input' : path
  const progress = progressOf(options)
  const bytes = path === '-' ? (options.stdin ?? process.stdin) : await openFile(path)
  let size = 0
  const decoder = new TextDecoder('utf-8', { fatal: true })
  try {
    for await (const chunk of unpack(bytes)) {
      size += chunk.length
      const done = size
      progress.tell(() => `reading ${name}: ${Math.floor(done / 1e6)} MB so far`)
      yield decode(decoder, chunk, name)
    }
    yield decode(decoder, undefined, name)
  } catch (error) {
    throw error instanceof Failure ? error : await explainChunk(path, name, error)
  }
}

async function openFile(path: string): Promise<AsyncIterable<Uint8Array>> {
  if ((await kindOfPath(path)) === 'folder') {
    throw new Failure('input.unreadable', `${path} is a folder, where one file is wanted; name a file in it`)
  }
  return createReadStream(path, { highWaterMark: 1024 * 1024 })
}

/** The first bytes tell whether it is gzip. */
async function* unpack(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const source = bytes[Symbol.asyncIterator]()
  const first = await source.next()
  if (first.done === true) return
  const whole = rejoin(first.value, source)
  const isPacked = first.value[0] === 0x1f && first.value[1] === 0x8b
  if (!isPacked) {
    yield* whole
    return
  }
  const gunzip = createGunzip({ chunkSize: 1024 * 1024 })
  // The error of either side comes out of the loop over the unpacked bytes.
  pipeline(whole, gunzip, () => {})
  yield* gunzip
}

async function* rejoin(first: Uint8Array, rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield first
  for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value
}

function decode(decoder: InstanceType<typeof TextDecoder>, chunk: Uint8Array | undefined, name: string): string {
  try {
    return chunk === undefined ? decoder.decode() : decoder.decode(chunk, { stream: true })
  } catch (error) {
    throw new Failure('input.unreadable', `${name} is not UTF-8 text; write it as UTF-8`, error)
  }
}

async function explainChunk(path: string, name: string, error: unknown): Promise<Failure> {
  const code = codeOf(error)
  if (code === 'Z_BUF_ERROR') {
    return new Failure(
      'input.unreadable',
      `${name} cannot be read: the gzip data ends too early; write the file again`,
      error,
    )
  }
  if (code.startsWith('Z_')) {
    return new Failure(
      'input.unreadable',
      `${name} cannot be read: its gzip data is damaged; write the file again`,
      error,
    )
  }
  if (path === '-') return new Failure('input.unreadable', `standard input cannot be read: ${reasonOf(error)}`, error)
  return explainError(path, error)
}

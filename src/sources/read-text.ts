/** Reading one text: a file, a pipe, or standard input (`-`), packed or not. */
import { createReadStream } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import { Failure } from '#base/failure'
import { type Decoded, decodeText, mostBytes, type Named, tooLarge } from './decode-text'
import { explainError } from './explain-error'
import { type Progress, startProgress } from './progress'

export type ReadOptions = {
  readonly stdin?: AsyncIterable<Uint8Array>
  /** Where news of a long reading go; standard error unless given. */
  readonly say?: (sentence: string) => void
  /** Milliseconds of any clock. */
  readonly now?: () => number
  /** What to do about an input that is too large; that of objects unless given. */
  readonly remedy?: string
}

const objectsRemedy = 'split it into several files, or take fewer kinds or namespaces with kubectl get'

/** `name` is what a sentence calls the input. */
export type Read = { readonly name: string; readonly size: number; readonly decoded: Decoded }

/** Throws `Failure` when the path cannot be read or holds no text. */
export async function readText(path: string, options: ReadOptions = {}): Promise<string> {
  const remedy = 'check that it is the file that was meant, or cut out the part that is needed'
  const { name, decoded } = await readPath(path, { ...options, remedy }, progressOf(options))
  if (decoded.kind === 'text') return decoded.text
  throw new Failure('input.unreadable', `${name} ${decoded.message}`)
}

export function progressOf({ say, now }: ReadOptions): Progress {
  return startProgress({
    say: say ?? ((sentence) => process.stderr.write(`${sentence}\n`)),
    now: now ?? (() => performance.now()),
  })
}

/** For callers that read several under one progress, and may do without what is no text. */
export async function readPath(path: string, options: ReadOptions, progress: Progress): Promise<Read> {
  const name = path === '-' ? 'standard input' : path
  const named = { name, remedy: options.remedy ?? objectsRemedy }
  const bytes = path === '-' ? await readStdin(options, named, progress) : await readFile(path, named, progress)
  return { name, size: bytes.length, decoded: await decodeText(bytes, named) }
}

async function readStdin({ stdin = process.stdin }: ReadOptions, named: Named, progress: Progress): Promise<Buffer> {
  if (stdin === process.stdin && process.stdin.isTTY) {
    progress.announce('reading objects from standard input; end them with Ctrl-D')
  }
  try {
    return await readStream(stdin, named, progress)
  } catch (error) {
    throw error instanceof Failure ? error : await explainError('standard input', error)
  }
}

/** What a path is: a `folder` for the caller that knows what to do with one; a file without a size may still hold something. */
export async function kindOfPath(path: string): Promise<'folder' | 'file' | 'stream'> {
  try {
    const stats = await stat(path)
    return stats.isDirectory() ? 'folder' : stats.isFile() && stats.size > 0 ? 'file' : 'stream'
  } catch (error) {
    throw await explainError(path, error)
  }
}

async function readFile(path: string, named: Named, progress: Progress): Promise<Buffer> {
  const kind = await kindOfPath(path)
  if (kind === 'folder') {
    throw new Failure('input.unreadable', `${path} is a folder, where one file is wanted; name a file in it`)
  }
  try {
    return kind === 'file'
      ? await readWhole(path, named, progress)
      : await readStream(createReadStream(path), named, progress)
  } catch (error) {
    throw error instanceof Failure ? error : await explainError(path, error)
  }
}

const chunkBytes = 32 * 1024 * 1024

async function readWhole(path: string, { remedy }: Named, progress: Progress): Promise<Buffer> {
  const handle = await open(path)
  try {
    const { size } = await handle.stat()
    if (size > mostBytes) throw tooLarge(path, remedy)
    const buffer = Buffer.allocUnsafe(size)
    let filled = 0
    while (filled < size) {
      const { bytesRead } = await handle.read(buffer, filled, Math.min(chunkBytes, size - filled), filled)
      if (bytesRead === 0) break
      filled += bytesRead
      const done = filled
      progress.tell(() => `reading ${path}: ${megabytes(done)} of ${megabytes(size)} MB`)
    }
    return buffer.subarray(0, filled)
  } finally {
    await handle.close()
  }
}

async function readStream(
  stream: AsyncIterable<Uint8Array>,
  { name, remedy }: Named,
  progress: Progress,
): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of stream) {
    size += chunk.length
    if (size > mostBytes) throw tooLarge(name, remedy)
    chunks.push(chunk)
    const done = size
    progress.tell(() => `reading ${name}: ${megabytes(done)} MB so far`)
  }
  return Buffer.concat(chunks)
}

export function megabytes(bytes: number): string {
  return bytes < 1e6 ? (bytes / 1e6).toFixed(1) : String(Math.round(bytes / 1e6))
}

/** Objects in files and folders, read again when they change; what cannot be read any more counts on as it was read last. */
import { createHash } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { Failure } from '#base/failure'
import type { Finding } from '#base/finding'
import { buildCluster } from '#manifests/build-cluster'
import { parseManifestText } from '#manifests/parse-text'
import type { RawObject } from '#manifests/text/raw-object'
import { listFolder } from './list-folder'
import { quietTimer } from './quiet-timer'
import { kindOfPath, progressOf, type ReadOptions, readPath } from './read-text'
import { watchFolders } from './watch-folders'
import type { Watch, WatchHandlers, WatchObjects } from './watch-source'

export type FileWatchOptions = ReadOptions & {
  /** Milliseconds without a change before the files are read: what is being written is not read by half. */
  readonly quietMs?: number
  /** Of all files together, unpacked: to read more would leave whoever watches with time and memory for nothing else. */
  readonly mostBytes?: number
}

/** What is known of one file. */
type Known = {
  /** Of the text that was read last, whether it was of use or not; empty where it may change unnoticed. */
  readonly stamp: string
  readonly digest: string
  /** Bytes of the text that `objects` are of. */
  readonly size: number
  readonly objects: readonly RawObject[]
  readonly findings: readonly Finding[]
  /** It was never read whole. */
  readonly isPartial: boolean
  /** Why what stands there now is not used. */
  readonly trouble?: string
}

/** What stands at a place and is not used; `dueAt` by the clock of `performance`. */
type Trouble = { readonly sentence: string; readonly dueAt: number; isTold: boolean }

const usualQuietMs = 10
/** What is being written may be unreadable for a moment: only what stays so is told. */
const patienceMs = 500
/** A file system's clock may stand still that long between two writes. */
const stampDoubtMs = 100

/** Each file is one of the paths, or lies in a folder that is; `-` is read once. */
export function watchFiles(paths: readonly string[], options: FileWatchOptions = {}): WatchObjects {
  return (handlers) => startWatch(paths, options, handlers)
}

function startWatch(paths: readonly string[], options: FileWatchOptions, handlers: WatchHandlers): Watch {
  const known = new Map<string, Known>()
  const troubled = new Map<string, Trouble>()
  let patience: NodeJS.Timeout | undefined
  let scanning: Promise<void> | undefined
  let isAgain = false
  let isFirst = true
  let isClosed = false
  const timer = quietTimer(start)
  const folders = watchFolders(() => schedule(options.quietMs ?? usualQuietMs))

  function schedule(ms: number): void {
    if (!isClosed) timer.wake(ms)
  }

  function start(): void {
    isAgain = scanning !== undefined
    scanning ??= scan().finally(() => {
      scanning = undefined
      if (isAgain) start()
    })
  }

  async function scan(): Promise<void> {
    isAgain = false
    const troubles = new Map<string, string>()
    const { files, isPartial, places } = await listFiles(paths, known, troubles)
    folders.watch(places)
    let isChanged = isFirst || [...known.keys()].some((file) => !files.includes(file))
    for (const file of [...known.keys()]) if (!files.includes(file)) known.delete(file)
    for (const file of files) {
      const before = known.get(file)
      const now = await readAgain(file, before, { ...options, room: roomFor(file) })
      isChanged ||= now.objects !== before?.objects
      known.set(file, now)
      if (now.trouble !== undefined) troubles.set(file, now.trouble)
    }
    if (isClosed) return
    tellTroubles(troubles)
    if (!isChanged) return
    isFirst = false
    const all = files.flatMap((file) => known.get(file) ?? [])
    const built = buildCluster(all.flatMap(({ objects }) => objects))
    handlers.take({
      cluster: built.value,
      findings: [...all.flatMap(({ findings }) => findings), ...built.findings],
      isPartial: isPartial || all.some((one) => one.isPartial),
    })
  }

  /** What was read already keeps its room: what comes anew must fit in beside it. */
  function roomFor(file: string): number {
    const { mostBytes = Number.POSITIVE_INFINITY } = options
    let used = 0
    for (const [other, { size }] of known) if (other !== file) used += size
    return mostBytes - used
  }

  /** Once it has stayed a while, but for the first reading of all, which nobody was writing to. */
  function tellTroubles(troubles: ReadonlyMap<string, string>): void {
    for (const [place, { sentence }] of troubled) if (troubles.get(place) !== sentence) troubled.delete(place)
    const dueAt = performance.now() + (isFirst ? 0 : patienceMs)
    for (const [place, sentence] of troubles) {
      if (!troubled.has(place)) troubled.set(place, { sentence, dueAt, isTold: false })
    }
    tellDue()
  }

  function tellDue(): void {
    clearTimeout(patience)
    const now = performance.now()
    const untold = [...troubled.values()].filter(({ isTold }) => !isTold)
    for (const trouble of untold.filter(({ dueAt }) => dueAt <= now)) {
      trouble.isTold = true
      handlers.tell(trouble.sentence)
    }
    const later = untold.filter(({ isTold }) => !isTold).map(({ dueAt }) => dueAt)
    if (later.length > 0) patience = setTimeout(tellDue, Math.min(...later) - now)
  }

  start()
  return {
    refresh: () => schedule(0),
    close() {
      isClosed = true
      timer.close()
      clearTimeout(patience)
      folders.close()
    },
  }
}

type Listed = {
  readonly files: readonly string[]
  /** A path of the command line could not be looked at, and nothing of it is known. */
  readonly isPartial: boolean
  /** What is to be watched. */
  readonly places: readonly string[]
}

async function listFiles(
  paths: readonly string[],
  known: ReadonlyMap<string, Known>,
  troubles: Map<string, string>,
): Promise<Listed> {
  const files: string[] = []
  let isPartial = false
  for (const path of paths) {
    try {
      const isFolder = path !== '-' && (await kindOfPath(path)) === 'folder'
      const found = isFolder ? (await listFolder(path)).files : [path]
      if (isFolder ? known.has(path) : [...known.keys()].some((file) => file.startsWith(`${path}/`))) {
        const [now, before] = isFolder ? ['folder', 'file'] : ['file', 'folder']
        throw new Failure(
          'input.unreadable',
          `${path} is a ${now} now, where a ${before} stood; put the ${before} back`,
        )
      }
      files.push(...found)
    } catch (error) {
      troubles.set(path, `${sentenceOf(error)}; what was read of it before counts on`)
      // A folder that is away for a moment takes nothing with it.
      const before = [...known.keys()].filter((file) => file === path || file.startsWith(`${path}/`))
      files.push(...before)
      isPartial ||= before.length === 0
    }
  }
  const places = [...paths, ...files].filter((path) => path !== '-').map((path) => resolve(path))
  return { files: [...new Set(files)], isPartial, places }
}

type Reading = FileWatchOptions & {
  /** Bytes that are left for this file. */
  readonly room: number
}

async function readAgain(file: string, before: Known | undefined, options: Reading): Promise<Known> {
  const isOnce = file === '-' || (await isEndless(file))
  if (isOnce && before !== undefined) return before.stamp === once ? before : { ...before, trouble: pipeTrouble(file) }
  const stampNow = isOnce ? once : await stampOf(file)
  if (before !== undefined && stampNow !== '' && stampNow === before.stamp) return before
  const { objects, findings, digest, size, trouble, isForeign, isExcess } = await readNow(file, options)
  // Whether there is room is asked again whenever anything changes.
  const stamp = isExcess === true ? '' : stampNow
  if (before !== undefined && digest !== '' && digest === before.digest) return { ...before, stamp }
  if (trouble === undefined) return { stamp, digest, size, objects, findings, isPartial: false }
  if (before !== undefined && !before.isPartial) {
    const kept = before.objects.length > 0 ? '; what was read of it before counts on' : ''
    return { ...before, stamp, digest, trouble: `${trouble}${kept}` }
  }
  return { stamp, digest, size, objects, findings, isPartial: !isForeign, trouble }
}

const once = 'once'

/** A pipe, a socket or a device: it is read once, as standard input is, since a second reading may never end. */
async function isEndless(file: string): Promise<boolean> {
  const stats = await stat(file).catch(() => undefined)
  return stats !== undefined && !stats.isFile() && !stats.isDirectory()
}

function pipeTrouble(file: string): string {
  return `${file} is a pipe or a device now, where a file stood; put the file back; what was read of it before counts on`
}

/** Empty where the file was written just now: a second write in the same tick would have the same stamp. */
async function stampOf(file: string): Promise<string> {
  try {
    const { ino, size, mtimeMs, ctimeMs } = await stat(file)
    if (Math.abs(Date.now() - ctimeMs) < stampDoubtMs) return ''
    return `${ino} ${size} ${mtimeMs} ${ctimeMs}`
  } catch {
    return ''
  }
}

type ReadNow = Pick<Known, 'digest' | 'size' | 'objects' | 'findings' | 'trouble'> & {
  /** It is readable, and holds no objects, nor ever did. */
  readonly isForeign: boolean
  readonly isExcess?: true
}

async function readNow(file: string, options: Reading): Promise<ReadNow> {
  const nothing = { digest: '', size: 0, objects: [], findings: [] }
  const { mostBytes, room } = options
  const isTooLarge = (bytes: number | undefined): boolean => bytes !== undefined && bytes > room
  const excess = (): ReadNow => ({
    ...nothing,
    isForeign: false,
    isExcess: true,
    trouble: excessOf(file, mostBytes ?? 0),
  })
  try {
    if (isTooLarge((await stat(file).catch(() => undefined))?.size)) return excess()
    const { decoded, name } = await readPath(file, options, progressOf(options))
    if (decoded.kind === 'foreign') return { ...nothing, isForeign: true, trouble: `${name} ${decoded.message}` }
    const size = Buffer.byteLength(decoded.text)
    if (isTooLarge(size)) return excess()
    const digest = createHash('sha256').update(decoded.text).digest('hex')
    const parsed = parseManifestText(decoded.text, file)
    const { refusal } = parsed
    if (refusal !== undefined) {
      const isForeign = refusal.reason === 'foreign' || refusal.reason === 'empty'
      return { ...nothing, digest, isForeign, trouble: `${name} is not used: ${refusal.message}` }
    }
    const { value: objects, findings } = parsed
    const broken = findings.find(({ code }) => code === 'manifest.broken-document')
    if (broken === undefined) return { digest, size, objects, findings, isForeign: false }
    const trouble = `${name} is not used whole: line ${broken.origin?.line}: ${broken.message}`
    return { digest, size, objects, findings, isForeign: false, trouble }
  } catch (error) {
    return { ...nothing, isForeign: false, trouble: sentenceOf(error) }
  }
}

function excessOf(file: string, most: number): string {
  const megabytes = Math.round(most / 1e6)
  return `${file} is not used: with it the objects would be more than ${megabytes} MB; give fewer kinds and namespaces, those of this node’s attachments are enough`
}

/** Bugs go on as what they are. */
function sentenceOf(error: unknown): string {
  if (error instanceof Failure) return error.message
  throw error
}

/** A private bpffs and the pins in it: objects that outlive the process that made them. */
import {
  closeSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { Failure } from '#base/failure'
import { type Bpf, kernelFailure, succeed } from './bpf-sys'

const readOnly = 8
const enoent = 2

/** bpffs refuses dots and slashes; `_` begins an escape, so that no two names meet. */
export function encodePinName(name: string): string {
  return name.replace(/[^A-Za-z0-9:@-]/g, (character) => {
    const bytes = [...new TextEncoder().encode(character)]
    return bytes.map((byte) => `_${byte.toString(16).padStart(2, '0')}`).join('')
  })
}

export function decodePinName(encoded: string): string {
  const bytes: number[] = []
  for (let index = 0; index < encoded.length; index++) {
    const isEscape = encoded[index] === '_'
    bytes.push(isEscape ? Number.parseInt(encoded.slice(index + 1, index + 3), 16) : encoded.charCodeAt(index))
    if (isEscape) index += 2
  }
  return new TextDecoder().decode(Uint8Array.from(bytes))
}

/** Mounts one at the folder unless it lies in one already. */
export function mountBpffs(bpf: Bpf, folder: string): void {
  mkdirSync(folder, { recursive: true })
  if (isOnBpffs(folder)) return
  succeed(bpf.native.mount('portolan', folder, 'bpf', 'mode=0700'), `mounting a bpffs at ${folder}`)
}

/** By the longest mount point that holds the path. */
export function isOnBpffs(path: string): boolean {
  const mounts = readFileSync('/proc/self/mountinfo', 'latin1')
    .split('\n')
    .flatMap((line) => {
      const [before = '', after = ''] = line.split(' - ')
      const point = before.split(' ')[4]
      return point === undefined ? [] : [{ point: unescapeOctal(point), type: after.split(' ')[0] }]
    })
    .filter(({ point }) => path === point || path.startsWith(point === '/' ? '/' : `${point}/`))
  const deepest = Math.max(...mounts.map(({ point }) => point.length))
  return mounts.filter(({ point }) => point.length === deepest).at(-1)?.type === 'bpf'
}

/** The mount table writes a space as \040. */
function unescapeOctal(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))
}

/** `what` is for the sentence of a refusal. */
export function pin(bpf: Bpf, fd: number, path: string, what = path): void {
  const text = Buffer.from(`${path}\0`)
  const result = bpf.call('pin', `pin ${path}`, (attributes) => {
    attributes.pointer(0, text)
    attributes.u32(8, fd)
  })
  succeed(result, `pinning ${what}`)
}

/** Takes the place of what was pinned there, without a moment in which nothing is. */
export function repin(bpf: Bpf, fd: number, path: string): void {
  const beside = `${path}-new`
  unpin(beside)
  pin(bpf, fd, beside)
  renameSync(beside, path)
}

export function openPin(bpf: Bpf, path: string, access: 'read' | 'write' = 'write'): number | undefined {
  if (!existsSync(path)) return undefined
  const text = Buffer.from(`${path}\0`)
  const result = bpf.call('openPin', `open ${path}`, (attributes) => {
    attributes.pointer(0, text)
    attributes.u32(12, access === 'read' ? readOnly : 0)
  })
  // Another process may have taken it away meanwhile.
  if (result === -enoent) return undefined
  if (result < 0) throw kernelFailure(-result, `opening the pin ${path}`)
  return result
}

/** Undefined where there is none; the descriptor is open for that work alone, also where it fails. */
export function withPin<T>(bpf: Bpf, path: string, work: (fd: number) => T): T | undefined {
  const fd = openPin(bpf, path)
  if (fd === undefined) return undefined
  try {
    return work(fd)
  } finally {
    closeSync(fd)
  }
}

export function unpin(path: string): void {
  rmSync(path, { force: true })
}

/** What goes while it is listed is none. */
export function listPins(folder: string): readonly string[] {
  if (!existsSync(folder)) return []
  const isPin = (name: string): boolean => statSync(join(folder, name), { throwIfNoEntry: false })?.isFile() === true
  return readdirSync(folder).filter(isPin)
}

/** The whole path must lie in a bpffs that this process may write to; says so before anything is made. */
export function checkBpffs(folder: string): void {
  const path = resolve(folder)
  if (!isOnBpffs(path)) {
    throw new Failure(
      'kernel.refused',
      `${folder} is not on a bpffs; mount one there (mkdir -p ${path} && mount -t bpf bpf ${path}), as the init step does`,
    )
  }
  let ancestor = path
  while (!existsSync(ancestor)) ancestor = dirname(ancestor)
  const probe = join(ancestor, `probe-${process.pid}`)
  try {
    mkdirSync(probe)
    rmdirSync(probe)
  } catch (cause) {
    throw new Failure('kernel.refused', `${ancestor} cannot be written to: ${remedyOf(cause)}`, cause)
  }
}

/** With all above it, or nothing; only its owner may look into it. */
export function makeFolder(path: string): void {
  const missing: string[] = []
  for (let at = resolve(path); !existsSync(at); at = dirname(at)) missing.push(at)
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 })
  } catch (cause) {
    for (const at of missing) if (existsSync(at)) rmdirSync(at)
    const hasDots = path.split('/').some((part) => part.includes('.') && part !== '.' && part !== '..')
    const remedy = codeOf(cause) === 'EPERM' && hasDots ? noDots : remedyOf(cause)
    throw new Failure('kernel.refused', `${path} cannot be made: ${remedy}`, cause)
  }
}

const noDots = 'names on a bpffs hold no dots (EPERM); give a folder without one'

function codeOf(cause: unknown): unknown {
  return cause instanceof Error && 'code' in cause ? cause.code : undefined
}

function remedyOf(cause: unknown): string {
  const code = codeOf(cause)
  if (code === 'EROFS') return 'it is mounted read-only (EROFS); mount it read-write (mount -o remount,rw)'
  if (code === 'EACCES' || code === 'EPERM') return `its owner is another user (${code}); run as that user or as root`
  if (code === 'ENOTDIR' || code === 'EEXIST') return `it is no folder (${code}); give the folder of a bpffs`
  if (code === 'ENAMETOOLONG') return 'its name is too long (ENAMETOOLONG); give a shorter one'
  return cause instanceof Error ? cause.message : String(cause)
}

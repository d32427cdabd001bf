/** Sentences about paths that cannot be read; for one that does not exist, the nearest that does. */
import { readdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { Failure } from '#base/failure'
import { codeOf, reasonOf } from './system-error'

export async function explainError(path: string, error: unknown): Promise<Failure> {
  const code = codeOf(error)
  if (code === 'ENOENT' || code === 'ENOTDIR') return explainMissing(path, error)
  if (code === 'EACCES' || code === 'EPERM') {
    return new Failure('input.unreadable', `${path} may not be read by this user; change its permissions`, error)
  }
  return new Failure('input.unreadable', `${path} cannot be read (${reasonOf(error)}); check the file`, error)
}

async function explainMissing(path: string, cause: unknown): Promise<Failure> {
  const folder = dirname(path)
  const names = await readdir(folder).catch(() => undefined)
  if (names?.includes(basename(path)) === true) {
    const message = `${path} is a link, and there is no file or folder where it leads; mend it, or delete it`
    return new Failure('input.unreadable', message, cause)
  }
  const nearest = names === undefined ? undefined : findNearest(basename(path), names)
  const remedy =
    names === undefined
      ? `nor is there a folder ${folder}; check the path`
      : nearest === undefined
        ? 'check the path'
        : `did you mean ${join(folder, nearest)}?`
  return new Failure('input.unreadable', `there is no file or folder ${path}; ${remedy}`, cause)
}

/** The same name with another ending, else one that differs in a letter of every four. Hidden files answer hidden names alone. */
function findNearest(wanted: string, names: readonly string[]): string | undefined {
  const sorted = names.filter((name) => name.startsWith('.') === wanted.startsWith('.')).sort()
  const sameStem = sorted.find((name) => stemOf(name) === stemOf(wanted))
  if (sameStem !== undefined) return sameStem
  const most = Math.max(1, Math.floor(stemOf(wanted).length / 4))
  const near = sorted.map((name) => ({ name, distance: distanceBetween(stemOf(name), stemOf(wanted)) }))
  return near.filter(({ distance }) => distance <= most).sort((a, b) => a.distance - b.distance)[0]?.name
}

function stemOf(name: string): string {
  return name.toLowerCase().replace(/(?:\.(?:ya?ml|json|txt))?(?:\.gz)?$/, '')
}

/** Letters to put in, take out or change to get from one word to the other. */
function distanceBetween(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}

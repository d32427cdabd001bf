/** A status file written whole: beside its place, then renamed into it, so that nobody reads half of it. */
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { Failure } from '#base/failure'

export function writeStatusFile(path: string, patch: object): void {
  const beside = `${path}.part`
  try {
    makeAll(dirname(path))
    writeFileSync(beside, `${JSON.stringify(patch, undefined, 2)}\n`)
    renameSync(beside, path)
  } catch (cause) {
    drop(beside)
    throw cannotWrite(path, cause)
  }
}

export function makeStatusFolder(path: string): void {
  try {
    makeAll(path)
    readdirSync(path)
  } catch (cause) {
    throw cannotWrite(path, cause)
  }
}

function drop(path: string): void {
  try {
    rmSync(path, { force: true })
  } catch {
    // Where it cannot even be looked for, nothing was written.
  }
}

/** Node's own recursive mkdir never ends where the system says that a folder is missing which is there, as in /proc. */
function makeAll(path: string): void {
  if (!existsSync(path)) {
    const above = dirname(path)
    if (above !== path) makeAll(above)
  }
  try {
    mkdirSync(path)
  } catch (cause) {
    // Another process was faster; a file in its place shows in what is done next.
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') throw cause
  }
}

function cannotWrite(path: string, cause: unknown): Failure {
  const { message } = cause as Error
  return new Failure('input.unreadable', `the status ${path} cannot be written: ${message}; check --status`, cause)
}

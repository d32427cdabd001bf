/** A status file written whole: beside its place, then renamed into it, so that nobody reads half of it. */
import { readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { Failure } from '#base/failure'
import { makeFolders } from './make-folders'

export function writeStatusFile(path: string, patch: object): void {
  const beside = `${path}.part`
  try {
    makeFolders(dirname(path))
    writeFileSync(beside, `${JSON.stringify(patch, undefined, 2)}\n`)
    renameSync(beside, path)
  } catch (cause) {
    drop(beside)
    throw cannotWrite(path, cause)
  }
}

export function makeStatusFolder(path: string): void {
  try {
    makeFolders(path)
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

function cannotWrite(path: string, cause: unknown): Failure {
  const { message } = cause as Error
  return new Failure('input.unreadable', `the status ${path} cannot be written: ${message}; check --status`, cause)
}

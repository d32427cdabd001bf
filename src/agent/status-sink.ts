/** Where a node's entries go: an API server, or a folder of files that stand for its patches. */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Failure } from '#base/failure'
import { readStatusPatch, type StatusObject, type StatusPatch, statusFilePath, statusFolderOf } from '#wire/status-file'

export type StatusSink = {
  /** What this node's agent wrote before. */
  readonly load: () => Promise<readonly StatusPatch[]>
  readonly write: (patch: StatusPatch) => Promise<void>
  /** Takes this node's entry out of the object. */
  readonly remove: (object: StatusObject) => Promise<void>
}

/** For an agent that is told of no place: what it would say is said nowhere. */
export const noStatus: StatusSink = {
  load: async () => [],
  write: async () => {},
  remove: async () => {},
}

/** `folder` holds one folder an agent; each file is written whole, beside its place, and then renamed into it. */
export function statusFiles(folder: string, node: string): StatusSink {
  const own = join(folder, statusFolderOf(node))
  return {
    load: async () => {
      makeFolder(own)
      return readdirSync(own, { recursive: true, encoding: 'utf8' })
        .filter((name) => name.endsWith('.json'))
        .flatMap((name) => readPatch(join(own, name)))
    },
    write: async (patch) => {
      const path = join(folder, statusFilePath(node, patch.metadata))
      const beside = `${path}.part`
      try {
        mkdirSync(dirname(path), { recursive: true })
        writeFileSync(beside, `${JSON.stringify(patch, undefined, 2)}\n`)
        renameSync(beside, path)
      } catch (cause) {
        rmSync(beside, { force: true })
        throw cannotWrite(path, cause)
      }
    },
    remove: async (object) => {
      const path = join(folder, statusFilePath(node, object))
      rmSync(path, { force: true })
      try {
        rmdirSync(dirname(path))
      } catch {
        // Other bindings of the namespace have files there.
      }
    },
  }
}

/** A file that another hand wrote, or that a full disk cut short, is no entry: it is written anew. */
function readPatch(path: string): readonly StatusPatch[] {
  try {
    const reading = readStatusPatch(JSON.parse(readFileSync(path, 'utf8')))
    return reading.kind === 'patch' ? [reading.patch] : []
  } catch {
    return []
  }
}

function makeFolder(path: string): void {
  try {
    mkdirSync(path, { recursive: true })
  } catch (cause) {
    throw cannotWrite(path, cause)
  }
}

function cannotWrite(path: string, cause: unknown): Failure {
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new Failure('input.unreadable', `the status ${path} cannot be written: ${reason}; check --status`, cause)
}

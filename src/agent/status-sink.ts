/** Where a node's entries go: an API server, or a folder of files that stand for its patches. */
import { readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Failure } from '#base/failure'
import { makeStatusFolder, writeStatusFile } from '#sources/write-status-file'
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
      makeStatusFolder(own)
      return orFailure(own, () => readdirSync(own, { recursive: true, encoding: 'utf8' }))
        .filter((name) => name.endsWith('.json'))
        .flatMap((name) => readPatch(join(own, name)))
    },
    write: async (patch) => {
      writeStatusFile(join(folder, statusFilePath(node, patch.metadata)), patch)
    },
    remove: async (object) => {
      const path = join(folder, statusFilePath(node, object))
      orFailure(path, () => rmSync(path, { force: true }))
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

function orFailure<T>(path: string, work: () => T): T {
  try {
    return work()
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new Failure('input.unreadable', `the status ${path} is out of reach: ${reason}; check --status`, cause)
  }
}

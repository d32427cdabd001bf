/** Where a node's entries go: an API server, or a folder of files that stand for its patches. */
import { readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Failure } from '#base/failure'
import { watchFolders } from '#sources/watch-folders'
import { makeStatusFolder, writeStatusFile } from '#sources/write-status-file'
import { readStatusPatch, type StatusObject, type StatusPatch, statusFilePath, statusFolderOf } from '#wire/status-file'

export type StatusSink = {
  /** What stands there of this node's: written by its agent, or by another hand. */
  readonly load: () => Promise<readonly StatusPatch[]>
  /** Calls `changed` when somebody wrote there, this agent too; where nothing can be watched, a later look must find it. */
  readonly watch: (changed: () => void) => StatusWatch
  readonly write: (patch: StatusPatch) => Promise<void>
  /** Takes this node's entry out of the object. */
  readonly remove: (object: StatusObject) => Promise<void>
}

export type StatusWatch = {
  /** Watches what has come in the place of what was watched. */
  readonly refresh: () => void
  readonly close: () => void
}

const noWatch: StatusWatch = { refresh: () => {}, close: () => {} }

/** For an agent that is told of no place: what it would say is said nowhere. */
export const noStatus: StatusSink = {
  load: async () => [],
  watch: () => noWatch,
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
    watch(changed) {
      const folders = watchFolders(changed)
      return { refresh: () => folders.watch([dirname(own)]), close: folders.close }
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

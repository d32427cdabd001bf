/** Objects in files, and statuses in a folder that agents and the controller write into: a cluster without an API server. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { Failure } from '#base/failure'
import { mergeStatuses, type Said } from '#enforce/merge-status'
import type { Cluster } from '#model/cluster'
import { readFrom } from '#sources/read-from'
import type { ReadOptions } from '#sources/read-text'
import { readStatusFolder } from '#sources/status-folder'
import { watchFiles } from '#sources/watch-files'
import { watchFolders } from '#sources/watch-folders'
import type { ObjectsRead, Watch, WatchHandlers } from '#sources/watch-source'
import { makeStatusFolder, writeStatusFile } from '#sources/write-status-file'
import { conditionFilePath } from '#wire/condition-patch'
import type { ObjectStore } from './object-store'

export type FileStoreOptions = ReadOptions & {
  readonly from: readonly string[]
  /** Without it statuses are those of the objects, and nothing can be written. */
  readonly status?: string
}

/** What several agents write at once is read once. */
const quietMs = 20
/** Reading everything anew takes at most a fifth of the time, however often agents write. */
const restPerRead = 4

export function openFileStore(options: FileStoreOptions): ObjectStore {
  const { from, status } = options
  return {
    async read() {
      const { value, findings } = await readFrom(from, options)
      const said = status === undefined ? nothingSaid : readStatusFolder(status)
      for (const trouble of said.troubles) options.say?.(trouble)
      const isPartial = findings.some(({ code }) => unreadCodes.includes(code))
      if (status !== undefined && !isPartial) dropLost(status, value, said)
      return { cluster: mergeStatuses(value, said), findings, isPartial }
    },
    watch: (handlers) => startWatch(options, handlers),
    async apply(patch) {
      if (status !== undefined) writeStatusFile(join(status, conditionFilePath(patch)), patch)
    },
  }
}

/** Objects may stand in what they tell of. */
const unreadCodes = ['source.unreadable-file', 'manifest.broken-document']
const nothingSaid = { nodes: [], conditions: [], troubles: [] }

function startWatch(options: FileStoreOptions, handlers: WatchHandlers): Watch {
  const { from, status } = options
  const told = new Set<string>()
  let latest: ObjectsRead | undefined
  let timer: NodeJS.Timeout | undefined
  let restMs = quietMs
  // A timer that is set already brings what is written until then, too.
  const folders = watchFolders(() => {
    timer ??= setTimeout(emit, restMs)
  })
  // What is not there cannot be watched.
  if (status !== undefined) makeStatusFolder(status)

  function emit(): void {
    clearTimeout(timer)
    timer = undefined
    if (latest === undefined) return
    const began = performance.now()
    if (status === undefined) handlers.take(latest)
    else takeWithStatus(status, latest)
    restMs = Math.max(quietMs, restPerRead * (performance.now() - began))
  }

  function takeWithStatus(folder: string, read: ObjectsRead): void {
    // Folders of agents that came meanwhile are watched from now on.
    folders.watch([folder])
    try {
      const said = readStatusFolder(folder)
      for (const trouble of said.troubles) if (!told.has(trouble)) handlers.tell(trouble)
      told.clear()
      for (const trouble of said.troubles) told.add(trouble)
      handlers.take({ ...read, cluster: mergeStatuses(read.cluster, said) })
      if (!read.isPartial) dropLost(folder, read.cluster, said)
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      handlers.tell(error.message)
    }
  }

  const objects = watchFiles(
    from,
    options,
  )({
    take(read) {
      latest = read
      emit()
    },
    tell: handlers.tell,
  })
  return {
    refresh() {
      objects.refresh()
      emit()
    },
    close() {
      clearTimeout(timer)
      folders.close()
      objects.close()
    },
  }
}

/** With an API server conditions go with their object. */
function dropLost(folder: string, cluster: Cluster, { conditions }: Pick<Said, 'conditions'>): void {
  const kinds = {
    TrafficPolicy: cluster.trafficPolicies,
    TrafficPolicyBinding: cluster.trafficPolicyBindings,
    EdgeService: cluster.edgeServices,
  }
  for (const { kind, metadata } of conditions) {
    if (kinds[kind].has(`${metadata.namespace}/${metadata.name}`)) continue
    const path = join(folder, conditionFilePath({ kind, metadata }))
    try {
      rmSync(path, { force: true })
    } catch (cause) {
      throw new Failure(
        'input.unreadable',
        `${path}, of an object that is gone, cannot be removed: ${(cause as Error).message}; remove it, or let the controller write to --status`,
        cause,
      )
    }
  }
}

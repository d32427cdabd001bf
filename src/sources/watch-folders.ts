/** Word of changes in the folders that hold some files, also behind links, and of folders that are put in their place. */
import { type FSWatcher, readdirSync, realpathSync, statSync, watch } from 'node:fs'
import { dirname, join } from 'node:path'

export type FolderWatch = {
  /** The files and folders that count from now on; what is not among them is watched no more. */
  readonly watch: (paths: readonly string[]) => void
  readonly close: () => void
}

type Watched = { readonly identity: string; readonly watcher: FSWatcher }

/** `changed` is called for any change in a folder, of whatever name: how an editor or a ConfigMap replaces a file is theirs. */
export function watchFolders(changed: () => void): FolderWatch {
  const watched = new Map<string, Watched>()
  const forget = (folder: string): void => {
    watched.get(folder)?.watcher.close()
    watched.delete(folder)
  }
  return {
    watch(paths) {
      const folders = new Set(paths.flatMap(foldersOf))
      for (const folder of [...watched.keys()]) if (!folders.has(folder)) forget(folder)
      for (const folder of folders) {
        const identity = identityOf(folder)
        if (identity === undefined || watched.get(folder)?.identity === identity) continue
        forget(folder)
        const watcher = tryWatch(folder, changed)
        if (watcher === undefined) continue
        watcher.on('error', () => forget(folder))
        watched.set(folder, { identity, watcher })
      }
    },
    close() {
      for (const folder of [...watched.keys()]) forget(folder)
    },
  }
}

/** A folder that is made anew may have the number of the one that was removed. */
function identityOf(folder: string): string | undefined {
  try {
    const { dev, ino, birthtimeNs } = statSync(folder, { bigint: true })
    return `${dev} ${ino} ${birthtimeNs}`
  } catch {
    return undefined
  }
}

/** A folder itself with all below it, the one that holds the path, and where links lead to. */
function foldersOf(path: string): readonly string[] {
  const real = realOf(path)
  const all = [path, real].flatMap((one) => [dirname(one), ...(isFolder(one) ? [one, ...foldersIn(one)] : [])])
  return [...new Set(all)]
}

function foldersIn(folder: string): readonly string[] {
  try {
    const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
    return entries.filter((entry) => entry.isDirectory()).map((entry) => join(entry.parentPath, entry.name))
  } catch {
    return []
  }
}

function realOf(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory()
  } catch {
    // Also where a file stands in the place of a folder above it.
    return false
  }
}

/** Where the system gives no more watches, the next look at everything finds what changed. */
function tryWatch(folder: string, changed: () => void): FSWatcher | undefined {
  try {
    return watch(folder, { persistent: false }, changed)
  } catch {
    return undefined
  }
}

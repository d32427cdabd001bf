/** The files of a folder that may hold objects, in an order that does not depend on the file system. */
import { readdir, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { explainError } from './explain-error'

/**
 * `ignored` are files whose names say that they hold something else, such as the logs of a cluster-info dump, and hidden
 * ones that hold objects by their names. Other hidden files and folders are nobody's business.
 */
export type FolderFiles = { readonly files: readonly string[]; readonly ignored: readonly string[] }

const wantedName = /\.(?:ya?ml|json|gz)$/i

export async function listFolder(folder: string): Promise<FolderFiles> {
  const found = { files: [], ignored: [] }
  await walk(folder, found, new Set())
  return found
}

type Found = { readonly files: string[]; readonly ignored: string[] }

/** `seen` holds the real places of folders, so that a link to one above does not go round for ever. */
async function walk(folder: string, found: Found, seen: Set<string>): Promise<void> {
  const place = await realpath(folder).catch(explain(folder))
  if (seen.has(place)) return
  seen.add(place)
  const names = await readdir(folder).catch(explain(folder))
  for (const name of names.sort()) {
    const path = join(folder, name)
    const isHidden = name.startsWith('.')
    if (isHidden && !wantedName.test(name)) continue
    // A link that leads nowhere is listed, so that reading it says so.
    const isFolder = await stat(path).then(
      (stats) => stats.isDirectory(),
      () => false,
    )
    if (isFolder && isHidden) continue
    if (isFolder) await walk(path, found, seen)
    else if (!isHidden && wantedName.test(name)) found.files.push(path)
    else found.ignored.push(path)
  }
}

function explain(folder: string): (error: unknown) => Promise<never> {
  return async (error) => {
    throw await explainError(folder, error)
  }
}

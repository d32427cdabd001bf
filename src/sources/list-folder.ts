/** The files of a folder that may hold objects, in an order that does not depend on the file system. */
import { readdir, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { explainError } from './explain-error'

/**
 * `ignored` are files whose names say that they hold something else, such as the logs of a cluster-info dump, hidden ones
 * that hold objects by their names, and pipes, sockets and devices: reading one may never end. Other hidden files and
 * folders are nobody's business.
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
    const kind = await kindOf(path)
    if (kind === 'folder' && isHidden) continue
    if (kind === 'folder') await walk(path, found, seen)
    else if (kind === 'file' && !isHidden && wantedName.test(name)) found.files.push(path)
    else found.ignored.push(path)
  }
}

/** A link that leads nowhere is a file, so that reading it says so. */
async function kindOf(path: string): Promise<'folder' | 'file' | 'other'> {
  const stats = await stat(path).catch(() => undefined)
  if (stats?.isDirectory() === true) return 'folder'
  return stats === undefined || stats.isFile() ? 'file' : 'other'
}

function explain(folder: string): (error: unknown) => Promise<never> {
  return async (error) => {
    throw await explainError(folder, error)
  }
}

/** Tables whose pins went while no agent ran: the programs on interfaces go on with what nobody can reach any more. */
import { existsSync, readdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { Failure } from '#base/failure'
import { listOf } from '#base/text'
import { datapathMaps, datapathVersion, usualSizes } from '#compile/traffic-policy/datapath-maps'
import { listPins, unpin } from './bpffs'
import { type Folders, foldersOf, makeFolders } from './datapath-tables'
import type { Native } from './native'
import { takeWriterLock, withTurn } from './writer-lock'

const shapes = datapathMaps(usualSizes)

/** What tells which interfaces there are, and whether denied packets are dropped. */
const needed: readonly string[] = [shapes.interfaces.name, shapes.config.name]

/** Where a datapath was set aside, the latest first. */
export function findLost(folder: string): readonly Folders[] {
  if (!existsSync(folder)) return []
  const pattern = new RegExp(`^v${datapathVersion}-lost-(\\d+)$`)
  return readdirSync(folder)
    .flatMap((name) => pattern.exec(name)?.[1] ?? [])
    .toSorted((one, other) => Number(other) - Number(one))
    .map((number) => foldersOf(folder, `${datapathVersion}-lost-${number}`))
}

/**
 * Tables made anew would not be those that the programs use. So what is left is set aside, for the agent to take its
 * interfaces over as an earlier version's; where nothing is attached, it is only half made, and all but its mode goes.
 */
export function setAsideLost(native: Native, folder: string): void {
  const folders = foldersOf(folder)
  if (lostTables(folders).length === 0) return
  const lock = lockAlone(native, folders)
  try {
    // Who makes the first tables pins one after the other.
    withTurn(native, makeFolders(folder).links, () => setAside(folder, folders))
  } finally {
    lock.release()
  }
}

function setAside(folder: string, folders: Folders): void {
  const lost = lostTables(folders)
  if (lost.length === 0) return
  if (!isAttachedTo(folders)) {
    for (const name of listPins(folders.tables)) if (name !== shapes.config.name) unpin(join(folders.tables, name))
    return
  }
  if (lost.some((name) => needed.includes(name))) throw unreachable(folders, lost)
  const number = findLost(folder).length + 1
  renameSync(folders.root, foldersOf(folder, `${datapathVersion}-lost-${number}`).root)
}

function lockAlone(native: Native, folders: Folders): ReturnType<typeof takeWriterLock> {
  try {
    return takeWriterLock(native, folders.root)
  } catch (cause) {
    if (!(cause instanceof Failure) || cause.code !== 'kernel.in-use') throw cause
    const lost = listOf(lostTables(folders))
    throw new Failure(
      'kernel.in-use',
      `${folders.root} has lost ${lost}, and another agent writes to it, which pins them again within five minutes; retry then, or stop it`,
      cause,
    )
  }
}

function unreachable({ root }: Folders, lost: readonly string[]): Failure {
  return new Failure(
    'kernel.refused',
    `${root} has lost ${listOf(lost)}, which the programs of its interfaces use: they go on as they are and cannot be reached; make the interfaces anew, remove the folder, then attach them again`,
  )
}

/** None where all are gone: then there is no datapath yet. */
function lostTables({ tables }: Folders): readonly string[] {
  const pinned = listPins(tables)
  const names = Object.values(shapes).map(({ name }) => name)
  const missing = names.filter((name) => !pinned.includes(name))
  return missing.length === names.length ? [] : missing
}

function isAttachedTo({ links, programs }: Folders): boolean {
  return listPins(links).length > 0 || listPins(programs).length > 0
}

/** The folder of an agent's pins, locked: it may go from under the agent with its bpffs, and come again. */
import { fstatSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { Failure } from '#base/failure'
import { isOnBpffs } from './bpffs'
import { foldersOf, makeFolders } from './datapath-tables'
import type { Native } from './native'
import { takeWriterLock } from './writer-lock'

export type PinPlace = {
  /** Whether what is found by the path is what was locked. */
  readonly isHere: () => boolean
  /** Why nothing can be pinned there now; undefined where it is here. */
  readonly whyLost: () => string | undefined
  /** Makes the folders that are missing, and locks them where the path leads elsewhere now; a Failure where it cannot be. */
  readonly settle: () => void
  readonly release: () => void
}

export function openPinPlace(native: Native, folder: string): PinPlace {
  const { root } = makeFolders(folder)
  let lock = takeWriterLock(native, root)
  const isHere = (): boolean => isSameFile(root, lock.fd)
  return {
    isHere,
    whyLost: () => (isHere() ? undefined : explainLoss(folder)),
    settle() {
      if (isHere()) {
        makeFolders(folder)
        return
      }
      if (!isOnBpffs(resolve(folder))) throw new Failure('kernel.refused', explainLoss(folder))
      makeFolders(folder)
      const anew = takeWriterLock(native, root)
      lock.release()
      lock = anew
    },
    release: () => lock.release(),
  }
}

function isSameFile(path: string, fd: number): boolean {
  try {
    const [one, other] = [statSync(path, { bigint: true }), fstatSync(fd, { bigint: true })]
    return one.ino === other.ino && one.dev === other.dev
  } catch {
    return false
  }
}

function explainLoss(folder: string): string {
  const path = resolve(folder)
  const stays = 'what is bound decides on while this agent runs, and nothing new can be installed'
  if (isOnBpffs(path)) {
    return `${foldersOf(folder).root} was removed, and the pins of the datapath with it: ${stays}; everything is pinned again within 5 s`
  }
  return `${folder} is no bpffs any more, and the pins of the datapath are gone with it: ${stays}; mount it again (mkdir -p ${path} && mount -t bpf bpf ${path}), and everything is pinned again within 5 s`
}

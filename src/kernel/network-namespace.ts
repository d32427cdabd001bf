/** Work inside another network namespace, on this thread and without waiting, and the way back. */
import { closeSync, existsSync, fstatSync, openSync, readdirSync, statSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { Failure } from '#base/failure'
import { kernelFailure } from './bpf-sys'
import type { Native } from './native'

/**
 * `path` is as `/run/netns/NAME` or `/proc/PID/ns/net`; without one, and for this thread's own, nothing is entered: that
 * would ask for the capability SYS_ADMIN. A thread that could not come back would go on in the wrong namespace unnoticed,
 * so the process ends then.
 */
export function insideNamespace<T>(native: Native, path: string | undefined, work: () => T): T {
  if (path === undefined) return work()
  const target = openNamespace(path)
  if (fstatSync(target, { bigint: true }).ino === namespaceInode(ownNamespace)) {
    closeSync(target)
    return work()
  }
  const home = openSync(ownNamespace, 'r')
  try {
    const entered = native.setns(target)
    if (entered < 0) throw cannotEnter(-entered, path)
    try {
      return work()
    } finally {
      const back = native.setns(home)
      if (back < 0) {
        process.stderr.write(`${kernelFailure(-back, 'leaving a network namespace').message}\n`)
        process.abort()
      }
    }
  } finally {
    closeSync(home)
    closeSync(target)
  }
}

function cannotEnter(errno: number, path: string): Failure {
  if (errno === constants.errno.EPERM) {
    return new Failure(
      'kernel.not-permitted',
      `the network namespace ${path} may not be entered (EPERM); run with the capability SYS_ADMIN as well, or inside that namespace`,
    )
  }
  if (errno === constants.errno.EINVAL) {
    return new Failure(
      'usage.not-found',
      `${path} is no network namespace; give one such as /run/netns/NAME or /proc/PID/ns/net`,
    )
  }
  return kernelFailure(errno, `entering the network namespace ${path}`)
}

function openNamespace(path: string): number {
  try {
    return openSync(path, 'r')
  } catch (cause) {
    throw new Failure(
      'usage.not-found',
      `the network namespace ${path} could not be opened; give a path such as /run/netns/NAME`,
      cause,
    )
  }
}

export const ownNamespace = '/proc/thread-self/ns/net'
const namedNamespaces = '/run/netns'

export function namespaceInode(path: string): bigint {
  return statSync(path, { bigint: true }).ino
}

/** A path to the namespace of that inode: this thread's own, or one that ip(8) gave a name. */
export function findNamespace(inode: bigint): string | undefined {
  return knownNamespaces().find((path) => isNamespace(path, inode))
}

export function knownNamespaces(): readonly string[] {
  const named = existsSync(namedNamespaces)
    ? readdirSync(namedNamespaces).map((name) => join(namedNamespaces, name))
    : []
  return [ownNamespace, ...named]
}

/** One that was listed may be gone a moment later. */
function isNamespace(path: string, inode: bigint): boolean {
  return statSync(path, { bigint: true, throwIfNoEntry: false })?.ino === inode
}

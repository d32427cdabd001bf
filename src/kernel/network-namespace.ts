/** Work inside another network namespace, on this thread and without waiting, and the way back. */
import { closeSync, existsSync, openSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Failure } from '#base/failure'
import { kernelFailure, succeed } from './bpf-sys'
import type { Native } from './native'

/**
 * `path` is as `/run/netns/NAME` or `/proc/PID/ns/net`. A thread that could not come back would go on in the wrong
 * namespace unnoticed, so the process ends then.
 */
export function insideNamespace<T>(native: Native, path: string, work: () => T): T {
  const target = openNamespace(path)
  const home = openSync(ownNamespace, 'r')
  try {
    succeed(native.setns(target), `entering the network namespace ${path}`)
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
  const named = existsSync(namedNamespaces)
    ? readdirSync(namedNamespaces).map((name) => join(namedNamespaces, name))
    : []
  return [ownNamespace, ...named].find((path) => namespaceInode(path) === inode)
}

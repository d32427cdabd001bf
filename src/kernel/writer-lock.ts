/** One writer a folder: a lock that ends with its process, however that ends. */
import { closeSync, openSync } from 'node:fs'
import { Failure } from '#base/failure'
import { kernelFailure } from './bpf-sys'
import type { Native } from './native'

const eagain = 11

/** `fd` is of the folder that is locked. */
export type WriterLock = { readonly fd: number; readonly release: () => void }

export function takeWriterLock(native: Native, folder: string): WriterLock {
  const fd = openSync(folder, 'r')
  const result = native.flock(fd)
  if (result >= 0) return { fd, release: () => closeSync(fd) }
  closeSync(fd)
  if (result === -eagain) {
    throw new Failure(
      'kernel.in-use',
      `another agent writes to ${folder}; stop it, or give this one a folder of its own`,
    )
  }
  throw kernelFailure(-result, `locking ${folder}`)
}

/** Waits for the lock, a few seconds at most. */
export function withTurn<T>(native: Native, folder: string, work: () => T): T {
  const fd = openSync(folder, 'r')
  const end = Date.now() + 10_000
  try {
    while (native.flock(fd) < 0) {
      if (Date.now() > end) {
        throw new Failure('kernel.in-use', `another process has been attaching interfaces in ${folder} for 10 s; retry`)
      }
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20)
    }
    return work()
  } finally {
    closeSync(fd)
  }
}

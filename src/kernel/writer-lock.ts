/** One writer a folder: a lock that ends with its process, however that ends. */
import { closeSync, openSync } from 'node:fs'
import { Failure } from '#base/failure'
import { kernelFailure } from './bpf-sys'
import type { Native } from './native'

const eagain = 11

export function takeWriterLock(native: Native, folder: string): { readonly release: () => void } {
  const fd = openSync(folder, 'r')
  const result = native.flock(fd)
  if (result >= 0) return { release: () => closeSync(fd) }
  closeSync(fd)
  if (result === -eagain) {
    throw new Failure(
      'kernel.in-use',
      `another agent writes to ${folder}; stop it, or give this one a folder of its own`,
    )
  }
  throw kernelFailure(-result, `locking ${folder}`)
}

/** bpf(2): one function a command over attribute bytes; what the kernel refuses becomes a Failure with its reason. */
import { Failure, type FailureCode } from '#base/failure'
import { errnoName, explainErrno } from './errno-sentences'
import { loadNative, type Native } from './native'

/** Offsets and sizes of `union bpf_attr`, as the kernel's own type information has them. */
export const commands = {
  mapCreate: { number: 0, size: 72 },
  mapLookup: { number: 1, size: 32 },
  mapUpdate: { number: 2, size: 32 },
  mapDelete: { number: 3, size: 32 },
  mapNextKey: { number: 4, size: 32 },
  programLoad: { number: 5, size: 148 },
  pin: { number: 6, size: 16 },
  openPin: { number: 7, size: 16 },
  testRun: { number: 10, size: 80 },
  programById: { number: 13, size: 12 },
  mapById: { number: 14, size: 12 },
  objectInfo: { number: 15, size: 16 },
  programQuery: { number: 16, size: 64 },
  lookupBatch: { number: 24, size: 56 },
  lookupAndDeleteBatch: { number: 25, size: 56 },
  updateBatch: { number: 26, size: 56 },
  linkCreate: { number: 28, size: 64 },
  linkUpdate: { number: 29, size: 16 },
  linkDetach: { number: 34, size: 4 },
} as const
export type Command = keyof typeof commands

export type Bpf = {
  readonly native: Native
  /** The result of zero or more, or the negative errno; `write` fills the zeroed attributes. */
  readonly call: (command: Command, step: string, write: (attributes: Attributes) => void) => number
  /** After a call: the attributes as the kernel left them. */
  readonly answer: Buffer
}

export type Attributes = {
  readonly u32: (offset: number, value: number) => void
  readonly u64: (offset: number, value: bigint) => void
  readonly pointer: (offset: number, buffer: Uint8Array) => void
  readonly name: (offset: number, name: string) => void
}

export function openBpf(native: Native = loadNative()): Bpf {
  const answer = Buffer.alloc(192)
  const attributes: Attributes = {
    u32: (offset, value) => void answer.writeUInt32LE(value >>> 0, offset),
    u64: (offset, value) => void answer.writeBigUInt64LE(BigInt.asUintN(64, value), offset),
    // The caller's own variable keeps the buffer alive until the call has returned.
    pointer: (offset, buffer) => void answer.writeBigUInt64LE(native.addressOf(buffer), offset),
    name: (offset, name) => void answer.write(name.slice(0, 15), offset, 'latin1'),
  }
  return {
    native,
    answer,
    call(command, step, write) {
      answer.fill(0)
      write(attributes)
      const { number, size } = commands[command]
      return native.bpf(number, answer, size, step)
    },
  }
}

/** The result, or a Failure that says what was tried, what the kernel answered and what to do. */
export function succeed(result: number, tried: string, detail = ''): number {
  if (result >= 0) return result
  throw kernelFailure(-result, tried, detail)
}

export function kernelFailure(errno: number, tried: string, detail = ''): Failure {
  const name = errnoName(errno)
  const sentence = `${tried} failed: ${explainErrno(name)} (${name})`
  return new Failure(codeOf(name), detail === '' ? sentence : `${sentence}\n${detail}`)
}

function codeOf(name: string): FailureCode {
  if (name === 'EPERM') return 'kernel.not-permitted'
  if (name === 'ENOMEM' || name === 'E2BIG' || name === 'ENOSPC') return 'kernel.exhausted'
  if (name === 'EBUSY' || name === 'EEXIST' || name === 'EAGAIN') return 'kernel.in-use'
  return 'kernel.refused'
}

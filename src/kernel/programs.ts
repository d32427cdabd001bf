/** Programs: loaded from an assembled listing, and run on packets that user space makes. */
import { closeSync } from 'node:fs'
import { linkProgram, type Program } from '#compile/bpf/assemble'
import { disassembleAround } from '#compile/bpf/disassemble'
import { type Bpf, kernelFailure, succeed } from './bpf-sys'
import { readObjectInfo } from './maps'

const schedulerClassifier = 3
/** Of Portolan itself; no helper it calls asks for more. */
const license = Buffer.from('Apache-2.0\0')
const logSize = 1 << 22

export type LoadedProgram = { readonly fd: number; readonly name: string }

/** Loaded without a log first: writing one costs more than the verifying. */
export function loadProgram(bpf: Bpf, name: string, program: Program, fdOf: (map: string) => number): LoadedProgram {
  const bytes = linkProgram(program, fdOf)
  const load = (log: Buffer | undefined): number =>
    bpf.call('programLoad', `load ${name}`, (attributes) => {
      attributes.u32(0, schedulerClassifier)
      attributes.u32(4, bytes.length / 8)
      attributes.pointer(8, bytes)
      attributes.pointer(16, license)
      if (log !== undefined) {
        attributes.u32(24, 1)
        attributes.u32(28, log.length)
        attributes.pointer(32, log)
      }
      attributes.name(48, name)
    })
  const first = load(undefined)
  if (first >= 0) return { fd: first, name }
  const log = Buffer.alloc(logSize)
  const second = load(log)
  if (second >= 0) return { fd: second, name }
  throw kernelFailure(-first, `loading the program ${name}`, explainLog(program, log))
}

/** The end of the verifier's log, and the program around the place it complains about. */
function explainLog(program: Program, log: Buffer): string {
  const end = log.indexOf(0)
  const lines = log
    .toString('latin1', 0, end < 0 ? log.length : end)
    .trimEnd()
    .split('\n')
  const told = lines.slice(-25)
  const slots = told.flatMap((line) => /^(\d+): \(/.exec(line)?.[1] ?? [])
  const last = Number(slots.at(-1) ?? Number.NaN)
  return ['the verifier said:', ...told, 'in the program:', ...disassembleAround(program, last)].join('\n')
}

export type ProgramInfo = {
  readonly id: number
  readonly name: string
  readonly verifiedInstructions: number
  readonly jitedBytes: number
}

export function readProgramInfo(bpf: Bpf, fd: number): ProgramInfo {
  const info = readObjectInfo(bpf, fd, 'reading what a program is')
  return {
    id: info.readUInt32LE(4),
    name: info.toString('latin1', 64, 80).replace(/\0.*$/s, ''),
    verifiedInstructions: info.readUInt32LE(216),
    jitedBytes: info.readUInt32LE(16),
  }
}

/** Undefined where it is gone, or where this process may not ask (that takes SYS_ADMIN). */
export function programNameById(bpf: Bpf, id: number): string | undefined {
  const fd = bpf.call('programById', 'open a program by its id', (attributes) => attributes.u32(0, id))
  if (fd < 0) return undefined
  try {
    return readProgramInfo(bpf, fd).name
  } finally {
    closeSync(fd)
  }
}

export type TestRun = {
  readonly packet: Uint8Array
  readonly repeat?: number
  /** A `struct __sk_buff`, for mark and the like. */
  readonly context?: Uint8Array
}

export type TestAnswer = { readonly verdict: number; readonly nanoseconds: number; readonly context: Buffer }

/** With `repeat` the time is the mean of one run; the packet keeps what a run changed in it. */
export function testRun(bpf: Bpf, fd: number, run: TestRun): TestAnswer {
  const context = Buffer.alloc(192)
  const result = bpf.call('testRun', 'test run', (attributes) => {
    attributes.u32(0, fd)
    attributes.u32(8, run.packet.length)
    attributes.pointer(16, run.packet)
    attributes.u32(32, run.repeat ?? 1)
    attributes.u32(44, context.length)
    attributes.pointer(56, context)
    if (run.context !== undefined) {
      attributes.u32(40, run.context.length)
      attributes.pointer(48, run.context)
    }
  })
  succeed(result, 'running a program on a test packet')
  return { verdict: bpf.answer.readInt32LE(4), nanoseconds: bpf.answer.readUInt32LE(36), context }
}

export function closeProgram(program: LoadedProgram): void {
  closeSync(program.fd)
}

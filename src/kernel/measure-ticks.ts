/** Measures how many ticks of its clock the kernel makes a second. */
import { clockContext, clockProgram } from '#compile/traffic-policy/program-clock'
import type { Bpf } from './bpf-sys'
import { closeProgram, loadProgram, testRun } from './programs'

const waitMilliseconds = 60
const packet = Buffer.alloc(64)

export function measureTicksPerSecond(bpf: Bpf): number {
  const program = loadProgram(bpf, 'tp_clock', clockProgram(), () => 0)
  const read = (): { readonly ticks: number; readonly nanoseconds: bigint } => {
    const { context } = testRun(bpf, program.fd, { packet, context: Buffer.alloc(192) })
    return {
      ticks: context.readUInt32LE(clockContext.ticks),
      nanoseconds: context.readBigUInt64LE(clockContext.nanoseconds),
    }
  }
  const first = read()
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, waitMilliseconds)
  const last = read()
  closeProgram(program)
  const seconds = Number(last.nanoseconds - first.nanoseconds) / 1e9
  return Math.round(((last.ticks - first.ticks) >>> 0) / seconds)
}

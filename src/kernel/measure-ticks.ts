/** Measures how many ticks of its clock the kernel makes a second. */
import { clockContext, clockProgram } from '#compile/traffic-policy/program-clock'
import type { Bpf } from './bpf-sys'
import { closeProgram, type LoadedProgram, loadProgram, testRun } from './programs'

const waitMilliseconds = 60
const usualRates = [100, 250, 300, 1000]
const packet = Buffer.alloc(64)

export function measureTicksPerSecond(bpf: Bpf): number {
  const program = loadProgram(bpf, 'tp_clock', clockProgram(), () => 0)
  try {
    return measureWith(bpf, program)
  } finally {
    closeProgram(program)
  }
}

function measureWith(bpf: Bpf, program: LoadedProgram): number {
  const read = (): { readonly ticks: number; readonly nanoseconds: bigint } => {
    const { context } = testRun(bpf, program.fd, { packet, context: Buffer.alloc(192) })
    return {
      ticks: context.readUInt32LE(clockContext.ticks),
      nanoseconds: context.readBigUInt64LE(clockContext.nanoseconds),
    }
  }
  /** Right after a tick: a part of one would count for much of so short a time. */
  const readAtTick = (): ReturnType<typeof read> => {
    const before = read()
    for (;;) {
      const now = read()
      if (now.ticks !== before.ticks) return now
    }
  }
  const first = readAtTick()
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, waitMilliseconds)
  const last = readAtTick()
  const seconds = Number(last.nanoseconds - first.nanoseconds) / 1e9
  return settle(((last.ticks - first.ticks) >>> 0) / seconds)
}

/** What kernels are built with, if it is that: a process that had to wait measures a few per cent wrong. */
export function settle(measured: number): number {
  return usualRates.find((rate) => Math.abs(measured - rate) < 0.05 * rate) ?? Math.round(measured)
}

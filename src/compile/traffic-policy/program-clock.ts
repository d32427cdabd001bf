/** A program that reads the kernel's ticks and its clock at once: how long a tick is, no file says everywhere. */
import { assemble, type Program } from '#compile/bpf/assemble'
import { createAssembler, reg } from '#compile/bpf/assembler'

/** Offsets in `struct __sk_buff` of what it leaves there; the halves of 64-bit numbers, lower first. */
export const clockContext = { ticks: 48, nanoseconds: 56 } as const

export function clockProgram(): Program {
  const a = createAssembler()
  a.mov(6, reg(1))
  a.call('jiffies64')
  a.store('u32', 6, clockContext.ticks, reg(0))
  // Coarse: the kernel sets it at the tick itself, so that the two agree.
  a.call('ktime_get_coarse_ns')
  a.store('u32', 6, clockContext.nanoseconds, reg(0))
  a.alu('rsh', 0, 32)
  a.store('u32', 6, clockContext.nanoseconds + 4, reg(0))
  a.mov(0, 0)
  a.exit()
  return assemble(a.listing)
}

/** How the datapath's program reads its tables: rows by number, what is bound to a direction, and the kernel's clock. */
import { type Label, reg } from '#compile/bpf/assembler'
import { connectionKeyLayout, type DatapathMap } from './datapath-maps'
import { type Emitter, fp, stack } from './program-frame'

/** r0 becomes the row's address or zero; its number is in r1. Array look-ups are a few instructions after the JIT. */
export function emitRow({ a }: Emitter, map: DatapathMap): void {
  a.store('u32', fp, stack.index, reg(1))
  a.mov(2, reg(fp))
  a.alu('add', 2, stack.index)
  a.loadMap(1, map)
  a.call('map_lookup_elem')
}

/** r0 becomes the snapshot that is bound to a direction of the packet's interface. */
export function emitBoundSnapshot(emitter: Emitter, directionNumber: number, isUnbound: Label): void {
  const { a } = emitter
  a.load('u32', 1, fp, stack.key + connectionKeyLayout.slot)
  a.alu('lsh', 1, 1)
  a.alu('add', 1, directionNumber)
  emitRow(emitter, 'bound')
  a.jumpIf('eq', 0, 0, isUnbound)
  a.store('u32', fp, stack.zero, 0)
  a.mov(1, reg(0))
  a.mov(2, reg(fp))
  a.alu('add', 2, stack.zero)
  a.call('map_lookup_elem')
  a.jumpIf('eq', 0, 0, isUnbound)
}

/** r0 becomes the kernel's tick count, which the JIT reads from memory: a clock would cost twenty times as much. */
export function emitNow({ a }: Emitter): void {
  a.call('jiffies64')
}

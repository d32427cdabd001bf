/** How the datapath's program reads its tables: rows by number, what is bound to a direction, and the kernel's clock. */
import { type Label, reg } from '#compile/bpf/assembler'
import { connectionKeyLayout, type DatapathMap, familyBits, ipv4KeyLayout } from './datapath-maps'
import { context, type Emitter, fp, stack } from './program-frame'
import { directionNumbers, headerLayout, statefulFlag } from './snapshot-layout'

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
  a.load('u32', 1, 6, context.slot)
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

/** A stateless direction still carries the replies of the other one's connections; r8 is its own snapshot. */
export function emitTracks(emitter: Emitter, untracked: Label): void {
  const { a, config } = emitter
  const tracks = a.newLabel('tracks_connections')
  a.load('u32', 1, 8, headerLayout.flags)
  a.jumpIf('set', 1, statefulFlag, tracks)
  emitBoundSnapshot(emitter, 1 - directionNumbers[config.direction], untracked)
  a.load('u32', 1, 0, headerLayout.flags)
  a.alu('and', 1, statefulFlag)
  a.jumpIf('eq', 1, 0, untracked)
  a.place(tracks)
}

/**
 * Calls a helper on the table of connections of a key's family. The key, as both families have it, is `place` bytes from
 * the frame; r1 and r2 become the table and its own key, r3 and r4 stay.
 */
export function emitOnConnections(
  { a }: Emitter,
  place: number,
  helper: 'map_lookup_elem' | 'map_update_elem' | 'map_delete_elem',
): void {
  const key = connectionKeyLayout
  const ipv6 = a.newLabel('connections_of_ipv6')
  const done = a.newLabel('connections')
  // What was written in pieces is read in these pieces, and written once more as a whole.
  a.load('u32', 5, fp, place + key.slot)
  a.alu('lsh', 5, 32)
  a.load('u32', 1, fp, place + key.localPort)
  a.alu('or', 5, reg(1))
  a.load('u8', 1, fp, place + key.kind)
  a.alu('and', 1, familyBits)
  a.jumpIf('eq', 1, 6, ipv6)
  a.store('u64', fp, stack.ipv4Key, reg(5))
  a.load('u32', 5, fp, place + key.remote)
  a.alu('lsh', 5, 32)
  a.load('u32', 1, fp, place + key.local)
  a.alu('or', 5, reg(1))
  a.store('u64', fp, stack.ipv4Key + ipv4KeyLayout.local, reg(5))
  a.mov(2, reg(fp))
  a.alu('add', 2, stack.ipv4Key)
  a.loadMap(1, 'connections4')
  a.call(helper)
  a.jump(done)
  a.place(ipv6)
  a.store('u64', fp, place, reg(5))
  a.mov(2, reg(fp))
  a.alu('add', 2, place)
  a.loadMap(1, 'connections6')
  a.call(helper)
  a.place(done)
}

/** r0 becomes the kernel's tick count, which the JIT reads from memory: a clock would cost twenty times as much. */
export function emitNow({ a }: Emitter): void {
  a.call('jiffies64')
}

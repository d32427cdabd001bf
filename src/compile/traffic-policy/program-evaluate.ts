/** The part of the datapath's program that asks the entries, in order, until one matches. */
import { type Label, reg } from '#compile/bpf/assembler'
import type { Register } from '#compile/bpf/instruction-codes'
import { configLayout, connectionKeyLayout, prefixKeyLayout } from './datapath-maps'
import { maxEntries, pathClasses } from './entry'
import { context, type Emitter, fp, stack } from './program-frame'
import {
  classBits,
  entriesOffset,
  entryLayout,
  groupLayout,
  groupLength,
  groupsOffset,
  headerLayout,
  portRemainders,
  remainderRowSize,
  remaindersOffset,
} from './snapshot-layout'

/** The path class of a packet that stands for itself: by its mark, or by the prefix its remote end lies in. */
export function emitPathClass(emitter: Emitter): void {
  const { a } = emitter
  const byPrefix = a.newLabel('path_by_prefix')
  const none = a.newLabel('path_unclassified')
  const done = a.newLabel('path_known')
  a.loadMapValue(1, 'config', 0)
  a.load('u32', 2, 1, configLayout.markMask)
  a.load('u32', 3, 6, context.mark)
  a.alu('and', 3, reg(2))
  a.load('u32', 2, 1, configLayout.markShift)
  a.alu('and', 2, 31)
  a.alu('rsh', 3, reg(2))
  a.jumpIf('eq', 3, 0, byPrefix)
  a.jumpIf('ge', 3, pathClasses.length, byPrefix)
  a.store('u8', fp, stack.path, reg(3))
  a.jump(done)

  a.place(byPrefix)
  a.load('u32', 1, fp, stack.vpc)
  a.jumpIf('eq', 1, 0, none)
  emitPrefixKey(emitter)
  a.loadMap(1, 'prefixes')
  a.mov(2, reg(fp))
  a.alu('add', 2, stack.buffer)
  a.call('map_lookup_elem')
  a.jumpIf('eq', 0, 0, none)
  a.load('u32', 3, 0, 0)
  a.jumpIf('ge', 3, pathClasses.length, none)
  a.store('u8', fp, stack.path, reg(3))
  a.jump(done)
  a.place(none)
  a.store('u8', fp, stack.path, 0)
  a.place(done)
}

/** In the place where headers are copied to, which parsing no longer needs; r1 is the VPC. */
function emitPrefixKey({ a }: Emitter): void {
  const key = stack.buffer
  const sized = a.newLabel('prefix_key_sized')
  a.store('u32', fp, key + prefixKeyLayout.vpc, reg(1))
  a.mov(2, 64 + 32)
  a.load('u8', 1, fp, stack.key + connectionKeyLayout.kind)
  a.alu('and', 1, 15)
  a.store('u32', fp, key + prefixKeyLayout.family, reg(1))
  a.jumpIf('eq', 1, 4, sized)
  a.mov(2, 64 + 128)
  a.place(sized)
  a.store('u32', fp, key + prefixKeyLayout.length, reg(2))
  for (let word = 0; word < 16; word += 4) {
    a.load('u32', 1, fp, stack.key + connectionKeyLayout.remote + word)
    a.store('u32', fp, key + prefixKeyLayout.address + word, reg(1))
  }
}

/**
 * Asks the snapshot on the stack; action and rule are on the stack then, r6 and r8 are the context and the snapshot
 * again. Ports come first in an entry's tests, and groups are passed over by them: they tell most rules apart.
 *
 * Registers: r0 the index of the group's first entry, r7 the groups from there on that may match, a bit each, and in a
 * group its address, r8 the snapshot, r3 and r4 the packet's ports, r5 its class bits, r6 and r9 the first halves of its
 * addresses.
 */
export function emitEvaluate(emitter: Emitter, next: { readonly matched: Label; readonly noMatch: Label }): void {
  const { a } = emitter
  const loop = a.newLabel('next_group')
  const ask = a.newLabel('ask_group')
  const enter = a.newLabel('enter_group')
  const skip = a.newLabel('skip_group')
  const found = a.newLabel('entry_matches')
  const none = a.newLabel('no_entry_left')
  emitForgetValues(emitter)
  emitQuestion(emitter)
  emitGroups(emitter)
  a.mov(0, 0)

  a.place(loop)
  a.jumpIf('set', 7, 1, ask)
  a.place(skip)
  a.jumpIf('le', 7, 1, none)
  a.alu('rsh', 7, 1)
  a.alu('add', 0, groupLength)
  a.jumpIf('lt', 0, maxEntries, loop)
  a.jump(none)

  a.place(ask)
  // A group's record is as long as a group has entries, so that the index is its offset too.
  a.mov(2, reg(8))
  a.alu('add', 2, reg(0))
  a.load('u32', 1, 2, groupsOffset + groupLayout.forbidden)
  a.jumpIf('set', 1, reg(5), skip)
  const lower = groupsOffset + groupLayout.destinationPort
  const span = groupsOffset + groupLayout.destinationSpan
  emitOutside(emitter, { port: 4, base: 2, lower, span, isOutside: skip, isInside: enter })

  a.place(enter)
  a.store('u32', fp, stack.groups, reg(7))
  a.mov(7, reg(0))
  a.alu('mul', 7, entryLayout.size)
  a.alu('add', 7, reg(8))
  a.alu('add', 7, entriesOffset)
  for (let index = 0; index < groupLength; index++) {
    const another = a.newLabel('next_entry')
    emitEntryTests(emitter, index * entryLayout.size, another)
    a.alu('add', 7, index * entryLayout.size)
    a.jump(found)
    a.place(another)
  }
  a.load('u32', 7, fp, stack.groups)
  a.jump(skip)

  a.place(none)
  a.load('u64', 6, fp, stack.context)
  a.jump(next.noMatch)
  a.place(found)
  a.load('u8', 1, 7, entryLayout.action)
  a.store('u8', fp, stack.action, reg(1))
  a.load('u8', 1, 7, entryLayout.rule)
  a.store('u8', fp, stack.rule, reg(1))
  a.load('u64', 6, fp, stack.context)
  a.jump(next.matched)
}

function emitQuestion({ a }: Emitter): void {
  a.load('u8', 1, fp, stack.path)
  a.mov(2, classBits.firstPath)
  a.alu('lsh', 2, reg(1))
  a.load('u32', 5, fp, stack.classes)
  a.alu('or', 5, reg(2))
  a.load('u64', 8, fp, stack.snapshot)
  a.load('u16', 3, fp, stack.sourcePort)
  a.load('u16', 4, fp, stack.destinationPort)
  a.load('u64', 9, fp, stack.source)
  a.load('u64', 6, fp, stack.destination)
}

/** Ports that cannot be told may be any. */
function emitGroups({ a }: Emitter): void {
  const known = a.newLabel('port_known')
  a.mov(1, reg(4))
  a.alu('and', 1, portRemainders - 1)
  a.mov(2, reg(5))
  a.alu('and', 2, classBits.noTransport)
  a.jumpIf('eq', 2, 0, known)
  a.mov(1, portRemainders)
  a.place(known)
  a.alu('mul', 1, remainderRowSize)
  a.alu('add', 1, reg(8))
  a.load('u32', 7, 1, remaindersOffset)
}

type PortTest = {
  readonly port: Register
  /** Where the range's lower end and its span lie. */
  readonly base: Register
  readonly lower: number
  readonly span: number
  readonly isOutside: Label
  readonly isInside: Label
}

/**
 * Ports that cannot be told stop no deny; an allow that needs them is forbidden by its class bits already. Only copies
 * are compared: what the verifier learned of the packet's own values would be another state for each entry.
 */
function emitOutside({ a }: Emitter, { port, base, lower, span, isOutside, isInside }: PortTest): void {
  a.load('u16', 1, base, lower)
  a.load('u16', 2, base, span)
  a.alu('sub', 1, reg(port))
  a.negate(1)
  a.jumpIf('le', 1, reg(2), isInside)
  a.mov(1, reg(5))
  a.alu('and', 1, classBits.noTransport)
  a.jumpIf('eq', 1, 0, isOutside)
  a.jump(isInside)
}

/**
 * The verifier walks the entries once for each set of values that it believes the stack may hold. What is written at
 * a place it cannot tell (though it is always the first, and what stands there) makes it forget the whole area.
 */
function emitForgetValues({ a }: Emitter): void {
  a.load('u64', 5, fp, stack.snapshot)
  a.load('u64', 5, 5, headerLayout.nothing)
  for (const [start, last, size] of [
    [stack.key, 32, 'u64'],
    [stack.destination, 24, 'u64'],
    [stack.hopLimit - 1, 47, 'u8'],
  ] as const) {
    a.mov(2, reg(5))
    a.alu('and', 2, last)
    a.mov(3, reg(fp))
    a.alu('add', 3, start)
    a.alu('add', 3, reg(2))
    a.load(size, 4, fp, start)
    a.store(size, 3, 0, reg(4))
  }
}

/** Of the entry so many bytes after r7: falls through when all its tests pass. */
function emitEntryTests(emitter: Emitter, at: number, another: Label): void {
  const { a } = emitter
  a.load('u32', 1, 7, at + entryLayout.forbidden)
  a.jumpIf('set', 1, reg(5), another)
  for (const [port, lower, span] of [
    [4, entryLayout.destinationPort, entryLayout.destinationSpan],
    [3, entryLayout.sourcePort, entryLayout.sourceSpan],
  ] as const) {
    const inside = a.newLabel('port_inside')
    const range = { base: 7, lower: at + lower, span: at + span } as const
    emitOutside(emitter, { port, ...range, isOutside: another, isInside: inside })
    a.place(inside)
  }
  for (const [first, second, mask, value] of [
    [9, stack.source + 8, entryLayout.sourceMask, entryLayout.sourceValue],
    [6, stack.destination + 8, entryLayout.destinationMask, entryLayout.destinationValue],
  ] as const) {
    a.load('u64', 1, 7, at + mask)
    a.alu('and', 1, reg(first))
    a.load('u64', 2, 7, at + value)
    a.jumpIf('ne', 1, reg(2), another)
    a.load('u64', 1, 7, at + mask + 8)
    a.load('u64', 2, fp, second)
    a.alu('and', 1, reg(2))
    a.load('u64', 2, 7, at + value + 8)
    a.jumpIf('ne', 1, reg(2), another)
  }
}

/** The part of the datapath's program that reads an IPv4 header and says whether it is a fragment. */
import { type Label, reg } from '#compile/bpf/assembler'
import {
  context,
  type Emitter,
  emitKeyStart,
  fetchHeader,
  fp,
  keepOffset,
  keyFields,
  packetFlags,
  stack,
} from './program-frame'
import { classBits } from './snapshot-layout'

const moreFragments = 0x2000
const fragmentOffset = 0x1fff

export function emitIpv4(emitter: Emitter, next: { readonly transport: Label; readonly laterFragment: Label }): void {
  const { a, config, exits } = emitter
  const fields = keyFields(config.direction)
  fetchHeader(emitter, 20, exits.malformed)
  a.load('u8', 3, 9, 0)
  a.mov(4, reg(3))
  a.alu('rsh', 4, 4)
  a.jumpIf('ne', 4, 4, exits.malformed)
  a.alu('and', 3, 15)
  a.alu('lsh', 3, 2)
  a.jumpIf('lt', 3, 20, exits.malformed)
  emitTotalLength(emitter)
  // r4 is the total length: it holds the header, and the packet holds it.
  a.jumpIf('lt', 4, reg(3), exits.malformed)
  a.jumpIf('gt', 4, reg(1), exits.malformed)
  a.alu('sub', 4, reg(3))
  a.store('u32', fp, stack.length, reg(4))
  a.load('u32', 1, 9, 12)
  a.store('u64', fp, stack.key + fields.source, reg(1))
  a.load('u32', 1, 9, 16)
  a.store('u64', fp, stack.key + fields.destination, reg(1))
  a.load('u8', 1, 9, 9)
  a.store('u8', fp, stack.protocol, reg(1))
  emitKeyStart(emitter, 4)
  a.store('u32', fp, stack.classes, classBits.ipv4)
  a.alu('add', 7, reg(3))
  keepOffset(emitter)
  a.load('u16', 1, 9, 6)
  a.toBigEndian(1, 16)
  a.alu('and', 1, moreFragments | fragmentOffset)
  a.jumpIf('eq', 1, 0, next.transport)
  a.load('u16', 2, 9, 4)
  a.store('u32', fp, stack.fragmentId, reg(2))
  a.load('u8', 2, 9, 9)
  a.store('u8', fp, stack.fragmentProtocol, reg(2))
  a.alu('and', 1, fragmentOffset)
  a.jumpIf('ne', 1, 0, next.laterFragment)
  a.store('u8', fp, stack.flags, packetFlags.firstFragment)
  a.jump(next.transport)
}

/** r4 becomes the total length, r1 the bytes there are. A packet to be segmented may be too long to say: it has zero. */
function emitTotalLength({ a }: Emitter): void {
  const known = a.newLabel('ipv4_length')
  a.load('u16', 4, 9, 2)
  a.toBigEndian(4, 16)
  a.load('u32', 1, 6, context.length)
  a.alu('sub', 1, reg(7))
  a.jumpIf('ne', 4, 0, known)
  a.load('u32', 2, 6, context.segmentSize)
  a.jumpIf('eq', 2, 0, known)
  a.mov(4, reg(1))
  a.place(known)
}

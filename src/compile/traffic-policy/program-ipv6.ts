/** The part of the datapath's program that reads an IPv6 header and walks a bounded chain of extension headers. */
import { type Label, reg } from '#compile/bpf/assembler'
import { connectionKeyLayout } from './datapath-maps'
import {
  context,
  type Emitter,
  emitKeyStart,
  fetchHeader,
  fp,
  keepOffset,
  keyFields,
  packetFlags,
  recallOffset,
  setFlag,
  stack,
} from './program-frame'
import { classBits } from './snapshot-layout'

export const maxExtensionHeaders = 6
export const extensionHeaders = { hopByHop: 0, routing: 43, fragment: 44, authentication: 51, destination: 60 } as const
const known = [6, 17, 58, 132] as const

type Next = { readonly transport: Label; readonly laterFragment: Label }

export function emitIpv6(emitter: Emitter, next: Next): void {
  const { a, config, exits } = emitter
  const fields = keyFields(config.direction)
  fetchHeader(emitter, 40, exits.malformed)
  a.load('u8', 3, 9, 0)
  a.alu('rsh', 3, 4)
  a.jumpIf('ne', 3, 6, exits.malformed)
  emitPayloadLength(emitter)
  a.jumpIf('gt', 4, reg(1), exits.malformed)
  a.store('u32', fp, stack.length, reg(4))
  for (const half of [0, 8]) {
    a.load('u64', 1, 9, 8 + half)
    a.store('u64', fp, stack.key + fields.source + half, reg(1))
    a.load('u64', 1, 9, 24 + half)
    a.store('u64', fp, stack.key + fields.destination + half, reg(1))
  }
  a.load('u8', 1, 9, 7)
  a.store('u8', fp, stack.hopLimit, reg(1))
  a.load('u8', 1, 9, 6)
  a.store('u8', fp, stack.protocol, reg(1))
  // For later fragments, which leave before the protocol is known.
  a.store('u8', fp, stack.key + connectionKeyLayout.kind, 6)
  a.store('u32', fp, stack.classes, classBits.ipv6)
  a.alu('add', 7, 40)
  keepOffset(emitter)
  emitChain(emitter, next)
}

/** r4 becomes the payload's length, r1 the bytes there are after the header; zero is "to be segmented" as in IPv4. */
function emitPayloadLength({ a }: Emitter): void {
  const told = a.newLabel('ipv6_length')
  a.load('u16', 4, 9, 4)
  a.toBigEndian(4, 16)
  a.load('u32', 1, 6, context.length)
  a.alu('sub', 1, reg(7))
  a.alu('sub', 1, 40)
  a.jumpIf('ne', 4, 0, told)
  a.load('u32', 2, 6, context.segmentSize)
  a.jumpIf('eq', 2, 0, told)
  a.mov(4, reg(1))
  a.place(told)
}

function emitChain(emitter: Emitter, next: Next): void {
  const { a, exits } = emitter
  const again = a.newLabel('extension_header')
  const isHeader = a.newLabel('is_extension')
  const done = a.newLabel('chain_done')
  a.store('u64', fp, stack.count, 0)
  a.place(again)
  a.load('u8', 3, fp, stack.protocol)
  for (const protocol of known) a.jumpIf('eq', 3, protocol, done)
  for (const header of Object.values(extensionHeaders)) a.jumpIf('eq', 3, header, isHeader)
  a.jump(exits.unsupported)

  a.place(isHeader)
  a.load('u64', 4, fp, stack.count)
  a.jumpIf('ge', 4, maxExtensionHeaders, exits.unsupported)
  const placed = a.newLabel('in_its_place')
  a.jumpIf('ne', 3, extensionHeaders.hopByHop, placed)
  a.jumpIf('ne', 4, 0, exits.malformed)
  a.place(placed)
  a.alu('add', 4, 1)
  a.store('u64', fp, stack.count, reg(4))
  a.load('u32', 1, fp, stack.length)
  a.jumpIf('lt', 1, 8, exits.malformed)
  recallOffset(emitter)
  fetchHeader(emitter, 8, exits.malformed)
  a.load('u8', 3, fp, stack.protocol)
  a.load('u8', 1, 9, 0)
  a.store('u8', fp, stack.protocol, reg(1))
  emitHeaderLength(emitter, next)
  a.load('u32', 1, fp, stack.length)
  a.jumpIf('gt', 4, reg(1), exits.malformed)
  a.alu('sub', 1, reg(4))
  a.store('u32', fp, stack.length, reg(1))
  a.alu('add', 7, reg(4))
  keepOffset(emitter)
  a.jump(again)

  a.place(done)
  a.mov(1, reg(3))
  emitKeyStart(emitter, 6)
  a.jump(next.transport)
}

/** r4 becomes the length of the header of kind r3 at r9. */
function emitHeaderLength(emitter: Emitter, next: Next): void {
  const { a } = emitter
  const fragment = a.newLabel('fragment_header')
  const done = a.newLabel('header_length')
  a.jumpIf('eq', 3, extensionHeaders.fragment, fragment)
  emitStatedLength(emitter)
  a.jump(done)
  a.place(fragment)
  emitFragment(emitter, next)
  a.mov(4, 8)
  a.place(done)
}

/** r4 becomes the length that the header of kind r3 at r9 states; a fragment header states none. */
export function emitStatedLength({ a }: Emitter): void {
  const authentication = a.newLabel('authentication')
  const done = a.newLabel('stated_length')
  a.load('u8', 4, 9, 1)
  a.jumpIf('eq', 3, extensionHeaders.authentication, authentication)
  a.alu('add', 4, 1)
  a.alu('lsh', 4, 3)
  a.jump(done)
  a.place(authentication)
  a.alu('add', 4, 2)
  a.alu('lsh', 4, 2)
  a.place(done)
}

/** A datagram that is its own first and last fragment goes on as if it were none. */
function emitFragment(emitter: Emitter, next: Next): void {
  const { a, exits } = emitter
  const whole = a.newLabel('whole_datagram')
  a.load('u8', 1, fp, stack.flags)
  a.jumpIf('set', 1, packetFlags.hasFragmentHeader, exits.malformed)
  setFlag(emitter, packetFlags.hasFragmentHeader)
  a.load('u32', 1, 9, 4)
  a.store('u32', fp, stack.fragmentId, reg(1))
  a.load('u8', 1, 9, 0)
  a.store('u8', fp, stack.fragmentProtocol, reg(1))
  a.load('u16', 5, 9, 2)
  a.toBigEndian(5, 16)
  a.mov(1, reg(5))
  a.alu('and', 1, 0xfff8)
  a.jumpIf('ne', 1, 0, next.laterFragment)
  a.alu('and', 5, 1)
  a.jumpIf('eq', 5, 0, whole)
  setFlag(emitter, packetFlags.firstFragment)
  a.place(whole)
}

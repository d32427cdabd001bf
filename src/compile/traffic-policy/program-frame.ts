/**
 * What all parts of the datapath's program share: its settings, its stack, its exits, and how it reads packet bytes.
 *
 * Registers through parsing: r6 the packet's context, r7 the offset of the next header, r8 the bound snapshot, r9 the
 * header in hand. Whatever outlives parsing is on the stack, mostly away from multiples of eight bytes: the verifier
 * does not follow values there, so that paths which differ in them alone become one and are verified once.
 */
import { type Assembler, type Label, reg } from '#compile/bpf/assembler'
import { framePointer } from '#compile/bpf/instruction-codes'
import { connectionKeyLayout } from './datapath-maps'
import type { Direction } from './entry'
import { directionNumbers } from './snapshot-layout'

export type LinkLayer = 'ethernet' | 'ip'

export type ProgramConfig = {
  readonly direction: Direction
  readonly linkLayer: LinkLayer
  /** Of the kernel's clock, which counts for timeouts. */
  readonly ticksPerSecond: number
  /** False reads every header by helper, as programs must where a packet's bytes are scattered. */
  readonly readsDirectly: boolean
}

/** Offsets in `struct __sk_buff`. */
export const context = {
  length: 0,
  mark: 8,
  /** The interface's own program leaves its slot here. */
  slot: 48,
  /** What was decided, for a program that runs after: verdict, reason, rule and path class, a byte each. */
  decision: 52,
  data: 76,
  dataEnd: 80,
  segments: 164,
  segmentSize: 176,
} as const

export const stack = {
  key: -48,
  inner: -96,
  row: -144,
  buffer: -192,
  source: -208,
  destination: -224,
  token: -232,
  context: -240,
  snapshot: -248,
  index: -252,
  zero: -256,
  count: -264,
  hopLimit: -319,
  offset: -318,
  classes: -316,
  protocol: -311,
  sourcePort: -310,
  length: -308,
  event: -303,
  destinationPort: -302,
  vpc: -300,
  flags: -295,
  opener: -294,
  path: -293,
  fragmentId: -292,
  action: -287,
  rule: -286,
  fragmentProtocol: -285,
  seen: -284,
  ipv4Key: -336,
  groups: -340,
} as const

export const packetFlags = {
  firstFragment: 1,
  laterFragment: 2,
  icmpError: 4,
  /** May belong to a connection, never opens one. */
  opensNone: 8,
  /** Belongs to no connection. */
  standsAlone: 16,
  isReconsidered: 32,
  hasFragmentHeader: 64,
} as const

/** What a packet tells of its connection, TCP and SCTP in the same words. */
export const packetEvents = { opens: 1, answers: 2, acknowledges: 4, finishes: 8, resets: 16 } as const

export type Exits = {
  readonly unavailable: Label
  readonly malformed: Label
  readonly unsupported: Label
  readonly link: Label
}

export type Emitter = {
  readonly a: Assembler
  readonly config: ProgramConfig
  readonly exits: Exits
}

export const fp = framePointer

/** The longest offset of a header: two VLAN tags, IPv6, and six extension headers of the longest kind. */
export const offsetMask = 0x3fff

/** Keeps r7, in a place where the verifier forgets what it knew of it. */
export function keepOffset({ a }: Emitter): void {
  a.store('u16', fp, stack.offset, reg(7))
}

export function recallOffset({ a }: Emitter): void {
  a.load('u16', 7, fp, stack.offset)
  a.alu('and', 7, offsetMask)
}

/** r9 becomes the address of `length` bytes at r7: in the packet, or copied to the stack where they are not at hand. */
export function fetchHeader({ a, config }: Emitter, length: number, isCutShort: Label): void {
  const byHelper = a.newLabel('copy_header')
  const done = a.newLabel('have_header')
  if (config.readsDirectly) {
    a.load('u32', 9, 6, context.data)
    a.load('u32', 2, 6, context.dataEnd)
    a.alu('add', 9, reg(7))
    a.mov(1, reg(9))
    a.alu('add', 1, length)
    a.jumpIf('gt', 1, reg(2), byHelper)
    a.jump(done)
  }
  a.place(byHelper)
  a.mov(1, reg(6))
  a.mov(2, reg(7))
  a.mov(3, reg(fp))
  a.alu('add', 3, stack.buffer)
  a.mov(4, length)
  a.call('skb_load_bytes')
  a.jumpIf('ne', 0, 0, isCutShort)
  a.mov(9, reg(fp))
  a.alu('add', 9, stack.buffer)
  a.place(done)
}

export function setFlag({ a }: Emitter, flag: number): void {
  a.load('u8', 1, fp, stack.flags)
  a.alu('or', 1, flag)
  a.store('u8', fp, stack.flags, reg(1))
}

export function setClass({ a }: Emitter, bit: number): void {
  a.load('u32', 1, fp, stack.classes)
  a.alu('or', 1, bit)
  a.store('u32', fp, stack.classes, reg(1))
}

/** The key's slot, protocol (in r1) and family at once, after which come the ports. */
export function emitKeyStart({ a }: Emitter, family: 4 | 6): void {
  a.load('u32', 2, 6, context.slot)
  a.alu('or', 1, family << 8)
  a.alu('lsh', 1, 16)
  a.alu('or', 1, reg(2))
  a.store('u32', fp, stack.key + connectionKeyLayout.slot, reg(1))
}

/** Where the packet's source and destination stand in a key: `local` is the end behind the interface. */
export function keyFields(direction: Direction) {
  const isEgress = directionNumbers[direction] === directionNumbers.egress
  const { local, remote, localPort, remotePort } = connectionKeyLayout
  return isEgress
    ? ({ source: local, destination: remote, sourcePort: localPort, destinationPort: remotePort } as const)
    : ({ source: remote, destination: local, sourcePort: remotePort, destinationPort: localPort } as const)
}

/**
 * The part of the datapath's program that decides most packets in a straight line: TCP and UDP right behind a plain IP
 * header. What it finds to be anything else goes the general way from its beginning, so that nothing is decided here
 * which would not be decided there.
 *
 * Registers: r6 the packet's context, r7 the connection's row, r8 the bound snapshot, r9 the packet, then its event.
 */
import { type Label, reg } from '#compile/bpf/assembler'
import { seenBits, timeoutSeconds } from './connection-timeouts'
import { connectionKeyLayout, connectionLayout, ipv4KeyLayout } from './datapath-maps'
import { context, type Emitter, fp, packetEvents, stack } from './program-frame'
import { etherTypes, swapped } from './program-link'
import { emitPassBy } from './program-outcome'
import { emitBoundSnapshot, emitNow, emitTracks } from './program-tables'
import { classBits, directionNumbers, headerLayout } from './snapshot-layout'

type Family = 'ipv4' | 'ipv6'

type StraightLabels = {
  /** Nothing is known yet. */
  readonly general: Label
  /** The packet is read as the general way reads it, and belongs to no connection; r8 is the bound snapshot. */
  readonly fresh: Label
}

/** Where the fields of a header without options lie in a packet. */
type Places = {
  readonly family: Family
  readonly base: number
  readonly transport: number
  readonly source: number
  readonly destination: number
}

function placesOf(family: Family, base: number): Places {
  return family === 'ipv4'
    ? { family, base, transport: base + 20, source: base + 12, destination: base + 16 }
    : { family, base, transport: base + 40, source: base + 8, destination: base + 24 }
}

const udpHeader = 8
const tcpHeader = 20

export function emitStraightPath(emitter: Emitter, next: StraightLabels): void {
  const { a, config } = emitter
  if (!config.readsDirectly) return
  const base = config.linkLayer === 'ethernet' ? 14 : 0
  const ipv6 = a.newLabel('straight_ipv6')
  a.load('u32', 9, 6, context.data)
  a.load('u32', 5, 6, context.dataEnd)
  emitEnough(emitter, placesOf('ipv4', base).transport + udpHeader, next.general)
  if (config.linkLayer === 'ethernet') {
    a.load('u16', 1, 9, 12)
    a.jumpIf('eq', 1, swapped(etherTypes.ipv6), ipv6)
    a.jumpIf('ne', 1, swapped(etherTypes.ipv4), next.general)
  } else {
    a.load('u8', 1, 9, 0)
    a.alu('and', 1, 0xf0)
    a.jumpIf('eq', 1, 0x60, ipv6)
  }
  emitFamily(emitter, placesOf('ipv4', base), next)
  a.place(ipv6)
  emitEnough(emitter, placesOf('ipv6', base).transport + udpHeader, next.general)
  emitFamily(emitter, placesOf('ipv6', base), next)
}

/** r5 is the packet's end. */
function emitEnough({ a }: Emitter, length: number, general: Label): void {
  a.mov(1, reg(9))
  a.alu('add', 1, length)
  a.jumpIf('gt', 1, reg(5), general)
}

function emitFamily(emitter: Emitter, places: Places, next: StraightLabels): void {
  const { a, config } = emitter
  const own = directionNumbers[config.direction]
  const missed = a.newLabel(`straight_${places.family}_missed`)
  if (places.family === 'ipv4') emitIpv4Header(emitter, places, next.general)
  else emitIpv6Header(emitter, places, next.general)
  emitTransportHeader(emitter, places, next.general)
  emitKey(emitter, places)
  emitBoundSnapshot(emitter, own, next.general)
  a.mov(8, reg(0))
  emitTracks(emitter, missed)
  a.mov(2, reg(fp))
  a.alu('add', 2, places.family === 'ipv4' ? stack.ipv4Key : stack.key)
  a.loadMap(1, places.family === 'ipv4' ? 'connections4' : 'connections6')
  a.call('map_lookup_elem')
  a.jumpIf('eq', 0, 0, missed)
  a.mov(7, reg(0))
  emitNothingNew(emitter, next.general)
  a.place(missed)
  emitQuestion(emitter, places.family)
  a.jump(next.fresh)
}

/** r4 becomes the payload's length, r3 the protocol. */
function emitIpv4Header({ a }: Emitter, { base }: Places, general: Label): void {
  a.load('u8', 1, 9, base)
  a.jumpIf('ne', 1, 0x45, general)
  a.load('u16', 1, 9, base + 6)
  // More fragments, or an offset.
  a.alu('and', 1, swapped(0x3fff))
  a.jumpIf('ne', 1, 0, general)
  a.load('u16', 4, 9, base + 2)
  a.toBigEndian(4, 16)
  a.load('u32', 2, 6, context.length)
  a.alu('sub', 2, base)
  a.jumpIf('gt', 4, reg(2), general)
  a.jumpIf('lt', 4, 20, general)
  a.alu('sub', 4, 20)
  a.load('u8', 3, 9, base + 9)
}

function emitIpv6Header({ a }: Emitter, { base, transport }: Places, general: Label): void {
  a.load('u8', 1, 9, base)
  a.alu('and', 1, 0xf0)
  a.jumpIf('ne', 1, 0x60, general)
  a.load('u16', 4, 9, base + 4)
  a.toBigEndian(4, 16)
  a.load('u32', 2, 6, context.length)
  a.alu('sub', 2, transport)
  a.jumpIf('gt', 4, reg(2), general)
  a.load('u8', 3, 9, base + 6)
}

/** r0 becomes the packet's event: zero for UDP. Of TCP, data and a connection's first packet go on here. */
function emitTransportHeader(emitter: Emitter, { transport }: Places, general: Label): void {
  const { a } = emitter
  const udp = a.newLabel('straight_udp')
  const done = a.newLabel('straight_transport')
  a.jumpIf('eq', 3, 17, udp)
  a.jumpIf('ne', 3, 6, general)
  emitEnough(emitter, transport + tcpHeader, general)
  a.load('u8', 1, 9, transport + 12)
  a.alu('and', 1, 0xf0)
  a.alu('rsh', 1, 2)
  a.jumpIf('lt', 1, tcpHeader, general)
  a.jumpIf('gt', 1, reg(4), general)
  a.load('u8', 1, 9, transport + 13)
  a.alu('and', 1, 0x17)
  a.mov(0, packetEvents.acknowledges)
  a.jumpIf('eq', 1, 0x10, done)
  a.mov(0, packetEvents.opens)
  a.jumpIf('eq', 1, 0x02, done)
  a.jump(general)
  a.place(udp)
  a.load('u16', 1, 9, transport + 4)
  a.toBigEndian(1, 16)
  a.jumpIf('lt', 1, udpHeader, general)
  a.jumpIf('gt', 1, reg(4), general)
  a.mov(0, 0)
  a.place(done)
}

/** Written whole, as it will be read. r9 becomes the packet's event. */
function emitKey({ a, config }: Emitter, { family, transport, source, destination }: Places): void {
  const isEgress = config.direction === 'egress'
  const [local, remote] = isEgress ? [source, destination] : [destination, source]
  a.load('u32', 1, 9, transport)
  a.toBigEndian(1, 32)
  if (isEgress) {
    a.mov(2, reg(1))
    a.alu('rsh', 2, 16)
    a.alu32('lsh', 1, 16)
    a.alu32('or', 1, reg(2))
  }
  a.load('u32', 2, 6, context.slot)
  a.alu('or', 3, (family === 'ipv4' ? 4 : 6) << 8)
  a.alu('lsh', 3, 16)
  a.alu('or', 3, reg(2))
  a.alu('lsh', 3, 32)
  a.alu('or', 3, reg(1))
  a.store('u64', fp, family === 'ipv4' ? stack.ipv4Key : stack.key, reg(3))
  if (family === 'ipv4') {
    a.load('u32', 1, 9, local)
    a.load('u32', 2, 9, remote)
    a.alu('lsh', 2, 32)
    a.alu('or', 2, reg(1))
    a.store('u64', fp, stack.ipv4Key + ipv4KeyLayout.local, reg(2))
  } else {
    for (const half of [0, 8]) {
      a.load('u64', 1, 9, local + half)
      a.store('u64', fp, stack.key + connectionKeyLayout.local + half, reg(1))
      a.load('u64', 1, 9, remote + half)
      a.store('u64', fp, stack.key + connectionKeyLayout.remote + half, reg(1))
    }
  }
  a.mov(9, reg(0))
}

/**
 * Passes the packet whose row is r7 where all that it changes is the deadline. One publication is of one policy, for
 * one lifetime of one interface: where it is the row's own, all else that the row must agree with agrees.
 */
function emitNothingNew(emitter: Emitter, general: Label): void {
  const { a, config } = emitter
  const row = connectionLayout
  const own = directionNumbers[config.direction]
  const haveOpener = a.newLabel('straight_opener')
  a.jumpIf('eq', 9, packetEvents.opens, general)
  a.mov(0, reg(8))
  a.load('u8', 1, 7, row.opener)
  a.jumpIf('eq', 1, own, haveOpener)
  emitBoundSnapshot(emitter, 1 - own, general)
  a.place(haveOpener)
  a.load('u64', 1, 7, row.version)
  a.load('u64', 2, 0, headerLayout.generation)
  a.jumpIf('ne', 1, reg(2), general)
  emitNow(emitter)
  a.load('u64', 4, 7, row.deadline)
  a.jumpIf('lt', 4, reg(0), general)
  emitSameTimeout(emitter, general)
  const written = a.newLabel('straight_deadline')
  // Within a tick it is the same: the row then stays as it is in the other processors' caches.
  a.jumpIf('eq', 4, reg(0), written)
  a.store('u64', 7, row.deadline, reg(0))
  a.place(written)
  emitPassBy(emitter, 'established')
}

/** r0, the tick it is, becomes the deadline of a connection that is open both ways, or of a UDP one. */
function emitSameTimeout({ a, config }: Emitter, general: Label): void {
  const row = connectionLayout
  const udp = a.newLabel('straight_udp_timeout')
  const answered = a.newLabel('straight_udp_answered')
  const done = a.newLabel('straight_timeout')
  const { established, openerFinished, otherFinished, reset } = seenBits
  a.load('u32', 3, 7, row.seen)
  a.jumpIf('eq', 9, 0, udp)
  a.alu('and', 3, established | openerFinished | otherFinished | reset)
  a.jumpIf('ne', 3, established, general)
  a.alu('add', 0, timeoutSeconds.tcp.established * config.ticksPerSecond)
  a.jump(done)
  a.place(udp)
  a.jumpIf('set', 3, seenBits.answered, answered)
  a.load('u8', 1, 7, row.opener)
  a.jumpIf('ne', 1, directionNumbers[config.direction], general)
  a.alu('add', 0, timeoutSeconds.udp.unanswered * config.ticksPerSecond)
  a.jump(done)
  a.place(answered)
  a.alu('add', 0, timeoutSeconds.udp.answered * config.ticksPerSecond)
  a.place(done)
}

/** What the general way would have put on the stack by now, but for the interface. */
function emitQuestion({ a, config }: Emitter, family: Family): void {
  const key = connectionKeyLayout
  const udp = a.newLabel('straight_question_udp')
  const done = a.newLabel('straight_question')
  for (let at = stack.hopLimit - 1; at < stack.hopLimit + 47; at += 8) a.store('u64', fp, at, 0)
  if (family === 'ipv4') {
    a.load('u64', 1, fp, stack.ipv4Key)
    a.store('u64', fp, stack.key, reg(1))
    for (const end of ['local', 'remote'] as const) {
      a.load('u32', 1, fp, stack.ipv4Key + ipv4KeyLayout[end])
      a.store('u64', fp, stack.key + key[end], reg(1))
      a.store('u64', fp, stack.key + key[end] + 8, 0)
    }
  }
  a.store('u8', fp, stack.event, reg(9))
  const isEgress = config.direction === 'egress'
  a.load('u32', 1, fp, (family === 'ipv4' ? stack.ipv4Key : stack.key) + key.localPort)
  a.store('u16', fp, isEgress ? stack.sourcePort : stack.destinationPort, reg(1))
  a.alu('rsh', 1, 16)
  a.store('u16', fp, isEgress ? stack.destinationPort : stack.sourcePort, reg(1))
  const say = (protocol: number, bit: number): void => {
    a.store('u8', fp, stack.protocol, protocol)
    a.store('u32', fp, stack.classes, classBits[family] | bit)
  }
  a.jumpIf('eq', 9, 0, udp)
  say(6, classBits.tcp)
  a.jump(done)
  a.place(udp)
  say(17, classBits.udp)
  a.place(done)
}

/** The part of the datapath's program that finds a packet's connection and judges whether it still stands. */
import { type Label, reg } from '#compile/bpf/assembler'
import { metInTheMiddle, seenBits } from './connection-timeouts'
import { connectionKeyLayout, connectionLayout, localAsks } from './datapath-maps'
import { type Emitter, fp, keyFields, packetEvents, packetFlags, stack } from './program-frame'
import { emitBoundSnapshot, emitNow, emitOnConnections, emitTracks } from './program-tables'
import { classBits, directionNumbers, headerLayout, statefulFlag } from './snapshot-layout'

export type ConnectionLabels = {
  /** r7 is the row, r9 the snapshot that opened it. */
  readonly established: Label
  /** The same, but the row was opened by an earlier snapshot of that policy. */
  readonly reconsider: Label
  readonly fresh: Label
}

const row = connectionLayout

export function emitFindConnection(emitter: Emitter, labels: ConnectionLabels): void {
  const { a } = emitter
  const aboutError = a.newLabel('look_up_inner')
  const found = a.newLabel('looked_up')
  a.load('u8', 1, fp, stack.flags)
  a.jumpIf('set', 1, packetFlags.standsAlone, labels.fresh)
  emitTracks(emitter, labels.fresh)
  a.load('u8', 1, fp, stack.flags)
  a.jumpIf('set', 1, packetFlags.icmpError, aboutError)
  emitOnConnections(emitter, stack.key, 'map_lookup_elem')
  a.jump(found)
  a.place(aboutError)
  emitOnConnections(emitter, stack.inner, 'map_lookup_elem')
  a.place(found)
  a.jumpIf('eq', 0, 0, labels.fresh)
  a.mov(7, reg(0))
  emitStillStands(emitter, labels)
}

/** A row stands until its deadline, for its interface's lifetime, while its policy is bound where it was opened. */
function emitStillStands(emitter: Emitter, labels: ConnectionLabels): void {
  const { a, config } = emitter
  const own = directionNumbers[config.direction]
  const haveOpener = a.newLabel('have_opener')
  emitNow(emitter)
  a.load('u64', 1, 7, row.deadline)
  a.jumpIf('lt', 1, reg(0), labels.fresh)
  a.load('u64', 1, 7, row.token)
  a.load('u64', 2, fp, stack.token)
  a.jumpIf('ne', 1, reg(2), labels.fresh)
  a.mov(9, reg(8))
  a.load('u8', 1, 7, row.opener)
  a.jumpIf('eq', 1, own, haveOpener)
  emitBoundSnapshot(emitter, 1 - own, labels.fresh)
  a.mov(9, reg(0))
  a.place(haveOpener)
  for (const half of [0, 8]) {
    a.load('u64', 1, 7, row.uidHash + half)
    a.load('u64', 2, 9, headerLayout.uidHash + half)
    a.jumpIf('ne', 1, reg(2), labels.fresh)
  }
  a.load('u32', 1, 9, headerLayout.flags)
  a.alu('and', 1, statefulFlag)
  a.jumpIf('eq', 1, 0, labels.fresh)
  emitOpening(emitter, labels)
  a.load('u64', 1, 7, row.version)
  a.load('u64', 2, 9, headerLayout.generation)
  a.jumpIf('eq', 1, reg(2), labels.established)
  a.load('u8', 1, fp, stack.flags)
  a.jumpIf('set', 1, packetFlags.laterFragment, labels.fresh)
  a.jump(labels.reconsider)
}

/** A SYN or INIT asks anew where the connection is over, or where it comes from the end that had not opened it. */
function emitOpening({ a, config }: Emitter, labels: ConnectionLabels): void {
  const goesOn = a.newLabel('goes_on')
  const bothFinished = seenBits.openerFinished | seenBits.otherFinished
  a.load('u8', 1, fp, stack.event)
  a.alu('and', 1, packetEvents.opens)
  a.jumpIf('eq', 1, 0, goesOn)
  a.load('u8', 1, 7, row.opener)
  a.jumpIf('ne', 1, directionNumbers[config.direction], labels.fresh)
  a.load('u32', 1, 7, row.seen)
  a.jumpIf('set', 1, seenBits.reset, labels.fresh)
  a.alu('and', 1, bothFinished)
  a.jumpIf('eq', 1, bothFinished, labels.fresh)
  a.place(goesOn)
}

/** The packet itself is what the rules are asked about. */
export function emitFreshQuestion({ a, config }: Emitter): void {
  const fields = keyFields(config.direction)
  const isMiddle = a.newLabel('met_in_the_middle')
  const done = a.newLabel('fresh_question')
  copy(a, stack.key + fields.source, stack.source, 16)
  copy(a, stack.key + fields.destination, stack.destination, 16)
  a.store('u8', fp, stack.opener, directionNumbers[config.direction])
  a.store('u64', fp, stack.snapshot, reg(8))
  a.load('u8', 1, fp, stack.key + connectionKeyLayout.protocol)
  a.store('u32', fp, stack.seen, 0)
  a.jumpIf('ne', 1, 6, done)
  a.load('u8', 1, fp, stack.event)
  a.alu('and', 1, packetEvents.opens)
  a.jumpIf('eq', 1, 0, isMiddle)
  a.jump(done)
  a.place(isMiddle)
  a.store('u32', fp, stack.seen, metInTheMiddle)
  a.place(done)
}

/** The connection's first packet is what the rules of r9 are asked about, whichever way this packet goes. */
export function emitReconsideredQuestion(emitter: Emitter): void {
  const { a } = emitter
  const key = stack.key
  const inner = a.newLabel('own_key')
  const fromLocal = a.newLabel('opened_by_local')
  const addressed = a.newLabel('addressed')
  a.load('u8', 1, fp, stack.flags)
  a.alu('or', 1, packetFlags.isReconsidered)
  a.store('u8', fp, stack.flags, reg(1))
  a.alu('and', 1, packetFlags.icmpError)
  a.jumpIf('eq', 1, 0, inner)
  copy(a, stack.inner, key, connectionKeyLayout.size)
  a.place(inner)
  a.store('u64', fp, stack.snapshot, reg(9))
  a.load('u8', 1, 7, row.path)
  a.store('u8', fp, stack.path, reg(1))
  a.load('u32', 1, 7, row.seen)
  a.store('u32', fp, stack.seen, reg(1))
  a.load('u8', 1, 7, row.opener)
  a.store('u8', fp, stack.opener, reg(1))
  a.jumpIf('eq', 1, directionNumbers.egress, fromLocal)
  copyQuestion(emitter, 'ingress')
  a.jump(addressed)
  a.place(fromLocal)
  copyQuestion(emitter, 'egress')
  a.place(addressed)
  emitReconsideredClasses(emitter)
}

function copyQuestion({ a }: Emitter, opener: 'ingress' | 'egress'): void {
  const fields = keyFields(opener)
  copy(a, stack.key + fields.source, stack.source, 16)
  copy(a, stack.key + fields.destination, stack.destination, 16)
  a.load('u16', 1, fp, stack.key + fields.sourcePort)
  a.store('u16', fp, stack.sourcePort, reg(1))
  a.load('u16', 1, fp, stack.key + fields.destinationPort)
  a.store('u16', fp, stack.destinationPort, reg(1))
}

/** Of the connection's own protocol: the packet at hand may be an ICMP error about it. */
function emitReconsideredClasses({ a }: Emitter): void {
  const done = a.newLabel('reconsidered_classes')
  const ipv6 = a.newLabel('reconsidered_ipv6')
  const isFamily = a.newLabel('reconsidered_family')
  a.mov(2, classBits.ipv4)
  a.load('u8', 1, fp, stack.key + connectionKeyLayout.kind)
  a.jumpIf('eq', 1, 6, ipv6)
  a.jump(isFamily)
  a.place(ipv6)
  a.mov(2, classBits.ipv6)
  a.place(isFamily)
  a.load('u8', 1, fp, stack.key + connectionKeyLayout.protocol)
  for (const [protocol, bit] of [
    [6, classBits.tcp],
    [17, classBits.udp],
    [132, classBits.sctp],
  ] as const) {
    const other = a.newLabel('other_protocol')
    a.jumpIf('ne', 1, protocol, other)
    a.alu('or', 2, bit)
    a.jump(done)
    a.place(other)
  }
  // An echo: the request's type stands in the remote port.
  a.load('u16', 3, fp, stack.key + connectionKeyLayout.remotePort)
  a.alu('and', 3, localAsks - 1)
  a.store('u16', fp, stack.sourcePort, reg(3))
  a.load('u8', 3, 7, row.icmpCode)
  a.store('u16', fp, stack.destinationPort, reg(3))
  const icmpv6 = a.newLabel('reconsidered_icmpv6')
  a.jumpIf('ne', 1, 1, icmpv6)
  a.alu('or', 2, classBits.icmp)
  a.jump(done)
  a.place(icmpv6)
  a.alu('or', 2, classBits.icmpv6)
  a.place(done)
  a.store('u32', fp, stack.classes, reg(2))
}

export function copy(a: Emitter['a'], from: number, to: number, length: number): void {
  for (let at = 0; at < length; at += 8) {
    a.load('u64', 1, fp, from + at)
    a.store('u64', fp, to + at, reg(1))
  }
}

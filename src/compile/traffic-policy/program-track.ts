/** The part of the datapath's program that remembers: what both ends were seen to send, until when, and fragments. */
import { reg } from '#compile/bpf/assembler'
import { seenBits, timeoutSeconds } from './connection-timeouts'
import { connectionKeyLayout, connectionLayout, fragmentKind } from './datapath-maps'
import { copy } from './program-connection'
import { type Emitter, fp, packetEvents, stack } from './program-frame'
import { emitNow, emitOnConnections } from './program-tables'
import { directionNumbers, headerLayout } from './snapshot-layout'

const row = connectionLayout
const key = connectionKeyLayout

/** For an established connection: the row at r7 learns what this packet tells, and lives on. */
export function emitRefresh(emitter: Emitter): void {
  const { a } = emitter
  const unchanged = a.newLabel('nothing_new')
  a.load('u32', 3, 7, row.seen)
  a.load('u8', 2, 7, row.opener)
  a.mov(5, reg(3))
  emitSeen(emitter)
  a.jumpIf('eq', 3, reg(5), unchanged)
  // Both ends' packets may be on two CPUs at once: bits are only ever added.
  a.mov(1, reg(3))
  a.atomic('or', 'u32', 7, row.seen, 1)
  a.place(unchanged)
  emitDeadline(emitter)
  a.store('u64', 7, row.deadline, reg(0))
}

/** What was allowed by a rule of the snapshot at r8 becomes a row, or its old row is written anew. */
export function emitRemember(emitter: Emitter): void {
  const { a } = emitter
  a.load('u32', 3, fp, stack.seen)
  a.load('u8', 2, fp, stack.opener)
  emitSeen(emitter)
  a.store('u32', fp, stack.row + row.seen, reg(3))
  emitDeadline(emitter)
  a.store('u64', fp, stack.row + row.deadline, reg(0))
  emitOrigin(emitter, 8)
  emitWrite(emitter, stack.key)
}

/** Later fragments of this datagram will pass as it did; r9 is the snapshot that let it. */
export function emitRememberFragments(emitter: Emitter): void {
  const { a, config } = emitter
  copy(a, stack.key, stack.inner, key.size)
  a.load('u8', 1, fp, stack.key + key.kind)
  a.alu('or', 1, fragmentKind[config.direction])
  a.store('u8', fp, stack.inner + key.kind, reg(1))
  a.load('u8', 1, fp, stack.fragmentProtocol)
  a.store('u8', fp, stack.inner + key.protocol, reg(1))
  a.load('u32', 1, fp, stack.fragmentId)
  a.store('u32', fp, stack.inner + key.localPort, reg(1))
  a.store('u32', fp, stack.row + row.seen, 0)
  emitNow(emitter)
  a.alu('add', 0, timeoutSeconds.fragments * emitter.config.ticksPerSecond)
  a.store('u64', fp, stack.row + row.deadline, reg(0))
  emitOrigin(emitter, 9)
  emitWrite(emitter, stack.inner)
}

function emitOrigin({ a }: Emitter, snapshot: 8 | 9): void {
  a.load('u64', 1, fp, stack.token)
  a.store('u64', fp, stack.row + row.token, reg(1))
  for (const half of [0, 8]) {
    a.load('u64', 1, snapshot, headerLayout.uidHash + half)
    a.store('u64', fp, stack.row + row.uidHash + half, reg(1))
  }
  a.load('u64', 1, snapshot, headerLayout.generation)
  a.store('u64', fp, stack.row + row.version, reg(1))
  a.store('u32', fp, stack.row + row.opener, 0)
  for (const field of ['opener', 'path', 'rule'] as const) {
    a.load('u8', 1, fp, stack[field])
    a.store('u8', fp, stack.row + row[field], reg(1))
  }
  a.load('u16', 1, fp, stack.destinationPort)
  a.store('u8', fp, stack.row + row.icmpCode, reg(1))
}

/** A full table drops its least recently used row; a packet that finds no room at all still passes, by its rule. */
function emitWrite(emitter: Emitter, keyPlace: number): void {
  const { a } = emitter
  a.mov(3, reg(fp))
  a.alu('add', 3, stack.row)
  a.mov(4, 0)
  emitOnConnections(emitter, keyPlace, 'map_update_elem')
}

/** r3, what was seen, learns from this packet; r2 is the direction that opened. r5 and r7 stay. */
function emitSeen({ a, config }: Emitter): void {
  const { acknowledges, opens, answers, finishes, resets } = packetEvents
  const done = a.newLabel('seen')
  const isOther = a.newLabel('seen_from_other')
  const isOtherTcp = a.newLabel('seen_from_other_tcp')
  const note = (event: number, bit: number, needs = 0): void => {
    const no = a.newLabel('not_seen')
    a.mov(0, reg(1))
    a.alu('and', 0, event)
    a.jumpIf('eq', 0, 0, no)
    if (needs !== 0) {
      a.mov(0, reg(3))
      a.alu('and', 0, needs)
      a.jumpIf('eq', 0, 0, no)
    }
    a.alu('or', 3, bit)
    a.place(no)
  }
  a.load('u8', 1, fp, stack.event)
  a.jumpIf('ne', 2, directionNumbers[config.direction], isOther)
  // By far most packets: data of a connection that is open both ways.
  const isOpen = seenBits.established | seenBits.openerFinished | seenBits.otherFinished
  a.mov(0, reg(3))
  a.alu('and', 0, isOpen)
  const rare = a.newLabel('more_to_note')
  a.jumpIf('ne', 0, seenBits.established, rare)
  a.jumpIf('eq', 1, acknowledges, done)
  a.place(rare)
  note(opens, seenBits.opened)
  note(acknowledges, seenBits.established, seenBits.answered)
  note(acknowledges, seenBits.otherFinishAcknowledged, seenBits.otherFinished)
  note(finishes, seenBits.openerFinished)
  note(resets, seenBits.reset)
  a.jump(done)
  a.place(isOther)
  a.load('u8', 0, fp, stack.key + key.protocol)
  a.jumpIf('eq', 0, 6, isOtherTcp)
  a.alu('or', 3, seenBits.answered)
  note(resets, seenBits.reset)
  a.jump(done)
  a.place(isOtherTcp)
  note(answers, seenBits.answered)
  note(acknowledges, seenBits.openerFinishAcknowledged, seenBits.openerFinished)
  note(finishes, seenBits.otherFinished)
  note(resets, seenBits.reset)
  a.place(done)
}

/** r0 becomes the tick until which a connection of which r3 was seen is remembered. */
function emitDeadline(emitter: Emitter): void {
  const { a } = emitter
  emitTimeout(emitter)
  // To the verifier the clock is a call, and calls leave nothing in these registers.
  a.store('u64', fp, stack.count, reg(4))
  emitNow(emitter)
  a.load('u64', 1, fp, stack.count)
  a.alu('add', 0, reg(1))
}

/** r4 becomes the ticks that a connection of which r3 was seen is remembered. */
function emitTimeout(emitter: Emitter): void {
  const { a, config } = emitter
  const done = a.newLabel('timeout')
  const wait = (seconds: number): void => {
    a.mov(4, seconds * config.ticksPerSecond)
    a.jump(done)
  }
  const ifSeen = (bit: number, seconds: number): void => {
    const no = a.newLabel('shorter')
    a.mov(0, reg(3))
    a.alu('and', 0, bit)
    a.jumpIf('eq', 0, 0, no)
    wait(seconds)
    a.place(no)
  }
  const labels = { tcp: a.newLabel('tcp_timeout'), udp: a.newLabel('udp_timeout'), sctp: a.newLabel('sctp_timeout') }
  a.load('u8', 1, fp, stack.key + key.protocol)
  a.jumpIf('eq', 1, 6, labels.tcp)
  a.jumpIf('eq', 1, 17, labels.udp)
  a.jumpIf('eq', 1, 132, labels.sctp)
  wait(timeoutSeconds.icmp)
  a.place(labels.udp)
  ifSeen(seenBits.answered, timeoutSeconds.udp.answered)
  wait(timeoutSeconds.udp.unanswered)
  a.place(labels.sctp)
  ifSeen(seenBits.reset, timeoutSeconds.sctp.closed)
  ifSeen(seenBits.answered, timeoutSeconds.sctp.answered)
  wait(timeoutSeconds.sctp.unanswered)
  a.place(labels.tcp)
  emitTcpTimeout(emitter, { ifSeen, wait })
  a.place(done)
}

type Choices = {
  readonly ifSeen: (bit: number, seconds: number) => void
  readonly wait: (seconds: number) => void
}

function emitTcpTimeout({ a }: Emitter, { ifSeen, wait }: Choices): void {
  const times = timeoutSeconds.tcp
  const { openerFinished, otherFinished, openerFinishAcknowledged, otherFinishAcknowledged } = seenBits
  const rest = a.newLabel('not_finishing')
  const half = a.newLabel('half_closed')
  ifSeen(seenBits.reset, times.closed)
  a.mov(1, reg(3))
  a.alu('and', 1, openerFinished | otherFinished)
  a.jumpIf('eq', 1, 0, rest)
  a.mov(2, reg(3))
  a.alu('and', 2, openerFinishAcknowledged | otherFinishAcknowledged)
  a.jumpIf('ne', 1, openerFinished | otherFinished, half)
  const waits = a.newLabel('time_wait')
  a.jumpIf('eq', 2, openerFinishAcknowledged | otherFinishAcknowledged, waits)
  wait(times.lastAck)
  a.place(waits)
  wait(times.timeWait)
  a.place(half)
  const closes = a.newLabel('close_wait')
  a.jumpIf('ne', 2, 0, closes)
  wait(times.finWait)
  a.place(closes)
  wait(times.closeWait)
  a.place(rest)
  ifSeen(seenBits.established, times.established)
  ifSeen(seenBits.answered, times.synReceived)
  wait(times.synSent)
}

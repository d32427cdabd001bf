/** The datapath's program for one direction: packet in, verdict out, by what is bound and what is remembered. */
import { assemble, type Program } from '#compile/bpf/assemble'
import { createAssembler, type Label, type ListingLine, reg } from '#compile/bpf/assembler'
import { connectionKeyLayout, connectionLayout, fragmentKind, interfaceLayout } from './datapath-maps'
import { emitFindConnection, emitFreshQuestion, emitReconsideredQuestion } from './program-connection'
import { emitEvaluate, emitPathClass } from './program-evaluate'
import { context, type Emitter, fp, type ProgramConfig, packetFlags, stack } from './program-frame'
import { emitIpv4 } from './program-ipv4'
import { emitIpv6 } from './program-ipv6'
import { emitLink, enterHeader } from './program-link'
import { emitCountFallback, emitCountRule, emitDeny, emitPassBy, emitPassByRule } from './program-outcome'
import { emitStraightPath } from './program-straight-path'
import { emitBoundSnapshot, emitOnConnections, emitRow } from './program-tables'
import { emitRefresh, emitRemember, emitRememberFragments } from './program-track'
import { emitTransport } from './program-transport'
import { type FallbackReason, reasonNumber, ruleReasonNumber } from './reasons'
import { actionNumbers, classBits, directionNumbers, headerLayout, statefulFlag } from './snapshot-layout'

const key = connectionKeyLayout

export function datapathProgram(config: ProgramConfig): Program {
  return assemble(datapathListing(config))
}

/** Before it is assembled, for whoever wants to know which of its branches packets take. */
export function datapathListing(config: ProgramConfig): readonly ListingLine[] {
  const a = createAssembler()
  const exits = {
    unavailable: a.newLabel('policy_unavailable'),
    malformed: a.newLabel('malformed'),
    unsupported: a.newLabel('unsupported'),
    link: a.newLabel('link'),
  }
  const emitter: Emitter = { a, config, exits }
  const labels = {
    general: a.newLabel('general'),
    straight: a.newLabel('straight_fresh'),
    parsed: a.newLabel('parsed'),
    established: a.newLabel('established'),
    reconsider: a.newLabel('reconsider'),
    fresh: a.newLabel('fresh'),
    evaluate: a.newLabel('evaluate'),
    deny: a.newLabel('deny'),
    fragment: a.newLabel('fragment'),
    noMatch: a.newLabel('no_match'),
  }
  a.mov(6, reg(1))
  emitStraightPath(emitter, { general: labels.general, fresh: labels.straight })
  a.place(labels.general)
  emitStart(emitter)
  emitParse(emitter, labels.parsed)
  a.place(labels.parsed)
  emitFindConnection(emitter, labels)
  emitEstablished(emitter, labels)
  a.place(labels.reconsider)
  emitReconsideredQuestion(emitter)
  a.jump(labels.evaluate)
  a.place(labels.fresh)
  emitFresh(emitter, labels)
  a.place(labels.evaluate)
  const matched = a.newLabel('matched')
  emitEvaluate(emitter, { matched, noMatch: labels.noMatch })
  a.place(matched)
  emitMatched(emitter, labels.deny)
  emitDenials(emitter, labels)
  return a.listing
}

type Labels = {
  readonly straight: Label
  readonly established: Label
  readonly evaluate: Label
  readonly deny: Label
  readonly fragment: Label
  readonly noMatch: Label
}

/** r8 becomes the snapshot that is bound to this direction; without one everything is denied. */
function emitStart(emitter: Emitter): void {
  const { a, config, exits } = emitter
  for (let at = 0; at < key.size; at += 8) a.store('u64', fp, stack.key + at, 0)
  for (let at = stack.hopLimit - 1; at < stack.hopLimit + 47; at += 8) a.store('u64', fp, at, 0)
  a.load('u32', 1, 6, context.slot)
  a.store('u16', fp, stack.key + key.slot, reg(1))
  emitInterface(emitter)
  emitBoundSnapshot(emitter, directionNumbers[config.direction], exits.unavailable)
  a.mov(8, reg(0))
}

/** What is said of the interface where the packet is denied, or opens a connection. */
function emitInterface(emitter: Emitter): void {
  const { a, exits } = emitter
  a.store('u64', fp, stack.context, reg(6))
  a.store('u8', fp, stack.rule, 0xff)
  a.store('u64', fp, stack.token, 0)
  a.load('u32', 1, 6, context.slot)
  emitRow(emitter, 'interfaces')
  a.jumpIf('eq', 0, 0, exits.unavailable)
  a.load('u64', 1, 0, interfaceLayout.token)
  a.store('u64', fp, stack.token, reg(1))
  a.load('u32', 1, 0, interfaceLayout.vpc)
  a.store('u32', fp, stack.vpc, reg(1))
}

function emitParse(emitter: Emitter, parsed: Label): void {
  const { a } = emitter
  const next = {
    ipv4: a.newLabel('ipv4'),
    ipv6: a.newLabel('ipv6'),
    transport: a.newLabel('transport'),
    laterFragment: a.newLabel('later_fragment'),
  }
  emitLink(emitter, next)
  a.place(next.ipv4)
  enterHeader(emitter)
  emitIpv4(emitter, next)
  a.place(next.ipv6)
  enterHeader(emitter)
  emitIpv6(emitter, next)
  a.place(next.laterFragment)
  emitLaterFragment(emitter, parsed)
  a.place(next.transport)
  emitTransport(emitter, { parsed })
}

/** It has no ports: its connection is the row that its datagram's first fragment left. */
function emitLaterFragment({ a, config }: Emitter, parsed: Label): void {
  const ipv6 = a.newLabel('later_fragment_ipv6')
  const done = a.newLabel('later_fragment_class')
  a.store('u8', fp, stack.flags, packetFlags.laterFragment)
  a.load('u32', 1, fp, stack.fragmentId)
  a.store('u32', fp, stack.key + key.localPort, reg(1))
  a.load('u8', 3, fp, stack.fragmentProtocol)
  a.store('u8', fp, stack.key + key.protocol, reg(3))
  a.store('u8', fp, stack.protocol, reg(3))
  a.load('u8', 1, fp, stack.key + key.kind)
  a.mov(2, reg(1))
  a.alu('or', 2, fragmentKind[config.direction])
  a.store('u8', fp, stack.key + key.kind, reg(2))
  a.load('u32', 4, fp, stack.classes)
  a.alu('or', 4, classBits.noTransport)
  const protocols = (own: number, bit: number) =>
    [
      [6, classBits.tcp],
      [17, classBits.udp],
      [132, classBits.sctp],
      [own, bit],
    ] as const
  const classify = (pairs: ReturnType<typeof protocols>): void => {
    for (const [protocol, bit] of pairs) {
      const other = a.newLabel('other_protocol')
      a.jumpIf('ne', 3, protocol, other)
      a.alu('or', 4, bit)
      a.place(other)
    }
    a.jump(done)
  }
  a.jumpIf('eq', 1, 6, ipv6)
  classify(protocols(1, classBits.icmp))
  a.place(ipv6)
  classify(protocols(58, classBits.icmpv6))
  a.place(done)
  a.store('u32', fp, stack.classes, reg(4))
  a.jump(parsed)
}

/** r7 is the row, r9 the snapshot that opened it. */
function emitEstablished(emitter: Emitter, labels: Labels): void {
  const { a } = emitter
  const passes = a.newLabel('passes_established')
  const error = a.newLabel('passes_icmp_error')
  const special = packetFlags.icmpError | packetFlags.laterFragment
  a.place(labels.established)
  a.load('u8', 1, fp, stack.flags)
  a.jumpIf('set', 1, packetFlags.icmpError, error)
  a.jumpIf('set', 1, special, passes)
  emitRefresh(emitter)
  a.load('u8', 1, fp, stack.flags)
  a.alu('and', 1, packetFlags.firstFragment)
  a.jumpIf('eq', 1, 0, passes)
  for (const field of ['opener', 'path', 'rule'] as const) {
    a.load('u8', 1, 7, connectionLayout[field])
    a.store('u8', fp, stack[field], reg(1))
  }
  emitRememberFragments(emitter)
  a.place(passes)
  emitPassBy(emitter, 'established')
  a.place(error)
  emitPassBy(emitter, 'icmp_error')
}

function emitFresh(emitter: Emitter, labels: Labels): void {
  const { a, exits } = emitter
  const goesOn = a.newLabel('asks_rules')
  const protocols = classBits.tcp | classBits.udp | classBits.sctp | classBits.icmp | classBits.icmpv6
  a.load('u8', 1, fp, stack.flags)
  a.alu('and', 1, packetFlags.laterFragment)
  a.jumpIf('eq', 1, 0, goesOn)
  a.load('u32', 1, 8, headerLayout.flags)
  a.jumpIf('set', 1, statefulFlag, labels.fragment)
  a.load('u32', 1, fp, stack.classes)
  a.alu('and', 1, protocols)
  a.jumpIf('eq', 1, 0, exits.unsupported)
  a.jump(goesOn)
  a.place(labels.straight)
  emitInterface(emitter)
  a.place(goesOn)
  emitFreshQuestion(emitter)
  emitPathClass(emitter)
  a.jump(labels.evaluate)
}

/** An entry matched; the snapshot it is of is r8. */
function emitMatched(emitter: Emitter, deny: Label): void {
  const { a } = emitter
  const remember = a.newLabel('remember')
  const fragments = a.newLabel('remember_fragments')
  const passes = a.newLabel('passes_by_rule')
  const denied = a.newLabel('denied_by_rule')
  emitCountRule(emitter)
  a.load('u8', 1, fp, stack.action)
  a.jumpIf('eq', 1, actionNumbers.deny, denied)
  a.load('u32', 1, 8, headerLayout.flags)
  a.alu('and', 1, statefulFlag)
  a.jumpIf('eq', 1, 0, passes)
  a.load('u8', 1, fp, stack.flags)
  a.jumpIf('set', 1, packetFlags.isReconsidered, remember)
  a.jumpIf('set', 1, packetFlags.icmpError, passes)
  a.jumpIf('set', 1, packetFlags.standsAlone | packetFlags.opensNone, fragments)
  a.place(remember)
  emitRemember(emitter)
  a.place(fragments)
  a.load('u8', 1, fp, stack.flags)
  a.alu('and', 1, packetFlags.firstFragment | packetFlags.icmpError)
  a.jumpIf('ne', 1, packetFlags.firstFragment, passes)
  a.mov(9, reg(8))
  emitRememberFragments(emitter)
  a.place(passes)
  emitPassByRule(emitter)
  a.place(denied)
  emitForget(emitter)
  a.mov(7, ruleReasonNumber)
  a.jump(deny)
}

/** What an edit denies is no connection any more. */
function emitForget(emitter: Emitter): void {
  const { a } = emitter
  const kept = a.newLabel('was_no_connection')
  a.load('u8', 1, fp, stack.flags)
  a.alu('and', 1, packetFlags.isReconsidered)
  a.jumpIf('eq', 1, 0, kept)
  emitOnConnections(emitter, stack.key, 'map_delete_elem')
  a.place(kept)
}

function emitDenials(emitter: Emitter, labels: Labels): void {
  const { a, exits } = emitter
  const deniedFor = (label: Label, reason: FallbackReason): void => {
    a.place(label)
    emitCountFallback(emitter, reason)
    a.mov(7, reasonNumber(reason))
    a.jump(labels.deny)
  }
  a.place(labels.noMatch)
  emitForget(emitter)
  deniedFor(a.newLabel('denied_no_match'), 'no_match')
  deniedFor(labels.fragment, 'fragment')
  deniedFor(exits.malformed, 'malformed')
  deniedFor(exits.unsupported, 'unsupported')
  deniedFor(exits.unavailable, 'policy_unavailable')
  a.place(labels.deny)
  emitDeny(emitter)
  a.place(exits.link)
  emitPassBy(emitter, 'link')
}

/** The part of the datapath's program that reads TCP, UDP, SCTP and ICMP, and what they say of their connection. */
import { type Label, reg } from '#compile/bpf/assembler'
import { connectionKeyLayout, localAsks } from './datapath-maps'
import {
  context,
  type Emitter,
  fetchHeader,
  fp,
  packetEvents,
  packetFlags,
  recallOffset,
  setClass,
  setFlag,
  stack,
} from './program-frame'
import { emitIcmpError } from './program-icmp-error'
import { classBits } from './snapshot-layout'

const protocols = { icmp: 1, tcp: 6, udp: 17, sctp: 132 } as const

export function emitTransport(emitter: Emitter, next: { readonly parsed: Label }): void {
  const { a, exits } = emitter
  const labels = {
    tcp: a.newLabel('tcp'),
    udp: a.newLabel('udp'),
    sctp: a.newLabel('sctp'),
    icmp: a.newLabel('icmp'),
    icmpv6: a.newLabel('icmpv6'),
  }
  recallOffset(emitter)
  a.load('u8', 3, fp, stack.protocol)
  a.load('u32', 4, fp, stack.length)
  for (const protocol of ['tcp', 'udp', 'sctp'] as const) a.jumpIf('eq', 3, protocols[protocol], labels[protocol])
  // ICMP of the other family is no protocol that a rule can name; what comes here of IPv6 ends no other chain.
  a.load('u8', 1, fp, stack.key + connectionKeyLayout.kind)
  a.jumpIf('eq', 1, 6, labels.icmpv6)
  a.jumpIf('eq', 3, protocols.icmp, labels.icmp)
  a.jump(exits.unsupported)

  a.place(labels.tcp)
  emitTcp(emitter, next.parsed)
  a.place(labels.udp)
  emitUdp(emitter, next.parsed)
  a.place(labels.sctp)
  emitSctp(emitter, next.parsed)
  a.place(labels.icmp)
  emitIcmp(emitter, next.parsed)
  a.place(labels.icmpv6)
  emitIcmpv6(emitter, next.parsed)
}

/** Of the header at r9 into the key, in the processor's order. */
function emitPorts(emitter: Emitter, classBit: number): void {
  const { a, config } = emitter
  a.load('u32', 1, 9, 0)
  a.toBigEndian(1, 32)
  // Source port above, destination port below: as a key has them on the way in.
  a.mov(2, reg(1))
  a.alu('rsh', 2, 16)
  a.store('u16', fp, stack.sourcePort, reg(2))
  a.store('u16', fp, stack.destinationPort, reg(1))
  if (config.direction === 'egress') {
    a.alu32('lsh', 1, 16)
    a.alu32('or', 1, reg(2))
  }
  a.store('u32', fp, stack.key + connectionKeyLayout.localPort, reg(1))
  setClass(emitter, classBit)
}

/** What it states as its length, its header and the IP packet hold; of a first fragment only its header. */
function emitUdp(emitter: Emitter, parsed: Label): void {
  const { a, exits } = emitter
  const told = a.newLabel('udp_length')
  const isFragment = a.newLabel('udp_first_fragment')
  a.jumpIf('lt', 4, 8, exits.malformed)
  fetchHeader(emitter, 8, exits.malformed)
  a.load('u16', 3, 9, 4)
  a.toBigEndian(3, 16)
  // Zero is "to be segmented", as in IP.
  a.jumpIf('ne', 3, 0, told)
  a.load('u32', 1, 6, context.segmentSize)
  a.jumpIf('eq', 1, 0, told)
  a.mov(3, 8)
  a.place(told)
  a.jumpIf('lt', 3, 8, exits.malformed)
  a.load('u8', 1, fp, stack.flags)
  a.jumpIf('set', 1, packetFlags.firstFragment, isFragment)
  a.load('u32', 4, fp, stack.length)
  a.jumpIf('gt', 3, reg(4), exits.malformed)
  a.place(isFragment)
  emitPorts(emitter, classBits.udp)
  a.jump(parsed)
}

/** FIN 1, SYN 2, RST 4, ACK 16: only six mixtures of them are sent by a sane end. */
const sane = [2, 18, 4, 20, 17, 16]

function emitTcp(emitter: Emitter, parsed: Label): void {
  const { a, exits } = emitter
  a.jumpIf('lt', 4, 20, exits.malformed)
  fetchHeader(emitter, 20, exits.malformed)
  a.load('u32', 4, fp, stack.length)
  a.load('u8', 1, 9, 12)
  a.alu('rsh', 1, 4)
  a.alu('lsh', 1, 2)
  a.jumpIf('lt', 1, 20, exits.malformed)
  a.jumpIf('gt', 1, reg(4), exits.malformed)
  emitPorts(emitter, classBits.tcp)
  a.load('u8', 1, 9, 13)
  a.alu('and', 1, 0x17)
  const [syn, synAck, rst, rstAck, finAck, ack] = sane.map((flags) => ({ flags, label: a.newLabel(`tcp_${flags}`) }))
  const cases = [
    [ack, packetEvents.acknowledges, 0],
    [syn, packetEvents.opens, 0],
    [synAck, packetEvents.answers | packetEvents.acknowledges, packetFlags.opensNone],
    [finAck, packetEvents.finishes | packetEvents.acknowledges, 0],
    [rst, packetEvents.resets, packetFlags.opensNone],
    [rstAck, packetEvents.resets | packetEvents.acknowledges, packetFlags.opensNone],
  ] as const
  for (const [one] of cases) if (one !== undefined) a.jumpIf('eq', 1, one.flags, one.label)
  a.jump(exits.malformed)
  for (const [one, event, flag] of cases) {
    if (one === undefined) continue
    a.place(one.label)
    a.store('u8', fp, stack.event, event)
    if (flag !== 0) setFlag(emitter, flag)
    a.jump(parsed)
  }
}

const chunks = { init: 1, initAck: 2, abort: 6, shutdownComplete: 14 } as const

/** The first chunk is whole, as UDP is, and tells: INIT, INIT ACK and SHUTDOWN COMPLETE travel alone, an ABORT ends whatever it follows. */
function emitSctp(emitter: Emitter, parsed: Label): void {
  const { a, exits } = emitter
  const isFragment = a.newLabel('sctp_first_fragment')
  a.jumpIf('lt', 4, 16, exits.malformed)
  fetchHeader(emitter, 16, exits.malformed)
  a.load('u16', 3, 9, 14)
  a.toBigEndian(3, 16)
  a.jumpIf('lt', 3, 4, exits.malformed)
  a.alu('add', 3, 12)
  a.load('u8', 1, fp, stack.flags)
  a.jumpIf('set', 1, packetFlags.firstFragment, isFragment)
  a.load('u32', 4, fp, stack.length)
  a.jumpIf('gt', 3, reg(4), exits.malformed)
  a.place(isFragment)
  emitPorts(emitter, classBits.sctp)
  const opens = a.newLabel('sctp_init')
  const answers = a.newLabel('sctp_init_ack')
  const resets = a.newLabel('sctp_end')
  a.load('u8', 1, 9, 12)
  a.jumpIf('eq', 1, chunks.init, opens)
  a.jumpIf('eq', 1, chunks.initAck, answers)
  a.jumpIf('eq', 1, chunks.abort, resets)
  a.jumpIf('eq', 1, chunks.shutdownComplete, resets)
  a.jump(parsed)
  a.place(opens)
  a.store('u8', fp, stack.event, packetEvents.opens)
  a.jump(parsed)
  a.place(answers)
  a.store('u8', fp, stack.event, packetEvents.answers)
  setFlag(emitter, packetFlags.opensNone)
  a.jump(parsed)
  a.place(resets)
  a.store('u8', fp, stack.event, packetEvents.resets)
  setFlag(emitter, packetFlags.opensNone)
  a.jump(parsed)
}

/** r3 becomes the type, r4 the code; both are in the place of the ports for the rules. */
function emitIcmpHeader(emitter: Emitter, classBit: number): void {
  const { a, exits } = emitter
  a.jumpIf('lt', 4, 8, exits.malformed)
  fetchHeader(emitter, 8, exits.malformed)
  setClass(emitter, classBit)
  a.load('u8', 3, 9, 0)
  a.load('u8', 4, 9, 1)
  a.store('u16', fp, stack.sourcePort, reg(3))
  a.store('u16', fp, stack.destinationPort, reg(4))
}

function emitIcmp(emitter: Emitter, parsed: Label): void {
  const { a } = emitter
  emitIcmpHeader(emitter, classBits.icmp)
  const error = a.newLabel('icmp_error')
  for (const type of [3, 4, 11, 12]) a.jumpIf('eq', 3, type, error)
  emitEcho(emitter, parsed, [
    { asks: 8, answers: 0 },
    { asks: 13, answers: 14 },
  ])
  a.place(error)
  emitIcmpError(emitter, { family: 'ipv4', parsed })
}

const neighbourDiscovery = { routerSolicitation: 133, routerAdvertisement: 134, neighbours: [135, 136] } as const
const multicastListeners = [130, 131, 132, 143]

function emitIcmpv6(emitter: Emitter, parsed: Label): void {
  const { a, config, exits } = emitter
  emitIcmpHeader(emitter, classBits.icmpv6)
  const neighbour = a.newLabel('neighbour_discovery')
  const listener = a.newLabel('multicast_listener')
  const fragmented = a.newLabel('icmpv6_fragmented')
  const plain = a.newLabel('icmpv6_plain')
  const error = a.newLabel('icmpv6_error')
  // RFC 6980: no host heeds these in fragments, and a link needs none.
  a.load('u8', 1, fp, stack.flags)
  a.jumpIf('set', 1, packetFlags.hasFragmentHeader, fragmented)
  a.load('u8', 1, fp, stack.hopLimit)
  for (const type of neighbourDiscovery.neighbours) a.jumpIf('eq', 3, type, neighbour)
  // Routers advertise towards the interface and are asked from it; the other way round is for the rules.
  const isEgress = config.direction === 'egress'
  const router = isEgress ? neighbourDiscovery.routerSolicitation : neighbourDiscovery.routerAdvertisement
  a.jumpIf('eq', 3, router, neighbour)
  for (const type of multicastListeners) a.jumpIf('eq', 3, type, listener)
  a.place(fragmented)
  a.jumpIf('eq', 3, 0, plain)
  a.jumpIf('le', 3, 4, error)
  a.place(plain)
  emitEcho(emitter, parsed, [{ asks: 128, answers: 129 }])
  // A router would have lowered the hop limit: with 255 or 1 the packet is of this very link.
  a.place(neighbour)
  a.jumpIf('ne', 4, 0, plain)
  a.jumpIf('eq', 1, 255, exits.link)
  a.jump(plain)
  a.place(listener)
  a.jumpIf('eq', 1, 1, exits.link)
  a.jump(plain)
  a.place(error)
  emitIcmpError(emitter, { family: 'ipv6', parsed })
}

type Echo = { readonly asks: number; readonly answers: number }

/** A request and its answers are one connection by their identifier; all other types stand alone. */
function emitEcho(emitter: Emitter, parsed: Label, echoes: readonly Echo[]): void {
  const { a, config } = emitter
  const isEgress = config.direction === 'egress'
  const cases = echoes.flatMap(({ asks, answers }) => [
    { type: asks, asks, isAnswer: false, isLocalAsking: isEgress },
    { type: answers, asks, isAnswer: true, isLocalAsking: !isEgress },
  ])
  const labels = cases.map(({ type }) => a.newLabel(`icmp_type_${type}`))
  for (const [index, { type }] of cases.entries()) a.jumpIf('eq', 3, type, labels[index] ?? parsed)
  setFlag(emitter, packetFlags.standsAlone)
  a.jump(parsed)
  for (const [index, { asks, isAnswer, isLocalAsking }] of cases.entries()) {
    a.place(labels[index] ?? parsed)
    a.load('u16', 1, 9, 4)
    a.store('u16', fp, stack.key + connectionKeyLayout.localPort, reg(1))
    a.store('u16', fp, stack.key + connectionKeyLayout.remotePort, asks | (isLocalAsking ? localAsks : 0))
    if (isAnswer) setFlag(emitter, packetFlags.opensNone)
    a.jump(parsed)
  }
}

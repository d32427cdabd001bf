/** The part of the datapath's program that finds, inside an ICMP error, the connection it is about. */
import type { Family } from '#base/ip'
import { type Label, reg } from '#compile/bpf/assembler'
import { connectionKeyLayout, localAsks } from './datapath-maps'
import {
  type Emitter,
  fetchHeader,
  fp,
  keepOffset,
  keyFields,
  offsetMask,
  packetFlags,
  recallOffset,
  setFlag,
  stack,
} from './program-frame'
import { emitStatedLength, extensionHeaders, maxExtensionHeaders } from './program-ipv6'

const layout = connectionKeyLayout

/**
 * The packet inside went the other way, so its ends are told from there. What cannot be read, or was not sent by the one
 * who is told of the error, is about no connection: the error then stands alone before the rules.
 */
export function emitIcmpError(
  emitter: Emitter,
  { family, parsed }: { readonly family: Family; readonly parsed: Label },
): void {
  const { a, config } = emitter
  const unread = a.newLabel(`${family}_error_unread`)
  const other = config.direction === 'ingress' ? 'egress' : 'ingress'
  const sent = keyFields(other)
  for (let at = 0; at < layout.size; at += 8) a.store('u64', fp, stack.inner + at, 0)
  a.load('u16', 5, fp, stack.key + layout.slot)
  a.store('u16', fp, stack.inner + layout.slot, reg(5))
  a.alu('add', 7, 8)
  if (family === 'ipv4') emitInnerIpv4(emitter, sent, unread)
  else emitInnerIpv6(emitter, sent, unread)
  emitSameSender(emitter, unread)
  emitInnerTransport(emitter, { family, parsed, unread, isSentFromLocal: other === 'egress' })
  a.place(unread)
  setFlag(emitter, packetFlags.standsAlone)
  a.jump(parsed)
}

type Fields = ReturnType<typeof keyFields>

/** r3 becomes the protocol, r7 the place of the header after, which has eight bytes at least. */
function emitInnerIpv4({ a, config, exits }: Emitter, sent: Fields, unread: Label): void {
  a.load('u32', 1, fp, stack.length)
  a.jumpIf('lt', 1, 36, unread)
  fetchHeader({ a, config, exits }, 20, unread)
  a.load('u8', 3, 9, 0)
  a.mov(4, reg(3))
  a.alu('rsh', 4, 4)
  a.jumpIf('ne', 4, 4, unread)
  a.alu('and', 3, 15)
  a.alu('lsh', 3, 2)
  a.jumpIf('lt', 3, 20, unread)
  a.mov(4, reg(3))
  a.alu('add', 4, 16)
  a.load('u32', 1, fp, stack.length)
  a.jumpIf('gt', 4, reg(1), unread)
  a.load('u16', 4, 9, 6)
  a.toBigEndian(4, 16)
  a.alu('and', 4, 0x1fff)
  a.jumpIf('ne', 4, 0, unread)
  a.load('u32', 1, 9, 12)
  a.store('u32', fp, stack.inner + sent.source, reg(1))
  a.load('u32', 1, 9, 16)
  a.store('u32', fp, stack.inner + sent.destination, reg(1))
  a.store('u8', fp, stack.inner + layout.kind, 4)
  a.alu('add', 7, reg(3))
  a.load('u8', 3, 9, 9)
}

function emitInnerIpv6(emitter: Emitter, sent: Fields, unread: Label): void {
  const { a } = emitter
  a.load('u32', 1, fp, stack.length)
  a.jumpIf('lt', 1, 56, unread)
  a.alu('sub', 1, 48)
  a.store('u32', fp, stack.length, reg(1))
  fetchHeader(emitter, 40, unread)
  a.load('u8', 3, 9, 0)
  a.alu('rsh', 3, 4)
  a.jumpIf('ne', 3, 6, unread)
  for (const half of [0, 8]) {
    a.load('u64', 1, 9, 8 + half)
    a.store('u64', fp, stack.inner + sent.source + half, reg(1))
    a.load('u64', 1, 9, 24 + half)
    a.store('u64', fp, stack.inner + sent.destination + half, reg(1))
  }
  a.store('u8', fp, stack.inner + layout.kind, 6)
  a.load('u8', 3, 9, 6)
  a.store('u8', fp, stack.inner + layout.protocol, reg(3))
  a.alu('add', 7, 40)
  emitInnerChain(emitter, unread)
}

/**
 * What was sent in fragments, or with options, is told of with these headers before its ports: r3 becomes the protocol
 * after them, r7 its place. The bytes that are left of the packet inside are `stack.length`.
 */
function emitInnerChain(emitter: Emitter, unread: Label): void {
  const { a } = emitter
  const again = a.newLabel('inner_extension_header')
  const isHeader = a.newLabel('is_inner_extension')
  const fragment = a.newLabel('inner_fragment_header')
  const haveLength = a.newLabel('inner_header_length')
  const done = a.newLabel('inner_chain_done')
  a.store('u64', fp, stack.count, 0)
  a.place(again)
  a.jumpIf('gt', 7, offsetMask, unread)
  keepOffset(emitter)
  a.load('u8', 3, fp, stack.inner + layout.protocol)
  for (const header of Object.values(extensionHeaders)) a.jumpIf('eq', 3, header, isHeader)
  a.jump(done)

  a.place(isHeader)
  a.load('u64', 4, fp, stack.count)
  a.jumpIf('ge', 4, maxExtensionHeaders, unread)
  a.alu('add', 4, 1)
  a.store('u64', fp, stack.count, reg(4))
  recallOffset(emitter)
  fetchHeader(emitter, 8, unread)
  a.load('u8', 3, fp, stack.inner + layout.protocol)
  a.load('u8', 1, 9, 0)
  a.store('u8', fp, stack.inner + layout.protocol, reg(1))
  a.jumpIf('eq', 3, extensionHeaders.fragment, fragment)
  emitStatedLength(emitter)
  a.jump(haveLength)
  a.place(fragment)
  a.load('u16', 1, 9, 2)
  a.toBigEndian(1, 16)
  a.alu('and', 1, 0xfff8)
  a.jumpIf('ne', 1, 0, unread)
  a.mov(4, 8)
  a.place(haveLength)
  // Eight bytes are to follow it.
  a.load('u32', 1, fp, stack.length)
  a.mov(2, reg(4))
  a.alu('add', 2, 8)
  a.jumpIf('gt', 2, reg(1), unread)
  a.alu('sub', 1, reg(4))
  a.store('u32', fp, stack.length, reg(1))
  a.alu('add', 7, reg(4))
  a.jump(again)

  a.place(done)
  recallOffset(emitter)
}

/** An error goes to the one whose packet it is about. */
function emitSameSender({ a, config }: Emitter, unread: Label): void {
  const told = keyFields(config.direction).destination
  for (const half of [0, 8]) {
    a.load('u64', 1, fp, stack.key + told + half)
    a.load('u64', 2, fp, stack.inner + told + half)
    a.jumpIf('ne', 1, reg(2), unread)
  }
}

type InnerTransport = {
  readonly family: Family
  readonly parsed: Label
  readonly unread: Label
  readonly isSentFromLocal: boolean
}

function emitInnerTransport(emitter: Emitter, { family, parsed, unread, isSentFromLocal }: InnerTransport): void {
  const { a } = emitter
  const sent = keyFields(isSentFromLocal ? 'egress' : 'ingress')
  const ports = a.newLabel(`${family}_inner_ports`)
  const found = a.newLabel(`${family}_inner_found`)
  a.store('u8', fp, stack.inner + layout.protocol, reg(3))
  fetchHeader(emitter, 8, unread)
  a.load('u8', 3, fp, stack.inner + layout.protocol)
  for (const protocol of [6, 17, 132]) a.jumpIf('eq', 3, protocol, ports)
  a.jumpIf('ne', 3, family === 'ipv4' ? 1 : 58, unread)
  const echoes = family === 'ipv4' ? [[8, 0] as const, [13, 14] as const] : [[128, 129] as const]
  a.load('u8', 3, 9, 0)
  a.load('u16', 4, 9, 4)
  a.store('u16', fp, stack.inner + layout.localPort, reg(4))
  for (const [asks, answers] of echoes) {
    emitInnerEcho(emitter, { type: asks, port: asks | (isSentFromLocal ? localAsks : 0), found })
    emitInnerEcho(emitter, { type: answers, port: asks | (isSentFromLocal ? 0 : localAsks), found })
  }
  a.jump(unread)
  a.place(ports)
  a.load('u16', 1, 9, 0)
  a.toBigEndian(1, 16)
  a.store('u16', fp, stack.inner + sent.sourcePort, reg(1))
  a.load('u16', 1, 9, 2)
  a.toBigEndian(1, 16)
  a.store('u16', fp, stack.inner + sent.destinationPort, reg(1))
  a.place(found)
  setFlag(emitter, packetFlags.icmpError)
  a.jump(parsed)
}

type InnerEcho = { readonly type: number; readonly port: number; readonly found: Label }

function emitInnerEcho({ a }: Emitter, { type, port, found }: InnerEcho): void {
  const other = a.newLabel('other_type')
  a.jumpIf('ne', 3, type, other)
  a.store('u16', fp, stack.inner + layout.remotePort, port)
  a.jump(found)
  a.place(other)
}

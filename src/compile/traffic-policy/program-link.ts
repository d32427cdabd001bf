/** The part of the datapath's program that reads what is before IP: Ethernet and up to two VLAN tags, or nothing. */
import type { Label } from '#compile/bpf/assembler'
import { type Emitter, fetchHeader, keepOffset, recallOffset } from './program-frame'

/** As a little-endian load reads them. */
export const swapped = (type: number): number => ((type & 0xff) << 8) | (type >> 8)

export const etherTypes = {
  ipv4: 0x0800,
  ipv6: 0x86dd,
  vlan: [0x8100, 0x88a8, 0x9100],
  /** ARP, LACP and its kin, port authentication, LLDP: what a link needs to live. */
  link: [0x0806, 0x8809, 0x888e, 0x88cc],
} as const

export function emitLink(emitter: Emitter, next: { readonly ipv4: Label; readonly ipv6: Label }): void {
  if (emitter.config.linkLayer === 'ethernet') emitEthernet(emitter, next)
  else emitVersion(emitter, next)
}

function emitEthernet(emitter: Emitter, next: { readonly ipv4: Label; readonly ipv6: Label }): void {
  const { a, exits } = emitter
  a.mov(7, 0)
  fetchHeader(emitter, 14, exits.malformed)
  a.load('u16', 3, 9, 12)
  a.mov(7, 14)
  for (let tags = 0; ; tags++) {
    a.jumpIf('eq', 3, swapped(etherTypes.ipv4), next.ipv4)
    a.jumpIf('eq', 3, swapped(etherTypes.ipv6), next.ipv6)
    for (const type of etherTypes.link) a.jumpIf('eq', 3, swapped(type), exits.link)
    if (tags === 2) break
    const tagged = a.newLabel('vlan_tag')
    for (const type of etherTypes.vlan) a.jumpIf('eq', 3, swapped(type), tagged)
    a.jump(exits.unsupported)
    a.place(tagged)
    fetchHeader(emitter, 4, exits.malformed)
    a.load('u16', 3, 9, 2)
    a.alu('add', 7, 4)
  }
  a.jump(exits.unsupported)
}

/** A device without link header carries IP alone, and its first four bits say which. */
function emitVersion(emitter: Emitter, next: { readonly ipv4: Label; readonly ipv6: Label }): void {
  const { a, exits } = emitter
  a.mov(7, 0)
  fetchHeader(emitter, 1, exits.malformed)
  a.load('u8', 3, 9, 0)
  a.alu('rsh', 3, 4)
  a.jumpIf('eq', 3, 4, next.ipv4)
  a.jumpIf('eq', 3, 6, next.ipv6)
  a.jump(exits.unsupported)
}

/** Both ways into IP begin with the offset forgotten, so that they are one to the verifier. */
export function enterHeader(emitter: Emitter): void {
  keepOffset(emitter)
  recallOffset(emitter)
}

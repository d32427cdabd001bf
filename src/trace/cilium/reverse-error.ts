/** Errors of ICMP about translated connections. Mirrors snat_v4_rev_nat_handle_icmp_frag_needed of bpf/lib/nat.h, Cilium 1.16 to 1.19. */
import { printIp } from '#base/ip'
import type { WalkInner, WalkPlace } from '#model/walk'
import { type FlowPacket, innerText, rewriteDestination, rewritePlace } from './flow-packet'
import type { NodeTables } from './node-tables'
import { lookUpNat } from './state-tables'
import { type Draft, type Ending, stateOf, tell, tellRewrite, unknown } from './walk-draft'

/** `undefined`: it goes on as it is. */
export function reverseError(draft: Draft, node: NodeTables, at: WalkPlace): 'translated' | Ending | undefined {
  const { packet } = draft
  const { about } = packet
  if (about === undefined) {
    const why = 'what it is about is not told (--about), and is taken to be no translated connection'
    tell(draft, at, ['asked for reverse NAT', why])
    return undefined
  }
  const { row, lookup } = lookUpNat(stateOf(draft, node), answerTo(about), 'IN')
  if (row === undefined) {
    const why = `no mapping: ${innerText(about)}, which it is about, is no translated connection`
    tell(draft, at, ['asked for reverse NAT', why], { lookups: [lookup] })
    return undefined
  }
  if (!isTooBig(packet)) {
    const sentence = `it is about a translated connection of ${printIp(row.to.ip)}, and whether a release translates errors other than that a packet is too big is not settled`
    return unknown(draft, at, 'cilium.error-untold', sentence)
  }
  const inside: WalkInner = { ...about, source: row.to.ip, sourcePort: row.to.port }
  const outer = rewriteDestination(packet, { ip: row.to.ip, port: packet.port }, rewritePlace(at))
  const by = outer.changes[0]?.by ?? ''
  const field = 'packet inside'
  tellRewrite(draft, at, ['translated the error back', 'what it is about is a translated connection'], {
    packet: { ...outer.packet, about: inside, ...(at.hook !== 'xdp' && { mark: 0x300 }) },
    changes: [...outer.changes, { field, before: innerText(about), after: innerText(inside), by }],
    lookups: [lookup],
  })
  return 'translated'
}

/** Of type 3 the code is taken to be 4, fragmentation needed. */
function isTooBig({ protocol, icmpType }: FlowPacket): boolean {
  return icmpType === (protocol === 'ICMP' ? 3 : 2)
}

function answerTo({ protocol, source, sourcePort, destination, port }: WalkInner): FlowPacket {
  return { protocol, source: destination, sourcePort: port, destination: source, port: sourcePort, wrappings: [] }
}

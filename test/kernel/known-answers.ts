/** What is true of a packet of these tests where a trace must ask: a path that assumes otherwise is not the kernel's. */
import { coversPattern } from '#trace/path'
import type { Question } from '#trace/question'
import type { Outcome } from '#trace/walk-hooks'
import { linkOf, places } from '../random/node-layout'
import { fromLocal, type SentPacket } from './sent-packet'
import type { PacketOutcome } from './trace-packets'

/** `linkTo`: the link that the node's routes to an address lead to. */
export function agreesWithPacket(
  { path }: Outcome,
  seen: PacketOutcome,
  linkTo: (address: string) => string = (address) => linkOf(familyOf(seen.packet), address),
): boolean {
  for (let entry = path.answers; entry !== undefined; entry = entry.earlier) {
    const truth = truthOf(entry.question, { ...seen, linkTo })
    if (truth !== undefined && truth !== entry.answer) return false
  }
  return true
}

/** Undefined where these tests do not know it either. */
function truthOf(
  { key, subject }: Question,
  seen: PacketOutcome & { readonly linkTo: (address: string) => string },
): boolean | undefined {
  if (subject.kind === 'out-interface') {
    const out = outInterfaceOf(seen)
    return out === undefined ? undefined : coversPattern(subject.pattern, out)
  }
  const { packet } = seen
  const [kind, ...rest] = key.split(':')
  const value = rest.join(':')
  switch (kind) {
    case 'length':
      return isInRange(value, lengthOf(packet))
    case 'rpfilter':
      if (places[familyOf(packet)].nodeIps.includes(packet.source)) return false
      return value === 'loose' || (packet.from !== fromLocal && seen.linkTo(packet.source) === packet.from)
    case 'owner':
      return /^[ug]id /.test(value) ? isInRange(value.slice(4), 0) : undefined
    case 'route-localnet':
      return true
    case 'physdev':
    case 'socket':
    case 'ipsec':
      return false
    default:
      return undefined
  }
}

function familyOf(packet: SentPacket): 'ipv4' | 'ipv6' {
  return packet.source.includes(':') ? 'ipv6' : 'ipv4'
}

/** A process's packet may get another way out after OUTPUT, so that there are two answers. */
function outInterfaceOf({ packet, walks }: PacketOutcome): string | undefined {
  if (packet.from === fromLocal) return undefined
  return walks[0].steps.findLast((step) => step.packet.outInterface !== undefined)?.packet.outInterface
}

function isInRange(text: string, value: number): boolean {
  const [from = 0, to = from] = text.split(/[:-]/).map(Number)
  return value >= from && value <= to
}

/** Of the whole IP packet; a process's SYN carries options. */
function lengthOf(packet: SentPacket): number {
  const header = familyOf(packet) === 'ipv6' ? 40 : 20
  const isProcess = packet.from === fromLocal
  const segment = { tcp: isProcess ? 40 : 20, udp: 16, icmp: 16, sctp: 32 }
  return header + segment[packet.protocol]
}

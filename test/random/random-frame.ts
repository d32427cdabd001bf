/** Random frames of the small world of `randomEntry`: well formed mostly, and broken in every way the datapath must see. */
import type { Family, Ip } from '#base/ip'
import type { Random } from './random'
import { randomIp, randomPort } from './random-entry'

export type Talk = {
  readonly family: Family
  readonly source: Ip
  readonly destination: Ip
  readonly kind: 'tcp' | 'udp' | 'sctp' | 'echo' | 'icmp' | 'other'
  readonly sourcePort: number
  readonly destinationPort: number
  readonly id: number
}

export function randomTalk(random: Random): Talk {
  const family = random.pick<Family>(['ipv4', 'ipv6'])
  return {
    family,
    source: randomIp(random, family),
    destination: randomIp(random, family),
    kind: random.pick<Talk['kind']>(['tcp', 'tcp', 'tcp', 'udp', 'udp', 'sctp', 'echo', 'icmp', 'other']),
    sourcePort: randomPort(random),
    destinationPort: randomPort(random),
    id: random.between(1, 3),
  }
}

export function answerOf(talk: Talk): Talk {
  return {
    ...talk,
    source: talk.destination,
    destination: talk.source,
    sourcePort: talk.destinationPort,
    destinationPort: talk.sourcePort,
  }
}

export type FrameForm = { readonly isAnswer: boolean; readonly linkLayer: 'ethernet' | 'ip' }

/** One packet of a talk, as it is or broken. */
export function randomFrame(random: Random, talk: Talk, form: FrameForm): Buffer {
  const payload = transportOf(random, talk, form.isAnswer)
  return finish(random, ipOf(random, talk, payload), { family: talk.family, linkLayer: form.linkLayer })
}

/** An ICMP error to the sender of a packet of the talk, by a node in between or by its end. */
export function randomError(random: Random, talk: Talk, form: FrameForm): Buffer {
  const inner = ipHeaders(random, talk, transportOf(random, talk, form.isAnswer), { isPlain: random.chance(0.9) })
  const types = talk.family === 'ipv4' ? [3, 3, 11, 12, 4, 5] : [1, 2, 2, 3, 4, 5]
  const header = Buffer.alloc(8)
  header.writeUInt8(random.pickFrom(types) ?? 3, 0)
  header.writeUInt8(random.below(5), 1)
  const told = random.chance(0.95) ? talk.source : randomIp(random, talk.family)
  const about = inner.subarray(0, random.chance(0.9) ? inner.length : random.below(inner.length))
  const teller = {
    ...talk,
    source: random.chance(0.5) ? talk.destination : randomIp(random, talk.family),
    destination: told,
  }
  const error = ipHeaders(random, { ...teller, kind: 'icmp' }, Buffer.concat([header, about]), { isPlain: true })
  return finish(random, error, { family: talk.family, linkLayer: form.linkLayer })
}

/** What ends send, often enough that connections open, live and end; then what no sane end does. */
const tcpFlags = [
  ...[0x10, 0x10, 0x10, 0x18, 0x02, 0x02, 0x12, 0x12, 0x11, 0x11, 0x04, 0x14],
  ...[0x00, 0x03, 0x06, 0x01, 0x29, 0xc2, 0x22, 0x13, 0x07],
]

function transportOf(random: Random, talk: Talk, isAnswer: boolean): Buffer {
  const rest = Buffer.alloc(random.below(24), 0xab)
  const header = Buffer.alloc({ tcp: 20, udp: 8, sctp: 16, echo: 8, icmp: 8, other: 8 }[talk.kind])
  switch (talk.kind) {
    case 'tcp': {
      const options = random.chance(0.8) ? 0 : random.below(4)
      header.writeUInt8((random.chance(0.97) ? 5 + options : random.below(16)) << 4, 12)
      header.writeUInt8(random.pickFrom(tcpFlags) ?? 0, 13)
      writePorts(header, talk)
      return Buffer.concat([header, Buffer.alloc(4 * options), rest])
    }
    case 'udp':
      header.writeUInt16BE(random.chance(0.95) ? 8 + rest.length : random.pick([0, 7, 8, 9 + rest.length, 65535]), 4)
      writePorts(header, talk)
      break
    case 'sctp':
      header.writeUInt8(random.pickFrom([0, 0, 3, 1, 2, 6, 14, 10]) ?? 0, 12)
      header.writeUInt16BE(random.chance(0.95) ? 4 + rest.length : random.pick([0, 3, 4, 5 + rest.length, 65535]), 14)
      writePorts(header, talk)
      break
    case 'echo':
      header.writeUInt8(echoType(random, talk.family, isAnswer), 0)
      header.writeUInt16BE(talk.id, 4)
      break
    default:
      header.writeUInt8(random.pickFrom([0, 3, 8, 11, 128, 129, 130, 133, 134, 135, 136, 137, 143, 255]) ?? 0, 0)
      header.writeUInt8(random.pickFrom([0, 0, 1, 4]) ?? 0, 1)
  }
  return Buffer.concat([header, rest])
}

function echoType(random: Random, family: Family, isAnswer: boolean): number {
  if (family === 'ipv6') return isAnswer ? 129 : 128
  const isStamp = random.chance(0.1)
  if (isStamp) return isAnswer ? 14 : 13
  return isAnswer ? 0 : 8
}

function writePorts(header: Buffer, talk: Talk): void {
  header.writeUInt16BE(talk.sourcePort, 0)
  header.writeUInt16BE(talk.destinationPort, 2)
}

function protocolOf(random: Random, talk: Talk): number {
  if (talk.kind === 'other')
    return random.pickFrom([2, 4, 41, 47, 50, 51, 59, 89, 255, talk.family === 'ipv4' ? 58 : 1]) ?? 47
  if (talk.kind === 'echo' || talk.kind === 'icmp') return talk.family === 'ipv4' ? 1 : 58
  return { tcp: 6, udp: 17, sctp: 132 }[talk.kind]
}

function ipOf(random: Random, talk: Talk, payload: Buffer): Buffer {
  return ipHeaders(random, talk, payload, { isPlain: random.chance(0.6) })
}

type Form = { readonly isPlain: boolean }

function ipHeaders(random: Random, talk: Talk, payload: Buffer, form: Form): Buffer {
  return talk.family === 'ipv4' ? ipv4(random, talk, payload, form) : ipv6(random, talk, payload, form)
}

function ipv4(random: Random, talk: Talk, payload: Buffer, { isPlain }: Form): Buffer {
  const options = isPlain ? 0 : random.below(11)
  const header = Buffer.alloc(20 + 4 * options, 1)
  header.fill(0, 0, 20)
  header.writeUInt8(0x40 | (5 + options), 0)
  header.writeUInt16BE(header.length + payload.length, 2)
  header.writeUInt16BE(talk.id, 4)
  if (!isPlain && random.chance(0.5))
    header.writeUInt16BE(random.pick([0x2000, 0x2000, 0x2001, 0x0001, 0x00b9, 0x4000]), 6)
  header.writeUInt8(64, 8)
  header.writeUInt8(protocolOf(random, talk), 9)
  header.writeUInt32BE(talk.source.words[0] ?? 0, 12)
  header.writeUInt32BE(talk.destination.words[0] ?? 0, 16)
  return Buffer.concat([header, payload])
}

function ipv6(random: Random, talk: Talk, payload: Buffer, { isPlain }: Form): Buffer {
  const header = Buffer.alloc(40)
  header.writeUInt8(0x60, 0)
  header.writeUInt8(random.pick([64, 255, 255, 1]), 7)
  for (const [index, word] of talk.source.words.entries()) header.writeUInt32BE(word, 8 + 4 * index)
  for (const [index, word] of talk.destination.words.entries()) header.writeUInt32BE(word, 24 + 4 * index)
  const chain = isPlain ? [] : extensionChain(random)
  const numbers = [...chain.map(({ type }) => type), protocolOf(random, talk)]
  for (const [index, one] of chain.entries()) one.bytes.writeUInt8(numbers[index + 1] ?? 59, 0)
  for (const one of chain) if (one.type === 44) one.bytes.writeUInt32BE(talk.id, 4)
  header.writeUInt8(numbers[0] ?? 59, 6)
  const whole = Buffer.concat([header, ...chain.map(({ bytes }) => bytes), payload])
  whole.writeUInt16BE(whole.length - 40, 4)
  return whole
}

function extensionChain(random: Random): { readonly type: number; readonly bytes: Buffer }[] {
  return Array.from({ length: random.pick([1, 1, 1, 2, 2, 3, 5, 6, 7]) }, (_, index) => {
    const type = index === 0 && random.chance(0.4) ? 0 : random.pick([43, 44, 44, 60, 60, 51, random.pick([0, 60])])
    const units = type === 44 || random.chance(0.7) ? 0 : random.below(3)
    const bytes = Buffer.alloc(type === 51 ? 8 + 4 * units : 8 + 8 * units)
    if (type !== 44) bytes.writeUInt8(units, 1)
    else bytes.writeUInt16BE(random.pick([0, 0x0001, 0x0001, 0x0008, 0x00b9]), 2)
    return { type, bytes }
  })
}

/** Of IP, and of a UDP header right behind it: only what is to be segmented may say zero. */
function withoutLength(
  frame: Buffer,
  { family, linkLayer }: { readonly family: Family; readonly linkLayer: 'ethernet' | 'ip' },
): Buffer {
  const base = linkLayer === 'ip' ? 0 : 14
  const at = family === 'ipv4' ? base + 2 : base + 4
  if (frame.length >= at + 2) frame.writeUInt16BE(0, at)
  return frame
}

const strangeTypes = [0x0806, 0x88cc, 0x8809, 0x888e, 0x8847, 0x88e5, 0x0026, 0x9000]

/** The link header before it, and now and then a fault: cut short, padded, or one byte changed. */
function finish(
  random: Random,
  packet: Buffer,
  { family, linkLayer }: { readonly family: Family; readonly linkLayer: 'ethernet' | 'ip' },
): Buffer {
  const frame = linkLayer === 'ip' ? packet : Buffer.concat([linkHeader(random, family), packet])
  if (random.chance(0.8)) return frame.length < 14 ? Buffer.concat([frame, Buffer.alloc(14)]) : frame
  if (random.chance(0.4)) return frame.subarray(0, Math.max(14, random.below(frame.length + 1)))
  if (random.chance(0.3)) return Buffer.concat([frame, Buffer.alloc(random.below(20))])
  const changed = Buffer.from(frame)
  if (random.chance(0.2)) return withoutLength(changed, { family, linkLayer })
  // A type of the link that is another family's would be the frame's, not the packet's, to tell.
  changed.writeUInt8(random.below(256), random.between(linkLayer === 'ip' ? 0 : 12, frame.length - 1))
  return changed
}

function linkHeader(random: Random, family: Family): Buffer {
  const tags = random.chance(0.8) ? 0 : random.pick([1, 2, 3])
  const header = Buffer.alloc(14 + 4 * tags)
  for (let tag = 0; tag < tags; tag++) header.writeUInt16BE(random.pick([0x8100, 0x88a8, 0x9100]), 12 + 4 * tag)
  const own = family === 'ipv4' ? 0x0800 : 0x86dd
  header.writeUInt16BE(random.chance(0.98) ? own : (random.pickFrom(strangeTypes) ?? own), 12 + 4 * tags)
  return header
}

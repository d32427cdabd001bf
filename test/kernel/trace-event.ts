/** Reads the lines of `nft -n -a monitor trace`: one event of one packet each. */
import type { Family } from '#base/ip'

type SeenProtocol = 'tcp' | 'udp' | 'sctp' | 'icmp' | 'icmpv6' | 'other'

/** A packet as the kernel saw it at one place. */
export type SeenPacket = {
  readonly family: Family
  readonly protocol: SeenProtocol
  readonly source: string
  readonly destination: string
  readonly sourcePort?: number
  readonly destinationPort?: number
  readonly icmp?: { readonly type: number; readonly code: number; readonly id: number }
  readonly inInterface?: string
  readonly outInterface?: string
  /** The IPv4 identification or the IPv6 flow label. */
  readonly id: number
  readonly ttl: number
}

export type StepVerdict =
  | { readonly kind: 'accept' | 'drop' | 'continue' | 'return' | 'queue' | 'stolen' }
  | { readonly kind: 'jump' | 'goto'; readonly chain: string }

export type TraceEvent = {
  /** The kernel's own id of the packet's walk. */
  readonly walk: string
  readonly family: string
  readonly table: string
  readonly chain: string
} & (
  | { readonly kind: 'packet'; readonly packet: SeenPacket }
  | { readonly kind: 'rule'; readonly handle: number; readonly verdict: StepVerdict }
  | { readonly kind: 'policy' | 'return'; readonly verdict: StepVerdict; readonly mark: number }
)

/**
 * The forms, as nft 1.0.6 prints them on Linux 6.18:
 *
 *     trace id 3d2eabed ip nat PREROUTING packet: iif "eth0" … ip saddr 203.0.113.9 ip daddr 10.96.0.1 … ip id 1 …
 *     trace id 3d2eabed ip nat PREROUTING rule counter packets 4 bytes 240 jump KUBE-SERVICES # handle 6 (verdict jump KUBE-SERVICES)
 *     trace id 3d2eabed ip nat PREROUTING unknown rule handle 9 (verdict jump EMPTY)
 *     trace id 3d2eabed ip nat PREROUTING policy accept meta mark 0x00004000
 *
 * The text after `rule` comes from nft's memory of the rules at its start, and may be another rule's by now; the handle
 * is the kernel's, and right. A rule of several lines (a large anonymous set) has its handle on the last. Undefined: not
 * an event.
 */
export function parseTraceEvent(line: string): TraceEvent | undefined {
  const [, walk, family, table, chain, rest] = /^trace id ([0-9a-f]+) (\S+) (\S+) (\S+) (.*)$/s.exec(line) ?? []
  if (walk === undefined || family === undefined || table === undefined || chain === undefined || rest === undefined) {
    return undefined
  }
  const at = { walk, family, table, chain }
  if (rest.startsWith('packet: ')) return { ...at, kind: 'packet', packet: parsePacket(rest) }
  const rule = /\bhandle (\d+) \(verdict ([a-z]+)(?: (\S+))?\)$/.exec(rest)
  if (rule) return { ...at, kind: 'rule', handle: Number(rule[1]), verdict: verdictOf(rule[2], rule[3]) }
  const end = /^(policy|return|verdict)(?: ([a-z]+))?/.exec(rest)
  if (end === null) return undefined
  const mark = Number(/meta mark (0x[0-9a-f]+)/.exec(rest)?.[1] ?? 0)
  const isPolicy = end[1] === 'policy'
  return { ...at, kind: isPolicy ? 'policy' : 'return', verdict: verdictOf(end[2] ?? 'return', undefined), mark }
}

/** Splits the monitor's output into events' texts: what does not begin an event continues the one before. */
export function splitTraceEvents(output: string): string[] {
  return output
    .split(/\n(?=trace id )/)
    .filter((text) => text.startsWith('trace id '))
    .map((text) => text.trimEnd())
}

function verdictOf(word: string | undefined, chain: string | undefined): StepVerdict {
  switch (word) {
    case 'jump':
    case 'goto':
      return { kind: word, chain: chain ?? '' }
    case 'accept':
    case 'drop':
    case 'continue':
    case 'return':
    case 'queue':
    case 'stolen':
      return { kind: word }
    default:
      throw new Error(`nft reports a verdict this reader does not know: ${word}`)
  }
}

function parsePacket(text: string): SeenPacket {
  const number = (name: string): number | undefined => {
    const value = new RegExp(`\\b${name} (\\d+)\\b`).exec(text)?.[1]
    return value === undefined ? undefined : Number(value)
  }
  const [, ip = 'ip', source = ''] = /\b(ip6?) saddr (\S+)/.exec(text) ?? []
  const destination = /\bip6? daddr (\S+)/.exec(text)?.[1] ?? ''
  const protocol = protocolOf(text)
  const sourcePort = number(`${protocol} sport`)
  const destinationPort = number(`${protocol} dport`)
  const inInterface = /\biif "([^"]+)"/.exec(text)?.[1]
  const outInterface = /\boif "([^"]+)"/.exec(text)?.[1]
  return {
    family: ip === 'ip6' ? 'ipv6' : 'ipv4',
    protocol,
    source,
    destination,
    ...(sourcePort === undefined ? {} : { sourcePort }),
    ...(destinationPort === undefined ? {} : { destinationPort }),
    ...(protocol.startsWith('icmp') ? { icmp: icmpOf(protocol, number) } : {}),
    ...(inInterface === undefined ? {} : { inInterface }),
    ...(outInterface === undefined ? {} : { outInterface }),
    id: number(ip === 'ip6' ? 'ip6 flowlabel' : 'ip id') ?? 0,
    ttl: number(ip === 'ip6' ? 'ip6 hoplimit' : 'ip ttl') ?? 0,
  }
}

function protocolOf(text: string): SeenProtocol {
  if (/ icmp type /.test(text)) return 'icmp'
  if (/ icmpv6 type /.test(text)) return 'icmpv6'
  const name = / (tcp|udp|sctp) sport /.exec(text)?.[1]
  return name === 'tcp' || name === 'udp' || name === 'sctp' ? name : 'other'
}

/** nft shows an ICMPv6 echo's id and sequence as one number, under the name of the field another type has there. */
function icmpOf(protocol: SeenProtocol, number: (name: string) => number | undefined) {
  const type = number(`${protocol} type`) ?? 0
  const code = number(`${protocol} code`) ?? 0
  const joined = number('icmpv6 parameter-problem') ?? 0
  return { type, code, id: protocol === 'icmp' ? (number('icmp id') ?? 0) : joined >>> 16 }
}

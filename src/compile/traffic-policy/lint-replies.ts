/** Of a policy without state: connections that it allows and whose replies the other direction denies. */
import type { Finding } from '#base/finding'
import { type Ip, ipFromBigint, ipToBigint, parseIp, printEndpoint, printIp } from '#base/ip'
import { bitsOf, type Prefix } from '#base/prefix'
import type { TrafficPolicy } from '#model/traffic-policy'
import type { TrafficPolicySpec } from '#model/traffic-policy-schema'
import type { CompiledPolicy } from './compile-policy'
import type { Entry, EntryProtocol } from './entry'
import { evaluatePolicy } from './evaluate-policy'
import { trafficFinding } from './findings'
import type { PolicyPacket } from './policy-packet'

/** What decides the replies, and how a sentence calls it. */
export type OtherDirection = { readonly name: string; readonly spec: TrafficPolicySpec }

export function lintReplies(
  policy: TrafficPolicy,
  compiled: CompiledPolicy,
  other: OtherDirection,
): readonly Finding[] {
  const { meta, spec } = policy
  if (spec === undefined || compiled.stateful) return []
  return spec.rules.flatMap((rule, index) => {
    if (rule.action !== 'Allow') return []
    const witness = compiled.entries
      .filter((entry) => entry.rule === index)
      .flatMap(packetsOf)
      .find((packet) => isLost(packet, { spec, index, other }))
    if (witness === undefined) return []
    const reply = replyTo(witness)
    const message = `rule "${rule.name}" allows ${print(witness)}, and ${other.name} denies the reply ${print(reply)}`
    const hint = `add an Allow rule there for ${wantedRule(witness)}, or leave out stateful: false`
    return [trafficFinding('traffic-policy.missing-reply-rule', meta, { path: `spec.rules[${index}]`, message, hint })]
  })
}

type Judging = { readonly spec: TrafficPolicySpec; readonly index: number; readonly other: OtherDirection }

function isLost(packet: PolicyPacket, { spec, index, other }: Judging): boolean {
  if (evaluatePolicy(spec, packet).rule !== index) return false
  return evaluatePolicy(other.spec, replyTo(packet)).verdict === 'deny'
}

const echoes = new Map([
  [8, 0],
  [128, 129],
])

function replyTo(packet: PolicyPacket): PolicyPacket {
  const { source, destination, sourcePort, destinationPort, icmpType } = packet
  return {
    ...packet,
    source: destination,
    destination: source,
    ...(sourcePort !== undefined && { destinationPort: sourcePort }),
    ...(destinationPort !== undefined && { sourcePort: destinationPort }),
    ...(icmpType !== undefined && { icmpType: echoes.get(icmpType) ?? icmpType }),
  }
}

/** Packets at the ends of what an entry takes that have a reply; of ports that it leaves open, usual ones. */
function packetsOf(entry: Entry): readonly PolicyPacket[] {
  const families = entry.family === undefined ? (['ipv4', 'ipv6'] as const) : [entry.family]
  return families.flatMap((family) => {
    const usual: readonly EntryProtocol[] = ['tcp', 'udp']
    const protocols = entry.protocol === undefined ? usual : [entry.protocol]
    const [path = 'Private'] = entry.paths ?? []
    return endsOf(entry.source, family).flatMap((source) =>
      endsOf(entry.destination, family).flatMap((destination) =>
        protocols.flatMap((protocol) =>
          transportsOf(entry, protocol).map((transport) => ({ source, destination, protocol, path, ...transport })),
        ),
      ),
    )
  })
}

type Transport = Pick<PolicyPacket, 'sourcePort' | 'destinationPort' | 'icmpType' | 'icmpCode'>

/** Linux's own ports for connections that name none (net.ipv4.ip_local_port_range). */
const openedFrom = { from: 32768, to: 60999 }

function transportsOf(entry: Entry, protocol: EntryProtocol): readonly Transport[] {
  const { sourcePorts = openedFrom, destinationPorts = { from: 443, to: 443 }, icmpType } = entry
  if (protocol === 'icmp' || protocol === 'icmpv6') {
    const asks = protocol === 'icmp' ? 8 : 128
    return (icmpType ?? asks) === asks && (entry.icmpCode ?? 0) === 0 ? [{ icmpType: asks, icmpCode: 0 }] : []
  }
  return [sourcePorts.from, sourcePorts.to].flatMap((sourcePort) =>
    [destinationPorts.from, destinationPorts.to].map((destinationPort) => ({ sourcePort, destinationPort })),
  )
}

const anywhere = { ipv4: '192.0.2.1', ipv6: '2001:db8::1' } as const

function endsOf(prefix: Prefix | undefined, family: Ip['family']): readonly Ip[] {
  if (prefix === undefined || prefix.length === 0) return [parseIp(anywhere[family])].filter((ip) => ip !== undefined)
  const first = ipToBigint(prefix.ip)
  const last = first + (1n << BigInt(bitsOf(family) - prefix.length)) - 1n
  return first === last ? [prefix.ip] : [prefix.ip, ipFromBigint(family, last)]
}

function print({ source, destination, protocol, sourcePort, destinationPort, icmpType }: PolicyPacket): string {
  if (sourcePort === undefined || destinationPort === undefined) {
    return `${printIp(source)} to ${printIp(destination)} ${protocol} type ${icmpType}`
  }
  return `${printEndpoint(printIp(source), sourcePort)} to ${printEndpoint(printIp(destination), destinationPort)} ${protocol}`
}

function wantedRule({ protocol, destinationPort, icmpType = 0 }: PolicyPacket): string {
  const reply = destinationPort === undefined ? `icmp type ${echoes.get(icmpType)}` : `source port ${destinationPort}`
  return `${protocol} from ${reply}`
}

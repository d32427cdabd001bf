/**
 * The decision of a policy about one packet, read from its rules as they are written. It shares no matching with the
 * compiled entries, so that each can be held to the other.
 */
import { type Ip, ipToBigint, parseIp } from '#base/ip'
import type { TrafficMatch, TrafficPolicySpec, TrafficRule } from '#model/traffic-policy-schema'
import type { Decision, PolicyPacket } from './policy-packet'

export function evaluatePolicy({ rules, stateful = true }: TrafficPolicySpec, packet: PolicyPacket): Decision {
  if (packet.isLaterFragment === true && stateful) return { verdict: 'deny', reason: 'fragment' }
  if (typeof packet.protocol === 'number') return { verdict: 'deny', reason: 'unsupported' }
  const rule = rules.findIndex((one) => decides(one, packet))
  const { [rule]: found } = rules
  if (found === undefined) return { verdict: 'deny', reason: 'no_match' }
  return { verdict: found.action === 'Allow' ? 'allow' : 'deny', reason: 'rule', rule }
}

type Answer = 'yes' | 'no' | 'cannot tell'

function decides({ action, match = {} }: TrafficRule, packet: PolicyPacket): boolean {
  const answers = [
    answerPath(match, packet),
    answerFamily(match, packet),
    answerAddress(match.sources, packet.source),
    answerAddress(match.destinations, packet.destination),
    answerProtocol(match, packet),
    answerPorts(match, packet),
    answerIcmp(match, packet),
  ]
  if (answers.includes('no')) return false
  // A deny stops what may be its packet, an allow lets pass only what is.
  return !answers.includes('cannot tell') || action === 'Deny'
}

function answer(isTrue: boolean): Answer {
  return isTrue ? 'yes' : 'no'
}

/** A rule with paths never takes traffic without a class. */
function answerPath({ paths = [] }: TrafficMatch, { path }: PolicyPacket): Answer {
  return answer(paths.length === 0 || paths.some((one) => one === path))
}

function answerFamily({ ipFamily }: TrafficMatch, { source }: PolicyPacket): Answer {
  return answer(ipFamily === undefined || ipFamily.toLowerCase() === source.family)
}

function answerAddress(cidrs: readonly string[] | undefined, ip: Ip): Answer {
  return answer(cidrs === undefined || cidrs.length === 0 || cidrs.some((cidr) => isIn(cidr, ip)))
}

/** By the number of the address: it lies between the network's first and last. */
function isIn(cidr: string, ip: Ip): boolean {
  const [text = '', length = ''] = cidr.split('/')
  const network = parseIp(text)
  if (network === undefined || network.family !== ip.family) return false
  const size = 1n << BigInt((ip.family === 'ipv4' ? 32 : 128) - Number(length))
  const first = ipToBigint(network)
  const number = ipToBigint(ip)
  return number >= first && number < first + size
}

function answerProtocol({ protocols = [] }: TrafficMatch, { protocol }: PolicyPacket): Answer {
  return answer(protocols.length === 0 || protocols.some((one) => one.toLowerCase() === protocol))
}

type Ranges = TrafficMatch['sourcePorts']

function answerPorts({ sourcePorts, destinationPorts }: TrafficMatch, packet: PolicyPacket): Answer {
  const wanted = [
    { ranges: sourcePorts ?? [], port: packet.sourcePort },
    { ranges: destinationPorts ?? [], port: packet.destinationPort },
  ].filter(({ ranges }) => ranges.length > 0)
  if (wanted.length === 0) return 'yes'
  if (packet.protocol === 'icmp' || packet.protocol === 'icmpv6') return 'no'
  if (packet.isLaterFragment === true) return 'cannot tell'
  return answer(wanted.every(({ ranges, port }) => isAmong(ranges, port)))
}

function isAmong(ranges: NonNullable<Ranges>, port: number | undefined): boolean {
  return port !== undefined && ranges.some(({ from, to }) => from <= port && port <= (to ?? from))
}

function answerIcmp({ icmp = [] }: TrafficMatch, packet: PolicyPacket): Answer {
  if (icmp.length === 0) return 'yes'
  if (packet.protocol !== 'icmp' && packet.protocol !== 'icmpv6') return 'no'
  if (packet.isLaterFragment === true) return 'cannot tell'
  return answer(
    icmp.some(({ type, code }) => type === packet.icmpType && (code === undefined || code === packet.icmpCode)),
  )
}

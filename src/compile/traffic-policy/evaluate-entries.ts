/** The decision of compiled entries about one packet: they are walked in order as the datapath walks them. */
import { hasPort } from '#base/port-range'
import { containsIp } from '#base/prefix'
import { type Entry, hasIcmp, hasPorts, needsTransport } from './entry'
import type { Decision, PolicyPacket } from './policy-packet'

export function evaluateEntries({ entries, stateful }: EntryList, packet: PolicyPacket): Decision {
  // A later fragment that may pass has its first's row in the connection map, and asks no rule.
  if (packet.isLaterFragment === true && stateful) return { verdict: 'deny', reason: 'fragment' }
  if (typeof packet.protocol === 'number') return { verdict: 'deny', reason: 'unsupported' }
  for (const entry of entries) {
    if (takes(entry, packet)) return { verdict: entry.action, reason: 'rule', rule: entry.rule }
  }
  return { verdict: 'deny', reason: 'no_match' }
}

export type EntryList = { readonly entries: readonly Entry[]; readonly stateful: boolean }

function takes(entry: Entry, packet: PolicyPacket): boolean {
  const { family, protocol, source, destination, paths } = entry
  if (family !== undefined && packet.source.family !== family) return false
  if (protocol !== undefined && packet.protocol !== protocol) return false
  if (source !== undefined && !containsIp(source, packet.source)) return false
  if (destination !== undefined && !containsIp(destination, packet.destination)) return false
  if (paths !== undefined && !paths.includes(packet.path)) return false
  return takesTransport(entry, packet)
}

/** What a later fragment cannot tell is a match for a deny and a miss for an allow. */
function takesTransport(entry: Entry, packet: PolicyPacket): boolean {
  const isIcmp = packet.protocol === 'icmp' || packet.protocol === 'icmpv6'
  if (isIcmp ? hasPorts(entry) : hasIcmp(entry)) return false
  if (packet.isLaterFragment === true && needsTransport(entry)) return entry.action === 'deny'
  const { sourcePorts, destinationPorts, icmpType, icmpCode } = entry
  if (sourcePorts !== undefined && !hasPort(sourcePorts, packet.sourcePort ?? -1)) return false
  if (destinationPorts !== undefined && !hasPort(destinationPorts, packet.destinationPort ?? -1)) return false
  if (icmpType !== undefined && icmpType !== packet.icmpType) return false
  return icmpCode === undefined || icmpCode === packet.icmpCode
}

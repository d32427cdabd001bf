/** A compiled entry: one conjunction of tests that the datapath walks in order; the first that matches decides. */
import type { Family } from '#base/ip'
import type { PortRange } from '#base/port-range'
import type { Prefix } from '#base/prefix'

export type Direction = 'ingress' | 'egress'
export type Action = 'allow' | 'deny'

/** What policies know by name; everything else is `unsupported` before a rule is asked. */
export type EntryProtocol = 'tcp' | 'udp' | 'sctp' | 'icmp' | 'icmpv6'

/** In the order of their bits in a path mask. */
export const pathClasses = ['unclassified', 'Private', 'Internet', 'VIP', 'Service', 'Edge'] as const
export type PathClass = (typeof pathClasses)[number]

/** An absent field takes anything. */
export type Entry = {
  readonly family?: Family
  readonly protocol?: EntryProtocol
  readonly source?: Prefix
  readonly destination?: Prefix
  /** With ports an entry takes TCP, UDP and SCTP only, with ICMP fields ICMP and ICMPv6 only. */
  readonly sourcePorts?: PortRange
  readonly destinationPorts?: PortRange
  readonly icmpType?: number
  readonly icmpCode?: number
  readonly paths?: readonly PathClass[]
  readonly action: Action
  /** The position of its rule in the policy. */
  readonly rule: number
}

export const maxEntries = 256
export const maxRules = 64

/** Whether a packet without a transport header (a later fragment) leaves this entry's tests unanswered. */
export function needsTransport(entry: Entry): boolean {
  return hasPorts(entry) || hasIcmp(entry)
}

export function hasPorts(entry: Entry): boolean {
  return entry.sourcePorts !== undefined || entry.destinationPorts !== undefined
}

export function hasIcmp(entry: Entry): boolean {
  return entry.icmpType !== undefined || entry.icmpCode !== undefined
}

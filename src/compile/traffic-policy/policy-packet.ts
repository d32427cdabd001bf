/**
 * What a policy asks of a packet, and the answer: the one question that every decider is asked. The packet is one that no
 * connection lets pass and that the link itself does not need, so that the rules are asked.
 */
import type { Ip } from '#base/ip'
import type { Action, EntryProtocol, PathClass } from './entry'
import type { Reason } from './reasons'

export type PolicyPacket = {
  /** Both addresses are of one family. */
  readonly source: Ip
  readonly destination: Ip
  /** A number stands for a protocol that no rule can name. */
  readonly protocol: EntryProtocol | number
  readonly path: PathClass
  /** Of TCP, UDP and SCTP; absent in a later fragment. */
  readonly sourcePort?: number
  readonly destinationPort?: number
  /** Of ICMP and ICMPv6; absent in a later fragment. */
  readonly icmpType?: number
  readonly icmpCode?: number
  /** A fragment after the first of its datagram: it has no header of its protocol. */
  readonly isLaterFragment?: boolean
}

export type Decision = {
  readonly verdict: Action
  readonly reason: Reason
  /** The position of the rule that decided, when one did. */
  readonly rule?: number
}

export function isSameDecision(one: Decision, other: Decision): boolean {
  return one.verdict === other.verdict && one.reason === other.reason && one.rule === other.rule
}

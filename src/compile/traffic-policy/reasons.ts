/** Why the datapath decided as it did: by a rule, or by one of eight fallback reasons, each with a counter of its own. */

/** In the order of their counters; the datapath's number of a reason is its position. */
export const fallbackReasons = [
  /** Denied: nothing is bound to this direction. */
  'policy_unavailable',
  /** Denied: no entry matched. */
  'no_match',
  /** Denied: a header is cut short or contradicts itself. */
  'malformed',
  /** Denied: a protocol that no rule can name, or more extension headers than the bound. */
  'unsupported',
  /** Denied: a later fragment, and its first was not seen to pass. */
  'fragment',
  /** Passed: a packet of a connection that a rule allowed. */
  'established',
  /** Passed: an ICMP error about such a connection. */
  'icmp_error',
  /** Passed: what the link itself needs, such as ARP and neighbour discovery. */
  'link',
] as const

export type FallbackReason = (typeof fallbackReasons)[number]
export type Reason = 'rule' | FallbackReason

/** The number that stands for `rule` where the datapath writes a reason. */
export const ruleReasonNumber = fallbackReasons.length

export function reasonNumber(reason: Reason): number {
  return reason === 'rule' ? ruleReasonNumber : fallbackReasons.indexOf(reason)
}

export function reasonOf(number: number): Reason | undefined {
  return number === ruleReasonNumber ? 'rule' : fallbackReasons[number]
}

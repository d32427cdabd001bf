/** Every finding of lint about traffic policies: its code, how bad it is, and what it means. */
import type { Finding, FindingTable } from '#base/finding'
import { type Meta, refOf } from '#model/meta'

export const trafficPolicyFindings = {
  'traffic-policy.uncompilable': {
    severity: 'error',
    meaning:
      'A traffic policy does not compile, so that nothing of it is installed: an interface keeps its last version, or denies.',
  },
  'traffic-policy.denies-all': {
    severity: 'info',
    meaning: 'A traffic policy has no rules, so that it denies everything.',
  },
  'traffic-policy.shadowed-rule': {
    severity: 'warning',
    meaning: 'Rules before it take every packet that a rule of a traffic policy matches; it never decides.',
  },
  'traffic-policy.redundant-item': {
    severity: 'info',
    meaning: 'An item of a list in a rule lies within another one of the list; it only takes up compiled entries.',
  },
  'traffic-policy.idle-item': {
    severity: 'warning',
    meaning: 'An item of a list in a rule matches nothing, as nothing in the rule’s other lists is of its family.',
  },
  'traffic-policy.ipv4-behind-vip': {
    severity: 'warning',
    meaning:
      'A rule for IPv4 sources never matches clients of an IPv4 VIP: behind it, they come from addresses in 64:ff9b::/96.',
  },
  'traffic-policy.missing-reply-rule': {
    severity: 'warning',
    meaning: 'A policy without state allows connections whose replies the policy of the other direction denies.',
  },
  'traffic-policy.dangling-reference': {
    severity: 'warning',
    meaning: 'A binding or an EdgeService names a policy or an attachment that the input lacks; the direction denies.',
  },
  'traffic-policy.bound-twice': {
    severity: 'error',
    meaning: 'Two bindings are of one attachment; the older one counts, and of two of one age that of the lesser name.',
  },
} as const satisfies FindingTable

export type TrafficFindingCode = keyof typeof trafficPolicyFindings

export type TrafficNote = { readonly path: string; readonly message: string; readonly hint: string }

export function trafficFinding(code: TrafficFindingCode, meta: Meta, note: TrafficNote): Finding {
  return { code, severity: trafficPolicyFindings[code].severity, object: refOf(meta), origin: meta.origin, ...note }
}

/** A rule that bears on a connection, in words of its own: all its ports and peers, not those of the connection alone. */
import type { Direction } from '#compile/policy/policy-rule'
import type { RuleReport } from './answer'
import { describePeer, describePolicy, describePorts, describeRule } from './describe-policy'
import type { RuleAtPort } from './semantics'

const verbs = { allow: 'allows', deny: 'denies', pass: 'passes on' } as const

export function reportRule(
  { policy, rule, isCertain }: RuleAtPort,
  decides: boolean,
  direction: Direction,
): RuleReport {
  const { object, origin } = policy.source
  const side = direction === 'ingress' ? 'from' : 'to'
  const whom = rule.peers === 'any' ? 'anybody' : [...new Set(rule.peers.map(describePeer))].join(' or ') || 'nobody'
  const then = (rule.consequences ?? []).map(({ sentence }) => `; ${sentence}`).join('')
  return {
    object,
    origin,
    path: rule.path,
    ...(rule.name !== undefined && { name: rule.name }),
    action: rule.action,
    decides,
    isCertain,
    sentence: `${describePolicy(policy)} ${describeRule(rule)} ${verbs[rule.action]} ${describePorts(rule.ports)} ${side} ${whom}${then}`,
  }
}

/** NetworkPolicy (networking.k8s.io/v1): both directions are always closed but for what was seen. */
import type { LabelSelector } from '#model/selector'
import type { TargetRules } from './collect-rules'
import { headerOf, metadataOf } from './describe-target'
import type { PolicyText, RuleText } from './policy-text'
import { hostCidr, type RuleDrafts, type RulePeer, type SortedRule, sortRules } from './rule-draft'

export function renderNetworkPolicy(rules: TargetRules): PolicyText {
  const { target } = rules
  const [ingress, egress] = [renderRules(rules, 'ingress'), renderRules(rules, 'egress')]
  return {
    header: headerOf(rules, false),
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: metadataOf(rules),
    spec: { podSelector: renderSelector(target.selector), policyTypes: ['Ingress', 'Egress'] },
    ...(ingress.length > 0 && { ingress }),
    ...(egress.length > 0 && { egress }),
  }
}

function renderSelector({ matchLabels, matchExpressions }: LabelSelector): object {
  return {
    ...(Object.keys(matchLabels).length > 0 && { matchLabels }),
    ...(matchExpressions.length > 0 && { matchExpressions: matchExpressions.map(renderExpression) }),
  }
}

function renderExpression({ key, operator, values }: LabelSelector['matchExpressions'][number]): object {
  return { key, operator, ...(values.length > 0 && { values }) }
}

function renderRules({ target, ...rules }: TargetRules, direction: 'ingress' | 'egress'): readonly RuleText[] {
  const drafts: RuleDrafts = rules[direction]
  return sortRules(drafts).map((rule) => renderRule(rule, { direction, namespace: target.namespace }))
}

type Place = { readonly direction: 'ingress' | 'egress'; readonly namespace: string }

function renderRule({ peers, ports, comments }: SortedRule, { direction, namespace }: Place): RuleText {
  const rendered = peers.map((peer) => renderPeer(peer, namespace))
  return {
    comments,
    rule: {
      [direction === 'ingress' ? 'from' : 'to']: rendered,
      ports: ports.map(({ protocol, port }) => ({ protocol, port })),
    },
  }
}

/** Of another namespace, pods and namespace are one entry: both must match. */
function renderPeer(peer: RulePeer, namespace: string): object {
  if (peer.kind !== 'pods') return { ipBlock: { cidr: hostCidr(peer.address) } }
  const absent = peer.without.map((key) => ({ key, operator: 'DoesNotExist' }))
  const podSelector = { matchLabels: peer.labels, ...(absent.length > 0 && { matchExpressions: absent }) }
  if (peer.namespace === namespace) return { podSelector }
  return { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': peer.namespace } }, podSelector }
}

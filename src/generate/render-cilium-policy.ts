/** CiliumNetworkPolicy (cilium.io/v2): labels carry their source, hosts and the API server are entities. */
import type { LabelSelector } from '#model/selector'
import type { TargetRules } from './collect-rules'
import { headerOf, metadataOf } from './describe-target'
import type { PolicyText, RuleText } from './policy-text'
import { hostCidr, portText, type RuleDrafts, type RulePeer, type SortedRule, sortRules } from './rule-draft'

export function renderCiliumPolicy(rules: TargetRules): PolicyText {
  const { target } = rules
  return {
    header: headerOf(rules, true),
    apiVersion: 'cilium.io/v2',
    kind: 'CiliumNetworkPolicy',
    metadata: metadataOf(rules),
    spec: {
      description: `What was seen of ${target.kind} ${target.namespace}/${target.name}`,
      endpointSelector: renderSelector(target.selector),
      enableDefaultDeny: { ingress: true, egress: true },
    },
    ingress: renderRules(rules, 'ingress'),
    egress: renderRules(rules, 'egress'),
  }
}

function renderSelector({ matchLabels, matchExpressions }: LabelSelector): object {
  const expressions = matchExpressions.map(({ key, operator, values }) => ({
    key: `k8s:${key}`,
    operator,
    ...(values.length > 0 && { values }),
  }))
  return {
    ...(Object.keys(matchLabels).length > 0 && { matchLabels: ofKubernetes(matchLabels) }),
    ...(expressions.length > 0 && { matchExpressions: expressions }),
  }
}

function ofKubernetes(labels: Readonly<Record<string, string>>): object {
  return Object.fromEntries(Object.entries(labels).map(([key, value]) => [`k8s:${key}`, value]))
}

/** The schema wants a rule where a direction is to be closed, and an empty one allows nothing. */
function renderRules({ target, ...rules }: TargetRules, direction: 'ingress' | 'egress'): readonly RuleText[] {
  const drafts: RuleDrafts = rules[direction]
  const sorted = mergeHosts(sortRules(drafts))
  if (sorted.length === 0) return [{ comments: [], rule: {} }]
  return sorted.map((rule) => renderRule(rule, { direction, namespace: target.namespace }))
}

/** All hosts are one entity, so that those with the same ports are one rule; each keeps its comment. */
function mergeHosts(rules: readonly SortedRule[]): readonly SortedRule[] {
  const merged = new Map<string, SortedRule>()
  for (const rule of rules) {
    const isHost = rule.peers[0]?.kind === 'host'
    const key = isHost ? `host ${rule.ports.map(portText).join()}` : `rule ${merged.size}`
    const known = merged.get(key)
    const comments = isHost ? rule.comments.map((text) => text.replace('podSelector', 'labels')) : rule.comments
    merged.set(
      key,
      known === undefined ? { ...rule, comments } : { ...known, comments: [...known.comments, ...comments] },
    )
  }
  return [...merged.values()]
}

type Place = { readonly direction: 'ingress' | 'egress'; readonly namespace: string }

function renderRule({ peers, ports, comments }: SortedRule, { direction, namespace }: Place): RuleText {
  const side = direction === 'ingress' ? 'from' : 'to'
  return {
    comments,
    rule: {
      ...renderPeers(peers, { side, namespace }),
      toPorts: ports.map(({ protocol, port }) => ({ ports: [{ port: String(port), protocol }] })),
    },
  }
}

function renderPeers(
  peers: readonly RulePeer[],
  { side, namespace }: { readonly side: 'from' | 'to'; readonly namespace: string },
): object {
  const [first] = peers
  switch (first?.kind) {
    case 'pods': {
      const place = first.namespace === namespace ? {} : { 'k8s:io.kubernetes.pod.namespace': first.namespace }
      const absent = first.without.map((key) => ({ key: `k8s:${key}`, operator: 'DoesNotExist' }))
      const endpoint = {
        matchLabels: { ...ofKubernetes(first.labels), ...place },
        ...(absent.length > 0 && { matchExpressions: absent }),
      }
      return { [`${side}Endpoints`]: [endpoint] }
    }
    case 'host':
      return { [`${side}Entities`]: ['host', 'remote-node'] }
    case 'api-server':
      return { [`${side}Entities`]: ['kube-apiserver'] }
    case 'address':
    case 'unattributed':
      return { [`${side}CIDR`]: [hostCidr(first.address)] }
    case undefined:
      return {}
    default:
      return first satisfies never
  }
}

/** The pods that rules name by labels, whichever kind of policy the rules are of. */
import { anySource, namespaceKey, namespaceLabelPrefix, splitKey } from '#compile/identities/label'
import { compileKubernetesPolicies } from '#compile/policy/compile-kubernetes-policies'
import type { NamespaceMatch, PeerMatch, PodsMatch } from '#compile/policy/policy-rule'
import { type CiliumPolicy, type CiliumSelector, ciliumSections } from '#model/cilium-policy'
import type { Expression, LabelSelector } from '#model/selector'
import type { PolicyWorld } from '#trace/policy/world'

export function namedPods({ cluster, policies, semantics }: PolicyWorld): readonly PodsMatch[] {
  const kubernetes = semantics.name === 'k8s' ? policies : compileKubernetesPolicies(cluster)
  const known = new Set(policies.map(({ source: { object } }) => `${object.kind} ${object.namespace}/${object.name}`))
  const ofKubernetes = kubernetes
    .filter(({ source: { object } }) => known.has(`${object.kind} ${object.namespace}/${object.name}`))
    .flatMap(({ rules }) => rules.flatMap(({ peers }) => (peers === 'any' ? [] : peers.flatMap(podsIn))))
  const ofCilium = semantics.name === 'k8s' ? [] : [...cluster.ciliumPolicies.values()].flatMap(endpointsIn)
  return [...ofKubernetes, ...ofCilium]
}

function podsIn(peer: PeerMatch): readonly PodsMatch[] {
  return peer.kind === 'pods' ? [peer] : []
}

function endpointsIn({ specs, meta, isClusterwide }: CiliumPolicy): readonly PodsMatch[] {
  const own = isClusterwide ? { selector: everything } : { name: meta.namespace }
  return specs.flatMap(({ sections }) =>
    ciliumSections.flatMap((section) =>
      (sections[section] ?? []).flatMap(({ endpoints = [] }) =>
        endpoints.filter(isOfPods).map((one) => podsOf(one, own)),
      ),
    ),
  )
}

/** Those with `reserved:` keys mean hosts, the world and the like. */
function isOfPods({ selector }: CiliumSelector): boolean {
  const keys = [...Object.keys(selector.matchLabels), ...selector.matchExpressions.map(({ key }) => key)]
  return keys.every((key) => ['k8s', anySource].includes(splitKey(key, anySource).source))
}

const everything: LabelSelector = { matchLabels: {}, matchExpressions: [] }

/** Cilium has the labels of namespaces among those of pods, under keys of their own. */
function podsOf({ path, selector }: CiliumSelector, own: NamespaceMatch): PodsMatch {
  const pairs = Object.entries(selector.matchLabels).map(
    ([key, value]): Expression => ({ key, operator: 'In', values: [value] }),
  )
  const all = [...pairs, ...selector.matchExpressions].map((one) => ({ ...one, key: splitKey(one.key, anySource).key }))
  const ofNamespace = all.flatMap((one): Expression[] => {
    if (one.key === namespaceKey) return [{ ...one, key: 'kubernetes.io/metadata.name' }]
    return one.key.startsWith(namespaceLabelPrefix) ? [{ ...one, key: one.key.slice(namespaceLabelPrefix.length) }] : []
  })
  const ofPod = all.filter(({ key }) => key !== namespaceKey && !key.startsWith(namespaceLabelPrefix))
  const namespaces = ofNamespace.length === 0 ? own : { selector: selectorOf(ofNamespace) }
  return { kind: 'pods', path, namespaces, pods: selectorOf(ofPod) }
}

/** One value is a plain label again, as it was written. */
function selectorOf(expressions: readonly Expression[]): LabelSelector {
  const isPair = ({ operator, values }: Expression): boolean => operator === 'In' && values.length === 1
  return {
    matchLabels: Object.fromEntries(expressions.filter(isPair).map(({ key, values: [value = ''] }) => [key, value])),
    matchExpressions: expressions.filter((one) => !isPair(one)),
  }
}

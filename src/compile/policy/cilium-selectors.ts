/**
 * Endpoint selectors as the agent completes them with the policy's namespace. Mirrors pkg/k8s/apis/cilium.io/utils and
 * pkg/policy/k8s, Cilium 1.16 to 1.19.
 */
import {
  addRequirement,
  type EndpointSelector,
  endpointSelector,
  hasKey,
  type Requirement,
} from '#compile/identities/endpoint-selector'
import { namespaceKey, namespaceLabelPrefix } from '#compile/identities/label'
import { type CiliumVersion, isAtLeast } from '#model/cilium-version'
import type { LabelSelector } from '#model/selector'

export type SelectorScope = {
  /** Empty for a clusterwide policy. */
  readonly namespace: string
  readonly version: CiliumVersion
  /** The subject names `reserved:init`, whose pods have no namespace yet. */
  readonly matchesInit: boolean
}

const sources = ['k8s', 'any']

/** A member of fromEndpoints or toEndpoints. */
export function peerSelector(selector: LabelSelector, scope: SelectorScope): EndpointSelector {
  const plain = endpointSelector(selector)
  if (hasKey(plain, ['reserved'], () => true)) return plain
  return scopedSelector(plain, scope)
}

/** A member of fromRequires or toRequires, which `reserved:` keys do not free of a namespace. */
export function requiredSelector(selector: LabelSelector, scope: SelectorScope): EndpointSelector {
  return scopedSelector(endpointSelector(selector), scope)
}

function scopedSelector(plain: EndpointSelector, { namespace, version, matchesInit }: SelectorScope): EndpointSelector {
  if (hasKey(plain, sources, (key) => key === namespaceKey)) return plain
  if (namespace === '') return matchesInit ? plain : addRequirement(plain, anyNamespace)
  // From 1.18 on a namespace that is named by its labels is not tied to the policy's own.
  const namesLabels = hasKey(plain, sources, (key) => key.startsWith(namespaceLabelPrefix))
  return namesLabels && isAtLeast(version, '1.18') ? plain : addRequirement(plain, inNamespace(namespace))
}

/** Another `k8s:` namespace among matchLabels is overwritten; one that is written otherwise stays, so that nothing matches. */
export function subjectSelector(selector: LabelSelector, namespace: string): EndpointSelector {
  if (namespace === '') return endpointSelector(selector)
  const kept = Object.entries(selector.matchLabels).filter(([key]) => key !== `k8s:${namespaceKey}`)
  return addRequirement(
    endpointSelector({ ...selector, matchLabels: Object.fromEntries(kept) }),
    inNamespace(namespace),
  )
}

export function matchesInit(selector: LabelSelector | undefined): boolean {
  return selector !== undefined && hasKey(endpointSelector(selector), ['reserved'], (key) => key === 'init')
}

/** A peer of a NetworkPolicy: its podSelector, in namespaces by their labels or in the policy's own. */
export function networkPolicyPeer(
  podSelector: LabelSelector | undefined,
  namespaceSelector: LabelSelector | undefined,
  namespace: string,
): EndpointSelector {
  const pods = endpointSelector(podSelector ?? { matchLabels: {}, matchExpressions: [] }, 'k8s')
  if (namespaceSelector === undefined) return addRequirement(pods, inNamespace(namespace))
  const namespaces = endpointSelector(namespaceSelector, 'k8s').requirements.map((one) => ({
    ...one,
    key: `${namespaceLabelPrefix}${one.key}`,
  }))
  return addRequirement(pods, ...(namespaces.length === 0 ? [anyNamespace] : namespaces))
}

export function inNamespace(namespace: string): Requirement {
  return { source: 'k8s', key: namespaceKey, operator: 'In', values: [namespace] }
}

const anyNamespace: Requirement = { source: 'k8s', key: namespaceKey, operator: 'Exists', values: [] }

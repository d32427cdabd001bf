/** Tells which namespaces the input lacks where policies select namespaces by labels: then answers rest on those labels. */
import { countOf, listOf } from '#base/text'
import type { Draft } from '#manifests/draft'
import { manifestFinding } from '#manifests/findings'
import { namespaceNameLabel } from '#manifests/kinds/namespace'
import { type CiliumPolicy, ciliumSections, namespaceLabelPrefix } from '#model/cilium-policy'
import { type Meta, refOf } from '#model/meta'
import type { NetworkPolicy } from '#model/network-policy'
import type { LabelSelector } from '#model/selector'
import type { TierPolicy } from '#model/tier-policy'

/** After the missing namespaces are assumed. */
export function tellMissingNamespaces(draft: Draft): void {
  const missing = [...draft.namespaces.values()].filter(({ meta }) => meta.assumed[0] === '*')
  const [first] = missing
  if (first === undefined) return
  const askers = [
    ...[...draft.networkPolicies.values(), ...draft.tierPolicies.values()].flatMap((policy) => findAsker(policy) ?? []),
    ...[...draft.ciliumPolicies.values()].flatMap((policy) => findCiliumAsker(policy) ?? []),
  ]
  const [asker] = askers
  if (asker === undefined) return
  const names = missing.map(({ meta }) => meta.name)
  const which = names.length === 1 ? `namespace ${names[0]} is` : `namespaces ${listOf(names, 5)} are`
  const message = `namespaces are selected here by labels, as ${countOf(askers.length, 'policy does', 'policies do')}, and the ${which} not in the input: ${names.length === 1 ? 'it counts' : 'they count'} as labelled ${namespaceNameLabel} alone`
  draft.findings.push(
    manifestFinding('policy.namespace-missing', {
      message,
      object: refOf(asker.meta),
      path: asker.path,
      origin: asker.meta.origin,
      hint: 'add the output of kubectl get namespaces -o yaml',
    }),
  )
}

type Asker = { readonly meta: Meta; readonly path: string }

function findAsker(policy: NetworkPolicy | TierPolicy): Asker | undefined {
  const { meta } = policy
  if ('tier' in policy && asksLabels(policy.subject.namespaceSelector)) return { meta, path: policy.subject.path }
  for (const { peers } of [...policy.ingress, ...policy.egress]) {
    for (const peer of peers) {
      if ('namespaceSelector' in peer && asksLabels(peer.namespaceSelector)) return { meta, path: peer.path }
    }
  }
  return undefined
}

/** The name's own label is known of every namespace. */
function asksLabels(selector: LabelSelector | undefined): boolean {
  return selector !== undefined && keysOf(selector).some((key) => key !== namespaceNameLabel)
}

function keysOf({ matchLabels, matchExpressions }: LabelSelector): readonly string[] {
  return [...Object.keys(matchLabels), ...matchExpressions.map(({ key }) => key)]
}

/** In Cilium subjects may ask for labels of namespaces as well as peers. */
function findCiliumAsker({ meta, specs }: CiliumPolicy): Asker | undefined {
  const selectors = specs.flatMap(({ endpointSelector, sections }) => [
    ...(endpointSelector === undefined ? [] : [endpointSelector]),
    ...ciliumSections.flatMap((section) =>
      (sections[section] ?? []).flatMap(({ endpoints = [], requires = [] }) => [...endpoints, ...requires]),
    ),
  ])
  const asking = selectors.find(({ selector }) => keysOf(selector).some(isNamespaceLabel))
  return asking === undefined ? undefined : { meta, path: asking.path }
}

function isNamespaceLabel(key: string): boolean {
  const plain = key.replace(/^(?:k8s|any):/, '')
  return plain.startsWith(namespaceLabelPrefix) && plain !== `${namespaceLabelPrefix}${namespaceNameLabel}`
}

/** The identities of a cluster as Cilium sees it: of pods, of prefixes, of nodes, and whose addresses are known. */
import type { Prefix } from '#base/prefix'
import { allocateIdentities, type GivenIdentity, type IdentityTable } from '#compile/identities/identities'
import { type LabelSet, labelSet, parseLabel, printLabelSet } from '#compile/identities/label'
import { type LabelFilter, parseLabelFilter } from '#compile/identities/label-filter'
import { firstClusterNumber, firstNumberOf, firstRemoteNodeNumber } from '#compile/identities/numbers'
import { podLabelSet } from '#compile/identities/pod-labels'
import { numberPrefixes, type PrefixTable } from '#compile/identities/prefix-identities'
import type { Cluster } from '#model/cluster'
import type { Labels } from '#model/meta'
import type { Pod } from '#model/pod'
import type { CiliumSettings } from './cilium-options'
import type { CiliumCompilation } from './compile-cilium'

export type PeerIdentity = {
  readonly number: number
  readonly labels: LabelSet
  /** Of an identity that stands for addresses. */
  readonly prefix?: Prefix
  readonly names: readonly string[]
  readonly title: string
}

type Role = { readonly kind: 'node'; readonly name: string } | { readonly kind: 'health' | 'ingress' }

export type CiliumIdentities = {
  readonly cluster: Cluster
  readonly settings: CiliumSettings
  readonly filter: LabelFilter
  /** Worked out once for each pod, and once for all pods of one template. */
  readonly labelSets: { readonly ofPod: Map<Pod, LabelSet>; readonly byText: Map<string, LabelSet> }
  readonly table: IdentityTable
  readonly prefixes: PrefixTable
  readonly apiServers: ReadonlySet<string>
  /** Numbers of nodes where they are told apart. */
  readonly nodeNumbers: ReadonlyMap<string, number>
  /** Of addresses that CiliumNode objects tell. */
  readonly roles: ReadonlyMap<string, Role>
}

/** `learned` are numbers that a node told beside the objects; those of CiliumIdentity objects count first. */
export function ciliumIdentities(
  cluster: Cluster,
  { settings, prefixes, apiServers }: CiliumCompilation,
  learned: readonly GivenIdentity[] = [],
): CiliumIdentities {
  const filter = parseLabelFilter(settings.labels, settings.version)
  const facts = {
    cluster,
    settings,
    filter,
    labelSets: { ofPod: new Map<Pod, LabelSet>(), byText: new Map<string, LabelSet>() },
  }
  const sets = [...cluster.pods.values()].map((pod) => labelsOfPod(facts, pod))
  const given = [...cluster.ciliumIdentities.values()].map(({ number, labels }) => ({
    number,
    labels: labelSet(Object.entries(labels).map(([key, value]) => parseLabel(`${key}=${value}`, 'k8s'))),
  }))
  const names = [...cluster.nodes.keys()].sort()
  const first = firstNumberOf(settings.clusterId, settings.mostClusters)
  return {
    ...facts,
    table: allocateIdentities(sets, withEndpoints(given, [...endpointNumbers(facts), ...learned]), first),
    prefixes: numberPrefixes(prefixes, settings.isDualStack),
    apiServers,
    nodeNumbers: new Map(names.map((name, index) => [name, firstRemoteNodeNumber + index])),
    roles: rolesOf(cluster),
  }
}

/** A CiliumEndpoint tells the number of its pod's labels; one below the range of pods is the pod's own. */
function endpointNumbers(facts: LabelFacts): readonly GivenIdentity[] {
  const told: GivenIdentity[] = []
  for (const [key, { identity }] of facts.cluster.ciliumEndpoints) {
    const pod = facts.cluster.pods.get(key)
    if (pod === undefined || identity === undefined || identity < firstClusterNumber) continue
    told.push({ number: identity, labels: labelsOfPod(facts, pod) })
  }
  return told
}

function withEndpoints(given: readonly GivenIdentity[], told: readonly GivenIdentity[]): readonly GivenIdentity[] {
  const sets = new Set(given.map(({ labels }) => printLabelSet(labels)))
  const numbers = new Set(given.map(({ number }) => number))
  return [...given, ...told.filter(({ labels, number }) => !sets.has(printLabelSet(labels)) && !numbers.has(number))]
}

function rolesOf(cluster: Cluster): ReadonlyMap<string, Role> {
  const roles = new Map<string, Role>()
  for (const { meta, addresses, healthIps, ingressIps } of cluster.ciliumNodes.values()) {
    for (const { address } of addresses) roles.set(address, { kind: 'node', name: meta.name })
    for (const address of healthIps) roles.set(address, { kind: 'health' })
    for (const address of ingressIps) roles.set(address, { kind: 'ingress' })
  }
  return roles
}

type LabelFacts = Pick<CiliumIdentities, 'cluster' | 'settings' | 'filter' | 'labelSets'>

export function labelsOfPod(facts: LabelFacts, pod: Pod, namespaceLabels?: Labels): LabelSet {
  const known = namespaceLabels === undefined ? facts.labelSets.ofPod.get(pod) : undefined
  if (known !== undefined) return known
  const found = findLabels(facts, pod, namespaceLabels)
  if (namespaceLabels === undefined) facts.labelSets.ofPod.set(pod, found)
  return found
}

/** Neither keys nor values hold these separators. */
function textOfLabels(labels: Labels): string {
  let text = ''
  for (const key in labels) text += `${key}=${labels[key]};`
  return text
}

function findLabels(
  { cluster, settings, filter, labelSets }: LabelFacts,
  pod: Pod,
  namespaceLabels?: Labels,
): LabelSet {
  const { namespace, labels } = pod.meta
  const own = cluster.namespaces.get(namespace)?.meta.labels ?? { 'kubernetes.io/metadata.name': namespace }
  const given = namespaceLabels === undefined ? '' : textOfLabels(namespaceLabels)
  const text = `${namespace}\n${pod.serviceAccountName ?? ''}\n${given}\n${textOfLabels(labels)}`
  const known = labelSets.byText.get(text)
  if (known !== undefined) return known
  const found = podLabelSet(
    {
      namespace,
      podLabels: labels,
      namespaceLabels: namespaceLabels ?? own,
      ...(pod.serviceAccountName !== undefined && { serviceAccount: pod.serviceAccountName }),
      clusterName: settings.clusterName,
    },
    filter,
  )
  labelSets.byText.set(text, found)
  return found
}

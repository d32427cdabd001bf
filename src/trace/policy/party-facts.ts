/** What policies ask of a party: its addresses, its node, its named ports, and whether it is there at all. */
import { type Family, familyOf, type Ip, parseIp } from '#base/ip'
import type { Cluster } from '#model/cluster'
import { keyOf, type Labels } from '#model/meta'
import { type ClusterNode, nodeIps } from '#model/node'
import type { Pod } from '#model/pod'

export { namedPorts } from '#model/pod'

import type { Nearness, Party } from './party'

/** A pod that has run to its end holds no address: what has it now is another one. */
export function hasEnded({ phase }: Pod): boolean {
  return phase === 'Succeeded' || phase === 'Failed'
}

/** The addresses of a party, its first family first. A host-networked pod has those of its node. */
export function addressesOf(cluster: Cluster, party: Party): readonly string[] {
  switch (party.kind) {
    case 'pod':
      return podAddresses(cluster, party.pod)
    case 'node':
      return nodeIps(party.node)
    case 'address':
    case 'entity':
      return []
    default:
      return party satisfies never
  }
}

function podAddresses(cluster: Cluster, pod: Pod): readonly string[] {
  if (pod.podIPs.length > 0 || !pod.hostNetwork) return pod.podIPs
  if (pod.hostIPs.length > 0) return pod.hostIPs
  const node = nodeOf(cluster, pod)
  return node === undefined ? [] : nodeIps(node)
}

/** The address of the family, or the first of all when none is asked for. */
export function addressOf(cluster: Cluster, party: Party, family: Family | undefined): Ip | undefined {
  if (party.kind === 'address') return party.ip
  const texts = addressesOf(cluster, party)
  const text = family === undefined ? texts[0] : texts.find((one) => familyOf(one) === family)
  return text === undefined ? undefined : parseIp(text)
}

/** Empty when no address is known. */
export function familiesOf(cluster: Cluster, party: Party): readonly Family[] {
  if (party.kind === 'address') return [party.ip.family]
  return [...new Set(addressesOf(cluster, party).map(familyOf))]
}

/** Those of the source that the target has too, or may have, where no address of one of them is known; the first one is usual. */
export function commonFamilies(cluster: Cluster, source: Party, target: Party): readonly Family[] {
  const theirs = familiesOf(cluster, target)
  const ours = familiesOf(cluster, source)
  if (ours.length === 0) return theirs
  return theirs.length === 0 ? ours : ours.filter((family) => theirs.includes(family))
}

export function commonFamily(cluster: Cluster, source: Party, target: Party): Family | undefined {
  return commonFamilies(cluster, source, target)[0]
}

/** Both have addresses, and none of one family: no packet goes between them. */
export function shareNoFamily(cluster: Cluster, source: Party, target: Party): boolean {
  return familiesOf(cluster, source).length > 0 && commonFamilies(cluster, source, target).length === 0
}

export function nodeOf(cluster: Cluster, { nodeName }: Pod): ClusterNode | undefined {
  return nodeName === undefined ? undefined : cluster.nodes.get(nodeName)
}

/** Host-networked pods are seen as their node. */
export function isOnHost(party: Party): boolean {
  return party.kind === 'node' || (party.kind === 'pod' && party.pod.hostNetwork)
}

export function namespaceLabelsOf(cluster: Cluster, party: Party): Labels {
  if (party.kind !== 'pod') return {}
  if (party.namespaceLabels !== undefined) return party.namespaceLabels
  const { namespace } = party.pod.meta
  return cluster.namespaces.get(namespace)?.meta.labels ?? { 'kubernetes.io/metadata.name': namespace }
}

/** Two pods of one node are apart: what a node reaches whatever policies say are its own pods, and they it. */
export function nearnessOf(source: Party, target: Party): Nearness {
  if (isSamePod(source, target)) return 'same-pod'
  if (!isOnHost(source) && !isOnHost(target)) return 'apart'
  if (source.kind === 'address' || target.kind === 'address') return 'apart'
  const [one, other] = [nodeNameOf(source), nodeNameOf(target)]
  if (one === undefined || other === undefined) return 'perhaps-same-node'
  return one === other ? 'same-node' : 'apart'
}

function isSamePod(source: Party, target: Party): boolean {
  return source.kind === 'pod' && target.kind === 'pod' && keyOf(source.pod.meta) === keyOf(target.pod.meta)
}

function nodeNameOf(party: Party): string | undefined {
  if (party.kind === 'node') return party.node.meta.name
  return party.kind === 'pod' ? party.pod.nodeName : undefined
}

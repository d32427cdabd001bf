/** Whom Hubble would say that an address belongs to: by a node's ipcache, or by the objects alone where no Cilium runs. */
import { parseIp } from '#base/ip'
import { type Identity, reservedIdentities } from '#compile/identities/identities'
import { printLabel } from '#compile/identities/label'
import { parseLabelFilter } from '#compile/identities/label-filter'
import { podLabelSet } from '#compile/identities/pod-labels'
import type { HubbleEnd, HubbleNaming } from '#flows/print-hubble'
import type { Cluster } from '#model/cluster'
import type { Pod } from '#model/pod'
import type { CiliumNet } from '#trace/cilium/cilium-net'
import type { NodeTables } from '#trace/cilium/node-tables'
import { hasEnded } from '#trace/policy/party-facts'
import { ownerOf } from '#verify/policy/pod-owner'

export type NameEnd = HubbleNaming['describe']

/** Identities as the node sees them; outside, as the first node does. */
export function ciliumNames(net: CiliumNet): NameEnd {
  const pods = podsByIp(net.cluster)
  const known = new Map<NodeTables, ReadonlyMap<number, readonly string[]>>()
  return (address, name) => {
    const ip = parseIp(address)
    const node = net.node(name ?? net.nodeNames[0] ?? '')
    const pod = pods.get(address)
    if (ip === undefined || node === undefined) return pod === undefined ? {} : podEnd(net.cluster, pod)
    const identity = node.ipcache(ip).row?.identity ?? 2
    const labels = known.get(node) ?? labelsByNumber(node)
    known.set(node, labels)
    const endpoint = node.maps.world.endpoints.find(({ ips }) =>
      ips.some((one) => one.ip === ip || sameText(one.ip, ip)),
    )
    return {
      ...(endpoint !== undefined && { ID: endpoint.id }),
      identity,
      ...(pod !== undefined && !pod.hostNetwork && podEnd(net.cluster, pod)),
      labels: labels.get(identity) ?? [],
    }
  }
}

function sameText(a: { readonly words: readonly number[] }, b: { readonly words: readonly number[] }): boolean {
  return a.words.join() === b.words.join()
}

function labelsByNumber({ maps: { world } }: NodeTables): ReadonlyMap<number, readonly string[]> {
  const { table, prefixes, settings } = world.identities
  const all: readonly Pick<Identity, 'number' | 'labels'>[] = [
    ...reservedIdentities(settings.isDualStack),
    ...table.values(),
    ...prefixes.identities,
  ]
  return new Map(all.map(({ number, labels }) => [number, labels.labels.map(printLabel)]))
}

function podsByIp({ pods }: Cluster): ReadonlyMap<string, Pod> {
  return new Map(
    [...pods.values()].filter((pod) => !hasEnded(pod)).flatMap((pod) => pod.podIPs.map((ip) => [ip, pod] as const)),
  )
}

function podEnd(cluster: Cluster, pod: Pod): HubbleEnd {
  const { namespace, name } = pod.meta
  const owner = ownerOf(cluster, pod)
  return {
    cluster_name: 'default',
    namespace,
    pod_name: name,
    ...(owner.kind !== 'Pod' && { workloads: [{ name: owner.name, kind: owner.kind }] }),
  }
}

/** Without Cilium nobody numbers identities: pods have the labels that it would give them, and the rest is the world or a node. */
export function plainNames(cluster: Cluster): NameEnd {
  const pods = podsByIp(cluster)
  const filter = parseLabelFilter('')
  const nodes = new Set([...cluster.nodes.values()].flatMap(({ addresses }) => addresses.map(({ address }) => address)))
  return (address) => {
    const pod = pods.get(address)
    if (nodes.has(address)) return { labels: ['reserved:remote-node'] }
    if (pod === undefined) return { labels: ['reserved:world'] }
    const { namespace, labels } = pod.meta
    const set = podLabelSet(
      {
        namespace,
        podLabels: labels,
        namespaceLabels: cluster.namespaces.get(namespace)?.meta.labels ?? { 'kubernetes.io/metadata.name': namespace },
        ...(pod.serviceAccountName !== undefined && { serviceAccount: pod.serviceAccountName }),
        clusterName: 'default',
      },
      filter,
    )
    return { ...podEnd(cluster, pod), labels: set.labels.map(printLabel) }
  }
}

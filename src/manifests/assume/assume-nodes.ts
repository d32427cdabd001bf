/** Nodes of an input that has none, and the addresses of nodes that were written without a status. */
import type { Origin } from '#base/finding'
import type { Family } from '#base/ip'
import { compareText, listOf } from '#base/text'
import { assume, type Draft } from '#manifests/draft'
import { manifestFinding } from '#manifests/findings'
import type { Writable } from '#manifests/kinds/writable'
import type { Labels } from '#model/meta'
import { type ClusterNode, type NodeAddress, zoneLabel } from '#model/node'
import { addressIn, knownPrefix, sizeOf } from './range'

/** What pods and slices tell of a node that the input does not hold. */
type Mention = { hostIPs: readonly string[]; zone?: string; readonly origin: Origin }

const addressRanges = { ipv4: knownPrefix('172.18.0.0/16'), ipv6: knownPrefix('fd00:172:18::/64') }

/** Before pods are placed. */
export function assumeNodes(draft: Draft, families: readonly Family[]): void {
  const taken = gatherAddresses(draft)
  if (draft.nodes.size === 0 && hasAnythingToRun(draft)) addNodes(draft, families, taken)
  for (const name of draft.openNodes) {
    const node = draft.nodes.get(name)
    if (node === undefined) continue
    node.addresses = chooseAddresses(name, families, taken)
    node.meta = { ...node.meta, labels: { ...kubeletLabels(name), ...node.meta.labels } }
    assume(node, 'status.addresses', 'metadata.labels')
  }
}

function hasAnythingToRun({ pods, workloads, services, slices, endpoints }: Draft): boolean {
  return pods.size + workloads.size + services.size + slices.size + endpoints.size > 0
}

function addNodes(draft: Draft, families: readonly Family[], taken: Set<string>): void {
  const mentions = gatherMentions(draft)
  const names = mentions.size === 0 ? ['node-a', 'node-b'] : [...mentions.keys()].sort(compareText)
  for (const name of names) {
    const mention = mentions.get(name) ?? { hostIPs: [], origin: firstOrigin(draft) }
    const known = mention.hostIPs.map((address) => ({ type: 'InternalIP', address }))
    const labels = { ...kubeletLabels(name), ...(mention.zone !== undefined && { [zoneLabel]: mention.zone }) }
    const addresses = known.length > 0 ? [...known, hostname(name)] : chooseAddresses(name, families, taken)
    draft.nodes.set(name, assumedNode(name, { labels, addresses, origin: mention.origin }))
  }
  const source = mentions.size === 0 ? 'made up' : 'named by pods or slices'
  draft.findings.push(
    manifestFinding('cluster.assumed-nodes', {
      message: `the input has no Node, so ${listOf(names, 5)}, ${source}, ${names.length === 1 ? 'is' : 'are'} assumed`,
      hint: 'add the output of kubectl get nodes -o yaml',
    }),
  )
}

type NodeParts = { readonly labels: Labels; readonly addresses: readonly NodeAddress[]; readonly origin: Origin }

function assumedNode(name: string, { labels, addresses, origin }: NodeParts): Writable<ClusterNode> {
  const meta = {
    kind: 'Node',
    name,
    namespace: '',
    labels,
    annotations: {},
    ownerReferences: [],
    origin,
    assumed: ['*'],
  }
  return { meta, addresses, podCIDRs: [], isReady: true }
}

/** Pods know their node's addresses, slices its zone. */
function gatherMentions(draft: Draft): Map<string, Mention> {
  const mentions = new Map<string, Mention>()
  const mention = (name: string | undefined, origin: Origin): Mention | undefined => {
    if (name === undefined) return undefined
    const known = mentions.get(name) ?? { hostIPs: [], origin }
    mentions.set(name, known)
    return known
  }
  for (const pod of draft.pods.values()) {
    const node = mention(pod.nodeName, pod.meta.origin)
    if (node !== undefined && node.hostIPs.length === 0) node.hostIPs = pod.hostIPs
  }
  for (const slice of draft.slices.values()) {
    for (const endpoint of slice.endpoints) {
      const node = mention(endpoint.nodeName, slice.meta.origin)
      if (node !== undefined && endpoint.zone !== undefined) node.zone = endpoint.zone
    }
  }
  for (const { meta, subsets } of draft.endpoints.values()) {
    for (const { addresses, notReadyAddresses } of subsets) {
      for (const { nodeName } of [...addresses, ...notReadyAddresses]) mention(nodeName, meta.origin)
    }
  }
  return mentions
}

function chooseAddresses(name: string, families: readonly Family[], taken: Set<string>): readonly NodeAddress[] {
  const internal = families.flatMap((family) => {
    const range = addressRanges[family]
    for (let offset = 2; offset < sizeOf(range) - 1; offset++) {
      const address = addressIn(range, offset)
      if (taken.has(address)) continue
      taken.add(address)
      return [{ type: 'InternalIP', address }]
    }
    return []
  })
  return [...internal, hostname(name)]
}

function hostname(name: string): NodeAddress {
  return { type: 'Hostname', address: name }
}

/** The labels that every kubelet puts on its node. */
function kubeletLabels(name: string): Labels {
  return { 'kubernetes.io/arch': 'amd64', 'kubernetes.io/hostname': name, 'kubernetes.io/os': 'linux' }
}

function gatherAddresses(draft: Draft): Set<string> {
  const taken = new Set<string>()
  if (draft.nodes.size > 0 && draft.openNodes.size === 0) return taken
  for (const pod of draft.pods.values()) for (const ip of pod.hostIPs) taken.add(ip)
  for (const node of draft.nodes.values()) for (const { address } of node.addresses) taken.add(address)
  return taken
}

function firstOrigin({ services, workloads, pods, slices, endpoints }: Draft): Origin {
  for (const map of [services, workloads, pods, slices, endpoints])
    for (const { meta } of map.values()) return meta.origin
  return { file: 'assumed' }
}

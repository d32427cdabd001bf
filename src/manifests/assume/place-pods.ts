/** Placing pods that were written without a status: a node in turn, and an address from the node's range. */
import { type Family, familyOf, parseIp } from '#base/ip'
import { containsIp, type Prefix, printPrefix } from '#base/prefix'
import { compareText, countOf, listOf } from '#base/text'
import { assume, type Draft, type OpenPod } from '#manifests/draft'
import { type ManifestFindingCode, manifestFinding } from '#manifests/findings'
import type { Fields } from '#manifests/kinds/fields'
import type { Writable } from '#manifests/kinds/writable'
import { refOf } from '#model/meta'
import { type ClusterNode, nodeIps } from '#model/node'
import type { Pod } from '#model/pod'
import { gatherPodRanges, type PodRanges, rangeOfNode, takeBlock } from './pod-ranges'
import { addressIn, knownPrefix, sizeOf } from './range'
import { asksNothing, mayRunOn, parsePlacement } from './scheduling'

/** A range that is being counted through; `next` is the offset of the next address to try. */
type Cursor = { range: Prefix; next: number }

type Placing = {
  readonly draft: Draft
  readonly families: readonly Family[]
  readonly ranges: PodRanges
  readonly nodes: readonly Writable<ClusterNode>[]
  readonly candidates: Map<Fields, readonly Writable<ClusterNode>[]>
  readonly plain: readonly Writable<ClusterNode>[]
  readonly cursors: Map<string, Cursor | undefined>
  readonly taken: Set<string>
  turn: number
}

/** In order of namespace and name, so that the order of files does not matter. */
export function placePods(draft: Draft, families: readonly Family[], podCidrs: readonly Prefix[]): void {
  const nodes = [...draft.nodes.values()].sort((a, b) => compareText(a.meta.name, b.meta.name))
  const assumedNodes = nodes.filter(({ meta }) => meta.assumed[0] === '*')
  if (draft.openPods.size + assumedNodes.length === 0) return
  const ranges = gatherPodRanges(draft, podCidrs)
  for (const node of assumedNodes) for (const family of families) rangeOfNode(node, family, ranges)
  if (draft.openPods.size === 0) return
  const placing = newPlacing(draft, { families, ranges, nodes })
  let count = 0
  for (const [, open] of [...draft.openPods].sort(([a], [b]) => compareText(a, b))) {
    const node = chooseNode(open, placing)
    if (!open.isNew || node === undefined) continue
    run(open, node, placing)
    if (open.pod.meta.assumed[0] !== '*') count++
  }
  if (count > 0) reportAssumed(placing, count)
}

function reportAssumed({ draft, nodes }: Placing, count: number): void {
  const names = nodes.map(({ meta }) => meta.name)
  const pods = `${countOf(count, 'pod')} without a status ${count === 1 ? 'is' : 'are'}`
  const message = `${pods} assumed to run and be ready on ${listOf(names, 5)}, with assumed addresses`
  draft.findings.push(manifestFinding('pod.assumed-status', { message }))
}

function newPlacing(draft: Draft, rest: Pick<Placing, 'families' | 'ranges' | 'nodes'>): Placing {
  const taken = new Set<string>()
  for (const pod of draft.pods.values()) for (const ip of pod.podIPs) taken.add(ip)
  for (const node of rest.nodes) for (const ip of nodeIps(node)) taken.add(ip)
  const nothing = { nodeSelector: {}, tolerations: [] }
  const plain = rest.nodes.filter((node) => mayRunOn(nothing, node, draft.nodeRules.get(node.meta.name)))
  return { draft, ...rest, candidates: new Map(), plain, cursors: new Map(), taken, turn: 0 }
}

/** A named node is kept; a pod with an address goes where that belongs; others go to the nodes that fit, in turn. */
function chooseNode(open: OpenPod, placing: Placing): Writable<ClusterNode> | undefined {
  const { pod } = open
  if (pod.nodeName !== undefined) {
    const named = placing.draft.nodes.get(pod.nodeName)
    const message = `the pod names the node ${pod.nodeName}, which the input does not hold`
    if (named === undefined) tell(placing, pod, { code: 'pod.no-node-fits', message })
    return named
  }
  const candidates = candidatesFor(open, placing)
  const node = nodeByAddress(pod, placing.nodes) ?? candidates[placing.turn++ % Math.max(1, candidates.length)]
  if (node === undefined) {
    const message = 'the pod fits no node, by its selector, affinity or tolerations'
    tell(placing, pod, { code: 'pod.no-node-fits', message })
    return undefined
  }
  pod.nodeName = node.meta.name
  assume(pod, 'spec.nodeName')
  return node
}

function candidatesFor({ placement }: OpenPod, placing: Placing): readonly Writable<ClusterNode>[] {
  const known = placing.candidates.get(placement)
  if (known !== undefined) return known
  const rules = parsePlacement(placement)
  const { nodes, plain, draft } = placing
  const fits = (node: ClusterNode): boolean =>
    node.meta.assumed[0] === '*' || mayRunOn(rules, node, draft.nodeRules.get(node.meta.name))
  const candidates = asksNothing(rules) ? plain : nodes.filter(fits)
  placing.candidates.set(placement, candidates)
  return candidates
}

function nodeByAddress(pod: Pod, nodes: readonly Writable<ClusterNode>[]): Writable<ClusterNode> | undefined {
  const [text] = pod.podIPs
  const ip = text === undefined ? undefined : parseIp(text)
  if (ip === undefined) return undefined
  const holdsHost = (node: ClusterNode): boolean => nodeIps(node).some((address) => pod.hostIPs.includes(address))
  const holdsPod = (node: ClusterNode): boolean => node.podCIDRs.some((range) => containsIp(knownPrefix(range), ip))
  return nodes.find(holdsHost) ?? nodes.find(holdsPod)
}

/** Lets a pod run on its node, with an address for each family of the cluster. */
function run({ pod, isReady }: OpenPod, node: Writable<ClusterNode>, placing: Placing): void {
  pod.hostIPs = hostAddresses(node, placing.families)
  pod.podIPs = pod.hostNetwork ? pod.hostIPs : podAddresses(pod, node, placing)
  pod.phase = 'Running'
  pod.isReady = isReady && pod.podIPs.length > 0
  assume(pod, 'status.phase', 'status.conditions', 'status.podIPs', 'status.hostIPs')
  if (pod.podIPs.length > 0 || !pod.hostNetwork) return
  tell(placing, pod, { code: 'pod.no-address', message: `the pod gets no address, as ${node.meta.name} has none` })
}

function hostAddresses(node: ClusterNode, families: readonly Family[]): readonly string[] {
  const internal = node.addresses.filter(({ type }) => type === 'InternalIP')
  return families.flatMap((family) => internal.find(({ address }) => familyOf(address) === family)?.address ?? [])
}

function podAddresses(pod: Pod, node: Writable<ClusterNode>, placing: Placing): readonly string[] {
  return placing.families.flatMap((family) => {
    const address = nextAddress(node, family, placing)
    if (address !== undefined) return [address]
    const message = `the pod gets no address, as ${printPrefix(placing.ranges.pools[family])} is used up`
    tell(placing, pod, { code: 'pod.no-address', message })
    return []
  })
}

/** The first address of a range names it, the second is the node's bridge; a full range is followed by a free block. */
function nextAddress(node: Writable<ClusterNode>, family: Family, placing: Placing): string | undefined {
  const key = `${node.meta.name} ${family}`
  if (!placing.cursors.has(key)) placing.cursors.set(key, cursorAt(rangeOfNode(node, family, placing.ranges)))
  for (;;) {
    const cursor = placing.cursors.get(key)
    if (cursor === undefined) return undefined
    for (const last = sizeOf(cursor.range) - 1; cursor.next < last; ) {
      const address = addressIn(cursor.range, cursor.next++)
      if (placing.taken.has(address)) continue
      placing.taken.add(address)
      return address
    }
    placing.cursors.set(key, cursorAt(takeBlock(placing.ranges, family)))
  }
}

function cursorAt(range: Prefix | undefined): Cursor | undefined {
  return range === undefined ? undefined : { range, next: 2 }
}

type Told = { readonly code: ManifestFindingCode; readonly message: string }

function tell({ draft }: Placing, { meta }: Pod, { code, message }: Told): void {
  draft.findings.push(manifestFinding(code, { message, object: refOf(meta), origin: meta.origin }))
}

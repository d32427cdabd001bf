/** The two ends of flows, each kept once: a million rows have few of them, and what is worked out of one holds for all. */
import { canonicalAddress } from './address'
import { type DirectoryIndex, findPod, hasSeveral, type KnownPod } from './directory'
import type { Labels, Workload } from './holder'
import { identifyPeer, type PeerIdentity } from './identify-peer'
import type { ObservedFlow } from './observed-flow'
import { stableLabels } from './stable-labels'

/** The pod that a flow was observed at. */
export type OwnEnd = {
  readonly id: number
  readonly namespace: string | null
  readonly name: string
  readonly workload: Workload | null
  readonly address: string | null
  /** Stable ones; null where none are known. */
  readonly labels: Labels | null
  readonly isHostNetwork: boolean
  readonly pod: KnownPod | undefined
}

export type PeerEnd = { readonly id: number; readonly identity: PeerIdentity }

/** What a row says of a pod beside the key. */
type Given = {
  readonly namespace: string | null
  readonly name: string
  readonly labels: Labels | null
  readonly workload: Workload | null
  readonly isHostNetwork?: boolean
}

type Remembered<End> = { readonly given: Given; readonly address: string | null; readonly end: End }

export type Ends = {
  readonly index: DirectoryIndex
  readonly own: Map<string, Remembered<OwnEnd>[]>
  readonly peers: Map<string, Remembered<PeerEnd>[]>
  readonly counts: { own: number; peers: number }
}

export function newEnds(index: DirectoryIndex): Ends {
  return { index, own: new Map(), peers: new Map(), counts: { own: 0, peers: 0 } }
}

/** A key that is a uid alone need not be joined, which would take longer than all the rest. */
export function ownEndOf(ends: Ends, flow: ObservedFlow): OwnEnd {
  const { pod } = flow
  const { namespace, name, uid, address } = pod
  const key = uid ?? `${namespace} ${name}${timePart(ends, pod, flow)}`
  const known = find(ends.own.get(key), pod, address)
  return known ?? remember(ends.own, key, { given: pod, address, end: buildOwnEnd(ends, flow) })
}

/** Whom a name alone means depends on the moment where several pods had it. */
function timePart({ index }: Ends, pod: Parameters<typeof hasSeveral>[1], { lastSeen }: ObservedFlow): string {
  return hasSeveral(index, pod) ? ` at ${lastSeen}` : ''
}

function buildOwnEnd({ index, counts }: Ends, { pod, lastSeen }: ObservedFlow): OwnEnd {
  const known = findPod(index, pod, lastSeen)
  const labels = pod.labels ?? known?.labels ?? null
  return {
    id: counts.own++,
    namespace: pod.namespace,
    name: pod.name,
    workload: pod.workload ?? known?.workload ?? null,
    address: pod.address === null ? null : canonicalAddress(pod.address),
    labels: labels === null ? null : stableLabels(labels),
    isHostNetwork: pod.isHostNetwork ?? known?.isHostNetwork ?? false,
    pod: known,
  }
}

/** What an address was depends on the row's own pod and port in a few cases alone: those rows have a key of their own. */
export function peerEndOf(ends: Ends, flow: ObservedFlow): PeerEnd {
  const { peer, peerAddress } = flow
  const part = peer === null ? ownPart(ends, flow) : `${ownPart(ends, flow)}${timePart(ends, peer, flow)}`
  const key = part === '' ? peerKey(flow) : `${peerKey(flow)}${part}`
  const given: Given = peer ?? nobody
  const known = find(ends.peers.get(key), given, peerAddress)
  if (known !== undefined) return known
  const end = { id: ends.counts.peers++, identity: identifyPeer(ends.index, flow) }
  return remember(ends.peers, key, { given, address: peerAddress, end })
}

function peerKey({ peer, outcome, peerAddress, lastSeen }: ObservedFlow): string {
  if (peer === null) {
    if (outcome?.kind === 'never-held') return peerAddress ?? ''
    return outcome === null ? `at ${lastSeen}` : outcome.kind
  }
  if (peer.uid !== null && peer.kind === 'pod') return peer.uid
  return `${peer.kind} ${peer.uid} ${peer.namespace} ${peer.name} ${peer.entity ?? ''}`
}

const nobody = { namespace: null, name: '', labels: null, workload: null } as const

function ownPart({ index }: Ends, { pod, peerAddress, peerPort, direction, peer }: ObservedFlow): string {
  if (peerAddress === null || peerAddress === pod.address) return ' itself'
  const isLinkLocal = peerAddress.startsWith('169.254.') || peerAddress.startsWith('fe')
  const isPortAsked = isLinkLocal || index.apiServers.has(peerAddress) || peer?.kind === 'service'
  if (isPortAsked) return ` ${direction} ${direction === 'EGRESS' ? peerPort : ''}`
  // Other texts of one address are rare, and so is a pod that speaks to itself.
  return peerAddress.includes(':') || pod.address?.includes(':') ? ` ${pod.address} ${direction}` : ''
}

/** Labels of one pod seldom change, so that those of the row before are mostly those of this one. */
function find<End>(
  known: readonly Remembered<End>[] | undefined,
  given: Given,
  address: string | null,
): End | undefined {
  if (known === undefined) return undefined
  for (const one of known) if (one.address === address && isSame(one.given, given)) return one.end
  return undefined
}

function remember<End>(map: Map<string, Remembered<End>[]>, key: string, one: Remembered<End>): End {
  const known = map.get(key)
  if (known === undefined) map.set(key, [one])
  else known.push(one)
  return one.end
}

function isSame(left: Given, right: Given): boolean {
  return (
    left.name === right.name &&
    left.namespace === right.namespace &&
    left.isHostNetwork === right.isHostNetwork &&
    left.workload?.name === right.workload?.name &&
    left.workload?.kind === right.workload?.kind &&
    isSameLabels(left.labels, right.labels)
  )
}

function isSameLabels(left: Labels | null, right: Labels | null): boolean {
  if (left === right) return true
  if (left === null || right === null) return false
  let count = 0
  for (const key in left) {
    if (left[key] !== right[key]) return false
    count++
  }
  for (const _ in right) count--
  return count === 0
}

/** The port that was connected to; undefined for a row that does not tell it. */
export function connectedPort({ direction, ownPort, peerPort }: ObservedFlow): number | undefined {
  const port = direction === 'INGRESS' ? ownPort : peerPort
  return port === null || port === 0 ? undefined : port
}

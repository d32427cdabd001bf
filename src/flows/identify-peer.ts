/** Who a flow's peer was, for policies: labels, a Service, a node, the API server, or an address and why it is no more than that. */
import { parseIp, printIp } from '#base/ip'
import { containsIp, parsePrefix } from '#base/prefix'
import { canonicalAddress } from './address'
import { chooseHolder } from './choose-holder'
import { apiServerName, type DirectoryIndex, findPod, type KnownPod, type KnownService } from './directory'
import type { Labels, Workload } from './holder'
import type { ObservedFlow, ObservedPeer } from './observed-flow'
import { stableLabels } from './stable-labels'

export type PodIdentity = {
  readonly kind: 'pod'
  readonly address: string
  readonly namespace: string
  readonly name: string
  readonly workload: Workload | null
  /** Stable ones, at least one. */
  readonly labels: Labels
  /** Of the same pod, when the directory has it. */
  readonly pod: KnownPod | undefined
}

export type ServiceIdentity = {
  readonly kind: 'service'
  readonly address: string
  readonly namespace: string
  readonly name: string
  /** Undefined where it is gone and only its selector was kept. */
  readonly service: KnownService | undefined
  /** Null: it selects nobody. */
  readonly selector: Labels | null
}

export type HostIdentity = {
  readonly kind: 'host'
  readonly address: string
  /** Of the host-network pod that it was seen through; empty where only the node is known. */
  readonly namespace: string
  readonly name: string
  readonly workload: Workload | null
  readonly node: string | null
}

export type AddressIdentity = {
  /** `unattributed`: somebody held the address, and who it was then cannot be told. */
  readonly kind: 'address' | 'unattributed'
  readonly address: string
}

export type PeerIdentity =
  | PodIdentity
  | ServiceIdentity
  | HostIdentity
  | AddressIdentity
  /** By its Service's address (`isService`) or by one of its endpoints'. */
  | { readonly kind: 'api-server'; readonly address: string; readonly isService: boolean }
  /** No policy can speak of it. */
  | { readonly kind: 'nobody'; readonly why: NobodyReason }

export type NobodyReason = 'no-address' | 'not-an-address' | 'loopback' | 'itself' | 'link-local'

type Asked = Pick<
  ObservedFlow,
  'direction' | 'peerAddress' | 'peerPort' | 'peer' | 'outcome' | 'lastSeen' | 'protocol' | 'pod'
>

/** The stamp decides; the address is looked up again only for rows that carry neither a stamp nor why they have none. */
export function identifyPeer(index: DirectoryIndex, flow: Asked): PeerIdentity {
  const address = flow.peerAddress === null ? '' : canonicalAddress(flow.peerAddress.trim())
  const why = refusal(address, flow)
  if (why !== undefined) return { kind: 'nobody', why }
  const apiServer = identifyApiServer(index, flow, address)
  if (apiServer !== undefined) return apiServer
  if (flow.peer !== null) return identifyStamped(index, { flow, peer: flow.peer, address })
  if (flow.outcome === null) return lookUp(index, flow, address)
  // Somebody held it: nobody who can be named, or somebody of a kind that is not known yet.
  if (flow.outcome.kind !== 'never-held') return { kind: 'unattributed', address }
  return plainAddress(index, address)
}

const loopback = ['127.0.0.0/8', '0.0.0.0/32', '::1/128', '::/128'].flatMap((cidr) => parsePrefix(cidr)?.prefix ?? [])
const linkLocal = ['169.254.0.0/16', 'fe80::/10'].flatMap((cidr) => parsePrefix(cidr)?.prefix ?? [])

function refusal(address: string, { pod, direction, peerPort }: Asked): NobodyReason | undefined {
  if (address === '') return 'no-address'
  const ip = parseIp(address)
  if (ip === undefined) return 'not-an-address'
  if (loopback.some((range) => containsIp(range, ip))) return 'loopback'
  if (pod.address !== null && canonicalAddress(pod.address) === printIp(ip)) return 'itself'
  // A node-local cache of the DNS listens there.
  const isDns = direction === 'EGRESS' && peerPort === dnsPort
  return !isDns && linkLocal.some((range) => containsIp(range, ip)) ? 'link-local' : undefined
}

export const dnsPort = 53

export function isLinkLocal(address: string): boolean {
  const ip = parseIp(address)
  return ip !== undefined && linkLocal.some((range) => containsIp(range, ip))
}

/** A control plane's address is also that of other host-network pods there: their ports and stamps tell them apart. */
function identifyApiServer(index: DirectoryIndex, flow: Asked, address: string): PeerIdentity | undefined {
  const { peer, direction, peerPort } = flow
  const isService = peer?.kind === 'service' && `${peer.namespace}/${peer.name}` === apiServerName
  if (isService) return { kind: 'api-server', address, isService }
  if (peer?.entity === 'kube-apiserver') return { kind: 'api-server', address, isService: false }
  const ports = index.apiServers.get(address)
  if (ports === undefined || peer?.kind === 'pod' || peer?.kind === 'service') return undefined
  if (peer !== null && !/^kube-apiserver(-|$)/.test(peer.name)) return undefined
  if (direction === 'EGRESS' && ports.length > 0 && !ports.some(({ port }) => port === peerPort)) return undefined
  return { kind: 'api-server', address, isService: false }
}

type Stamped = { readonly flow: Asked; readonly peer: ObservedPeer; readonly address: string }

function identifyStamped(index: DirectoryIndex, { flow, peer, address }: Stamped): PeerIdentity {
  if (peer.kind === 'service') return identifyService(index, { flow, peer, address })
  const pod = findPod(index, peer, flow.lastSeen)
  if (peer.kind === 'node') return identifyHost(index, { peer, address, pod })
  const labels = peer.labels ?? (pod === undefined ? null : pod.labels)
  const { namespace, name } = peer
  const workload = peer.workload ?? pod?.workload ?? null
  return withLabels({ kind: 'pod', address, namespace, name, workload, pod }, labels)
}

/** Without a label a selector would take in everybody of the namespace, and without a namespace nobody knows whom it selects. */
function withLabels(pod: Omit<PodIdentity, 'labels'>, labels: Labels | null): PodIdentity | AddressIdentity {
  const stable = stableLabels(labels ?? {})
  if (pod.namespace !== '' && !isEmpty(stable)) return { ...pod, labels: stable }
  return { kind: 'unattributed', address: pod.address }
}

type HostFacts = { readonly peer: ObservedPeer; readonly address: string; readonly pod: KnownPod | undefined }

function identifyHost(index: DirectoryIndex, { peer, address, pod }: HostFacts): PeerIdentity {
  const node = index.nodesByAddress.get(address)?.name ?? pod?.nodeName ?? null
  if (peer.name === '' && peer.entity === undefined) return plainAddress(index, address)
  const { namespace, name, workload } = peer
  return { kind: 'host', address, namespace, name, workload, node }
}

/** The Service must still be the same one: by its uid, or by its name and an address or node port that it has. */
function identifyService(index: DirectoryIndex, { flow, peer, address }: Stamped): PeerIdentity {
  const named = index.servicesByName.get(`${peer.namespace}/${peer.name}`) ?? []
  const service = named.find((one) => isSameService(one, { flow, peer, address }))
  const { namespace, name } = peer
  const selector = service === undefined ? peer.labels : service.selector
  if (service === undefined && (selector === null || isEmpty(selector))) return { kind: 'unattributed', address }
  const own = selector === null || isEmpty(selector) ? null : selector
  return { kind: 'service', address, namespace, name, service, selector: own }
}

function isSameService(service: KnownService, { flow, peer, address }: Stamped): boolean {
  if (peer.uid !== null && service.uid !== null) return peer.uid === service.uid
  const isNodePort = service.ports.some(({ nodePort }) => nodePort !== 0 && nodePort === flow.peerPort)
  return (
    isNodePort || service.addresses.length === 0 || service.addresses.some((one) => canonicalAddress(one) === address)
  )
}

function isEmpty(labels: Labels): boolean {
  return Object.keys(labels).length === 0
}

/** Of rows that an older version wrote: as the broker would decide at the flow's time, with the same guard. */
function lookUp(index: DirectoryIndex, flow: Asked, address: string): PeerIdentity {
  const answer = chooseHolder(index.holdersByAddress.get(address) ?? [], flow.lastSeen)
  if (answer.kind === 'rejected') return { kind: 'unattributed', address }
  if (answer.kind === 'never-held') return plainAddress(index, address)
  const { holder, peerKind: kind } = answer
  const { namespace, name, uid } = holder
  const workload = holder.kind === 'pod' ? holder.workload : null
  const peer: ObservedPeer = { kind, namespace, name, uid, workload, labels: null }
  return identifyStamped(index, { flow, peer, address })
}

/** Nobody held it, and still it may be a node's. */
function plainAddress(index: DirectoryIndex, address: string): PeerIdentity {
  const node = index.nodesByAddress.get(address)
  if (node === undefined && !isLinkLocal(address)) return { kind: 'address', address }
  return { kind: 'host', address, namespace: '', name: '', workload: null, node: node?.name ?? null }
}

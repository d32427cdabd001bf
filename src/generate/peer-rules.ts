/** From who a peer was to the peers and ports of rules: Services become what is behind them, as policies see it. */
import type { DirectoryIndex, KnownPod } from '#flows/directory'
import type { Labels, Workload } from '#flows/holder'
import { type HostIdentity, isLinkLocal, type PeerIdentity, type ServiceIdentity } from '#flows/identify-peer'
import type { OwnEnd } from '#flows/intern-ends'
import { backendsOf, portNumbersAt, targetPortOf } from '#flows/service-backends'
import { stableLabels } from '#flows/stable-labels'
import { apiServerPort } from '#verify/policy/audit-parties'
import type { Fact } from './gather-flows'
import type { PolicyPort, RulePeer } from './rule-draft'
import {
  areLabels,
  isNamespace,
  type PodSelection,
  type SelectedPod,
  type Surroundings,
  seenLabels,
  selectionOf,
} from './select-pods'

export type PeerRule = RuleOfPeer & {
  readonly ports: readonly PolicyPort[]
  readonly comments?: readonly string[]
}

/** The selection is absent where whoever has the labels is meant, as by a Service's selector. */
export type RuleOfPeer = { readonly peer: RulePeer; readonly selection?: PodSelection }

type Connection = Pick<Fact, 'isEgress' | 'protocol' | 'port'>

export function rulesOfPeer(surroundings: Surroundings, identity: PeerIdentity, at: Connection): readonly PeerRule[] {
  const ports: readonly PolicyPort[] = [{ protocol: at.protocol, port: at.port }]
  switch (identity.kind) {
    case 'pod':
      return [{ ...(rulePeerOf(surroundings, identity) ?? unattributed(identity.address)), ports }]
    case 'service':
      return rulesOfService(surroundings, identity, at)
    case 'host':
      return [{ peer: hostPeer(identity), ports }]
    case 'api-server':
      return apiServerRules(surroundings.index, identity, at)
    case 'address':
    case 'unattributed':
      return [{ peer: { kind: identity.kind, address: identity.address }, ports }]
    case 'nobody':
      return []
    default:
      return identity satisfies never
  }
}

/**
 * The Service of which nobody knows what is behind it, or at which port: its rule is written as the connection was seen, and policies
 * are asked about another address or port.
 */
export function untoldService(
  { index, kind }: Surroundings,
  identity: PeerIdentity,
  { isEgress, protocol, port }: Connection,
): string | undefined {
  if (!isEgress) return undefined
  if (identity.kind === 'api-server') {
    const isUntold = identity.isService && kind === 'networkpolicy' && index.apiServers.size === 0
    return isUntold ? 'default/svc/kubernetes' : undefined
  }
  if (identity.kind !== 'service') return undefined
  const { service, selector, namespace, name } = identity
  const isTold =
    selector === null ? (service?.endpoints.length ?? 0) > 0 : targetPortOf(service, { protocol, port }) !== undefined
  return isTold ? undefined : `${namespace}/svc/${name}`
}

function rulePeerOf(surroundings: Surroundings, pod: SelectedPod): RuleOfPeer | undefined {
  const selection = selectionOf(surroundings, pod)
  if (selection === undefined) return undefined
  const { labels, without } = selection
  return { peer: { kind: 'pods', namespace: pod.namespace, labels, without }, selection }
}

function unattributed(address: string): RuleOfPeer {
  return { peer: { kind: 'unattributed', address } }
}

function hostPeer({ namespace, name, workload, address, node }: HostIdentity): RulePeer {
  if (name === '') return { kind: 'host', title: isLinkLocal(address) ? 'node-local address' : 'node', address, node }
  return { kind: 'host', title: hostTitle(namespace, workload, name), address, node }
}

function hostTitle(namespace: string, workload: Workload | null, pod: string): string {
  return `host-network peer ${namespace}/${workload?.name ?? pod}`
}

/** The pod that recorded the flow, as a peer of its peer. */
export function peerOfOwnEnd(surroundings: Surroundings, own: OwnEnd): RuleOfPeer | undefined {
  const { namespace, name, workload, address, labels, isHostNetwork, pod } = own
  if (namespace === null) return undefined
  if (isHostNetwork) {
    if (address === null) return undefined
    const node = surroundings.index.nodesByAddress.get(address)?.name ?? pod?.nodeName ?? null
    return { peer: { kind: 'host', title: hostTitle(namespace, workload, name), address, node } }
  }
  const named = labels === null ? undefined : rulePeerOf(surroundings, { namespace, workload, name, labels })
  return named ?? (address === null ? undefined : unattributed(address))
}

/** Of ingress nothing is mapped: the port is the pod's own. */
function rulesOfService(surroundings: Surroundings, identity: ServiceIdentity, at: Connection): readonly PeerRule[] {
  const { namespace, selector } = identity
  const { index } = surroundings
  const target = at.isEgress ? mappedPort(identity, at) : { port: at.port, comments: [] }
  if (selector === null) return rulesOfEndpoints(identity, at, target)
  const backends = backendsOf(index, namespace, selector)
  const [hosts, pods] = [backends.filter(isOnHost), backends.filter((pod) => !isOnHost(pod))]
  const { comments } = target
  const onHosts = hosts.flatMap((pod) => rulesOfHostBackend(identity, { pod, at, target, index }))
  if (backends.length > 0 && pods.length === 0) return onHosts
  const ports = [{ protocol: at.protocol, port: target.port }]
  const peers = peersBehind(surroundings, identity, { selector, pods })
  return [...peers.map((peer) => ({ ...peer, ports, comments })), ...onHosts]
}

function isOnHost({ isHostNetwork }: KnownPod): boolean {
  return isHostNetwork
}

type Backends = { readonly selector: Labels; readonly pods: readonly KnownPod[] }

/** A selector of one replica would be gone with it, and Cilium does not see every label: then the pods' other labels name them. */
function peersBehind(
  surroundings: Surroundings,
  { namespace, address }: ServiceIdentity,
  { selector, pods }: Backends,
): readonly RuleOfPeer[] {
  const labels = seenLabels(surroundings, stableLabels(selector))
  const count = Object.keys(labels).length
  const asItIs: RuleOfPeer = { peer: { kind: 'pods', namespace, labels, without: [] } }
  const canBeAsked = count > 0 && areLabels(labels) && isNamespace(namespace)
  if (canBeAsked && count === Object.keys(selector).length) return [asItIs]
  const named = pods.flatMap((pod) => rulePeerOf(surroundings, { ...pod, labels: stableLabels(pod.labels) }) ?? [])
  if (named.length > 0) return named
  return [canBeAsked ? asItIs : unattributed(address)]
}

type MappedPort = { readonly port: number | string; readonly comments: readonly string[] }

/** Policies match after the Service's address was translated: the port is the backend's. */
function mappedPort({ service, namespace, name }: ServiceIdentity, { protocol, port }: Connection): MappedPort {
  const target = targetPortOf(service, { protocol, port })
  if (target !== undefined) return { port: target, comments: [] }
  const comment = `service ${namespace}/svc/${name}: port ${port}/${protocol} could not be mapped to a targetPort; allowing the Service port as observed`
  return { port, comments: [comment] }
}

type HostBackend = {
  readonly pod: KnownPod
  readonly at: Connection
  readonly target: MappedPort
  readonly index: DirectoryIndex
}

function rulesOfHostBackend(identity: ServiceIdentity, { pod, at, target, index }: HostBackend): readonly PeerRule[] {
  const numbers = portNumbersAt(pod, at.protocol, target.port)
  const ports = (numbers.length === 0 ? [at.port] : numbers).map((port) => ({ protocol: at.protocol, port }))
  const title = `host-network peer ${identity.namespace}/svc/${identity.name}`
  return pod.addresses.map((address) => {
    const node = pod.nodeName ?? index.nodesByAddress.get(address)?.name ?? null
    return { peer: { kind: 'host', title, address, node }, ports, comments: target.comments }
  })
}

/** A Service without selector: its endpoints, or its own address, which no packet has any more when policies see it. */
function rulesOfEndpoints(identity: ServiceIdentity, at: Connection, target: MappedPort): readonly PeerRule[] {
  const { service, namespace, name, address } = identity
  const ports = [{ protocol: at.protocol, port: typeof target.port === 'number' ? target.port : at.port }]
  const behind = service?.endpoints ?? []
  if (behind.length > 0) {
    return behind.map((one) => ({ peer: { kind: 'address', address: one.address }, ports, comments: target.comments }))
  }
  const comment = `service ${namespace}/svc/${name} has no selector, and its endpoints are not known: its own address does not match once it is translated`
  return [{ peer: { kind: 'address', address }, ports, comments: [...target.comments, comment] }]
}

type ApiServer = Extract<PeerIdentity, { kind: 'api-server' }>

function apiServerRules(index: DirectoryIndex, identity: ApiServer, at: Connection): readonly PeerRule[] {
  const port = identity.isService && at.isEgress ? apiServerPort(index, at) : at.port
  const ports = [{ protocol: at.protocol, port }]
  const behind = identity.isService ? [...index.apiServers.keys()] : [identity.address]
  if (behind.length > 0) return behind.map((address) => ({ peer: { kind: 'api-server', address }, ports }))
  const comment = 'its endpoints are not known: the address of its Service does not match once it is translated'
  return [{ peer: { kind: 'api-server', address: identity.address }, ports, comments: [comment] }]
}

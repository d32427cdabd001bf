/** The ends of recorded flows as parties of the policy engine: who they were when they were seen, never who is there today. */
import { parseIp } from '#base/ip'
import type { DirectoryIndex, KnownPod, KnownPort } from '#flows/directory'
import type { Labels, Workload } from '#flows/holder'
import type { HostIdentity, PeerIdentity, PodIdentity, ServiceIdentity } from '#flows/identify-peer'
import type { OwnEnd } from '#flows/intern-ends'
import { backendsOf, type ConnectedPort, portNumbersAt, targetPortOf } from '#flows/service-backends'
import { stableLabels } from '#flows/stable-labels'
import type { Meta } from '#model/meta'
import type { Pod } from '#model/pod'
import type { Protocol } from '#model/service'
import type { Party, PartyClass } from '#trace/policy/party'
import { isOnHost } from '#trace/policy/party-facts'
import type { PolicyWorld } from '#trace/policy/policy-world'
import { classOf } from '#trace/policy/world'

export type AuditParty = {
  readonly party: Party
  readonly of: PartyClass
  readonly isOnHost: boolean
  /** How it is called in reports. */
  readonly name: string
  readonly namespace: string
  /** False where only labels that outlive a roll-out are known of a pod. */
  readonly hasAllLabels: boolean
  readonly hasPorts: boolean
}

/** One of the places that a flow may have gone to or come from. */
export type AuditPlace = {
  readonly party: AuditParty
  readonly port: number
  /** Of a Service, as it was asked for, where the party is a backend. */
  readonly name?: string
}

/** Undefined where too little is known of the pod. */
export function ownParty(world: PolicyWorld, index: DirectoryIndex, end: OwnEnd): AuditParty | undefined {
  const { namespace, name, labels, address, isHostNetwork, pod: known, workload } = end
  if (namespace === null || (labels === null && !isHostNetwork)) return undefined
  const party = podParty(index, { namespace, name, labels: labels ?? {}, address, isHostNetwork, known, workload })
  return auditParty(world, party, {
    name: nameOfWorkload(namespace, workload, name),
    namespace,
    hasAllLabels: known?.hasAllLabels ?? false,
    hasPorts: hasPorts(index, { namespace, known, workload }),
  })
}

/** Several for a Service with backends of several kinds; none where nobody can be told. */
export function peerPlaces(
  world: PolicyWorld,
  index: DirectoryIndex,
  asked: { readonly identity: PeerIdentity; readonly at: ConnectedPort; readonly isTarget: boolean },
): readonly AuditPlace[] {
  const { identity, at, isTarget } = asked
  const { port } = at
  switch (identity.kind) {
    case 'pod':
      return [{ party: stampedPod(world, index, identity), port }]
    case 'service':
      return servicePlaces(world, index, { identity, at, isTarget })
    case 'host':
      return [{ party: hostParty(world, identity), port }]
    case 'api-server':
      return apiServerPlaces(world, index, { address: identity.address, isService: identity.isService, at })
    case 'address':
    case 'unattributed':
      return [{ party: addressParty(world, identity.address, identity.kind), port }]
    case 'nobody':
      return []
    default:
      return identity satisfies never
  }
}

export function nameOfWorkload(namespace: string, workload: Workload | null, pod: string): string {
  return workload === null ? `${namespace}/${pod}` : `${namespace}/${workload.kind}/${workload.name}`
}

type PartyNotes = Pick<AuditParty, 'name' | 'namespace' | 'hasAllLabels' | 'hasPorts'>

function auditParty(world: PolicyWorld, party: Party, notes: PartyNotes): AuditParty {
  return { party, of: classOf(world, party), isOnHost: isOnHost(party), ...notes }
}

type PodFacts = {
  readonly namespace: string
  readonly name: string
  readonly labels: Labels
  readonly address: string | null
  readonly isHostNetwork: boolean
  readonly known: KnownPod | undefined
  readonly workload: Workload | null
}

/** Labels as they were stamped; those of one revision or replica are added where the pod itself is known. */
function podParty(index: DirectoryIndex, facts: PodFacts): Party {
  const { namespace, name, labels, address, isHostNetwork, known } = facts
  const passing = known === undefined || !known.hasAllLabels ? {} : withoutStable(known.labels)
  const pod: Pod = {
    meta: {
      kind: 'Pod',
      name,
      namespace,
      labels: { ...passing, ...labels },
      annotations: {},
      ownerReferences: [],
      origin: { file: 'flows' },
      assumed: [],
    },
    containers: [{ name: 'main', ports: portsOf(index, facts) }],
    initContainers: [],
    ...(known?.nodeName != null && { nodeName: known.nodeName }),
    ...(known?.serviceAccount !== undefined && { serviceAccountName: known.serviceAccount }),
    hostNetwork: isHostNetwork,
    dnsPolicy: 'ClusterFirst',
    phase: 'Running',
    podIPs: address !== null && parseIp(address) !== undefined ? [address] : [],
    hostIPs: [],
    isReady: true,
  }
  return { kind: 'pod', pod }
}

function withoutStable(labels: Labels): Labels {
  const stable = stableLabels(labels)
  return Object.fromEntries(Object.entries(labels).filter(([key]) => !(key in stable)))
}

type PortFacts = Pick<PodFacts, 'namespace' | 'known' | 'workload'>

function knownPorts(
  index: DirectoryIndex,
  { namespace, known, workload }: PortFacts,
): readonly KnownPort[] | undefined {
  if (known?.ports != null) return known.ports
  return workload === null
    ? undefined
    : index.workloadsByName.get(`${workload.kind} ${namespace}/${workload.name}`)?.ports
}

function hasPorts(index: DirectoryIndex, facts: PortFacts): boolean {
  return knownPorts(index, facts) !== undefined
}

function portsOf(index: DirectoryIndex, facts: PortFacts): Pod['containers'][number]['ports'] {
  return (knownPorts(index, facts) ?? []).map(({ name, protocol, port }) => ({
    ...(name !== undefined && { name }),
    protocol: protocol as Protocol,
    containerPort: port,
  }))
}

function stampedPod(world: PolicyWorld, index: DirectoryIndex, identity: PodIdentity): AuditParty {
  const { namespace, name, labels, address, workload, pod: known } = identity
  const party = podParty(index, { namespace, name, labels, address, isHostNetwork: false, known, workload })
  return auditParty(world, party, {
    name: nameOfWorkload(namespace, workload, name),
    namespace,
    hasAllLabels: known?.hasAllLabels ?? false,
    hasPorts: hasPorts(index, { namespace, known, workload }),
  })
}

function addressParty(world: PolicyWorld, address: string, kind: 'address' | 'unattributed'): AuditParty {
  const ip = parseIp(address)
  const party: Party = ip === undefined ? { kind: 'entity', name: 'world' } : { kind: 'address', ip }
  const name = kind === 'address' ? address : `${address} (unattributed)`
  return auditParty(world, party, { name, namespace: '', hasAllLabels: true, hasPorts: true })
}

function hostParty(world: PolicyWorld, identity: HostIdentity): AuditParty {
  const { node, namespace, name, workload, address } = identity
  const known = node === null ? undefined : world.cluster.nodes.get(node)
  const seen = { type: 'InternalIP', address }
  // The address that was seen comes first, as it is the one that ranges are held against.
  const party: Party = {
    kind: 'node',
    node:
      known === undefined
        ? { meta: unreadMeta(node ?? `of ${address}`), addresses: [seen], podCIDRs: [], isReady: true }
        : { ...known, addresses: [seen, ...known.addresses] },
  }
  const called = name === '' ? `node ${node ?? address}` : `${nameOfWorkload(namespace, workload, name)} (host network)`
  return auditParty(world, party, { name: called, namespace: '', hasAllLabels: known !== undefined, hasPorts: true })
}

function unreadMeta(name: string): Meta {
  const origin = { file: 'flows' }
  return { kind: 'Node', name, namespace: '', labels: {}, annotations: {}, ownerReferences: [], origin, assumed: [] }
}

type ServiceAsked = {
  readonly identity: ServiceIdentity
  readonly at: ConnectedPort
  readonly isTarget: boolean
}

/** Policies see the backend and its port. Where no backend is known, a pod stands for them that has what the selector asks for. */
function servicePlaces(world: PolicyWorld, index: DirectoryIndex, asked: ServiceAsked): readonly AuditPlace[] {
  const { identity, at, isTarget } = asked
  const { namespace, name, selector, service } = identity
  const target = isTarget ? (targetPortOf(service, at) ?? at.port) : at.port
  if (selector === null) return endpointPlaces(world, { identity, at })
  const called = `${namespace}/svc/${name}`
  const backends = backendsOf(index, namespace, selector)
  if (backends.length === 0) {
    const ports = typeof target === 'string' ? [{ name: target, protocol: at.protocol, port: at.port }] : null
    const stand: PodFacts = {
      namespace,
      name: `behind ${name}`,
      labels: selector,
      address: null,
      isHostNetwork: false,
      known: undefined,
      workload: null,
    }
    const party = withPorts(podParty(index, stand), ports)
    const notes = { name: called, namespace, hasAllLabels: false, hasPorts: ports !== null }
    return [
      { party: auditParty(world, party, notes), port: typeof target === 'number' ? target : at.port, name: called },
    ]
  }
  return backends.flatMap((pod) => {
    const { labels, workload, isHostNetwork, addresses } = pod
    const facts = {
      namespace,
      name: pod.name,
      labels,
      address: addresses[0] ?? null,
      isHostNetwork,
      known: pod,
      workload,
    }
    const notes = {
      name: nameOfWorkload(namespace, workload, pod.name),
      namespace,
      hasAllLabels: pod.hasAllLabels,
      hasPorts: hasPorts(index, facts),
    }
    const party = auditParty(world, podParty(index, facts), notes)
    const numbers = portNumbersAt({ ports: knownPorts(index, facts) ?? null }, at.protocol, target)
    return (numbers.length === 0 ? [at.port] : numbers).map((port) => ({ party, port, name: called }))
  })
}

function withPorts(party: Party, ports: readonly KnownPort[] | null): Party {
  if (party.kind !== 'pod' || ports === null) return party
  const named = ports.map(({ name, protocol, port }) => ({
    ...(name !== undefined && { name }),
    protocol: protocol as Protocol,
    containerPort: port,
  }))
  return { ...party, pod: { ...party.pod, containers: [{ name: 'main', ports: named }] } }
}

/** Of a Service without selector; without endpoints its own address is all there is. */
function endpointPlaces(
  world: PolicyWorld,
  { identity, at }: { readonly identity: ServiceIdentity; readonly at: ConnectedPort },
): readonly AuditPlace[] {
  const { service, address } = identity
  const target = targetPortOf(service, at)
  const port = typeof target === 'number' ? target : at.port
  const addresses = service?.endpoints.map((one) => one.address) ?? []
  const behind = addresses.length === 0 ? [address] : addresses
  return behind.map((one) => ({ party: addressParty(world, one, 'address'), port }))
}

type ApiServerAsked = { readonly address: string; readonly isService: boolean; readonly at: ConnectedPort }

/** Cilium has a name for it; Kubernetes' policies see the addresses behind its Service. */
function apiServerPlaces(
  world: PolicyWorld,
  index: DirectoryIndex,
  { address, isService, at }: ApiServerAsked,
): readonly AuditPlace[] {
  const port = isService ? apiServerPort(index, at) : at.port
  const notes = { name: 'the API server', namespace: '', hasAllLabels: true, hasPorts: true }
  if (world.semantics.name === 'cilium') {
    return [{ party: auditParty(world, { kind: 'entity', name: 'kube-apiserver' }, notes), port }]
  }
  const behind = isService ? [...index.apiServers.keys()] : [address]
  return (behind.length === 0 ? [address] : behind).flatMap((one) => {
    const ip = parseIp(one)
    return ip === undefined ? [] : [{ party: auditParty(world, { kind: 'address', ip }, notes), port }]
  })
}

/** The port of its endpoints behind the one of the Service. */
export function apiServerPort(index: DirectoryIndex, at: ConnectedPort): number {
  const [service] = index.servicesByName.get('default/kubernetes') ?? []
  const target = targetPortOf(service, at)
  if (typeof target === 'number') return target
  const [ports] = [...index.apiServers.values()]
  return ports?.[0]?.port ?? at.port
}

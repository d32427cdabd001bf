/** Which security identities the two ends of a connection have, as the node that judges it sees them. */
import { type Ip, printIp } from '#base/ip'
import { hostPrefix, printPrefix } from '#base/prefix'
import { reservedIdentity } from '#compile/identities/identities'
import { type Label, labelSet, printLabelSet, reservedLabel } from '#compile/identities/label'
import { lastClusterNumber, type ReservedName, reservedNames } from '#compile/identities/numbers'
import { identityOfAddress, worldName } from '#compile/identities/prefix-identities'
import {
  type CiliumIdentities,
  ciliumIdentities,
  labelsOfPod,
  type PeerIdentity,
} from '#compile/policy/cilium-identities'
import type { CiliumCompilation } from '#compile/policy/compile-cilium'
import type { Cluster } from '#model/cluster'
import { keyOf } from '#model/meta'
import { type ClusterNode, nodeIps } from '#model/node'
import type { Nearness, Party, PartyClass } from './party'

export type IdentityContext = CiliumIdentities & {
  /** What was worked out before, by nearness. */
  readonly memory: WeakMap<PartyClass, Map<Nearness, readonly PeerIdentity[]>>
}

export function identityContext(cluster: Cluster, compilation: CiliumCompilation): IdentityContext {
  return { ...ciliumIdentities(cluster, compilation), memory: new WeakMap() }
}

/** Several where the party stands for several, or where nobody can tell which one it is. */
export function identitiesOf(context: IdentityContext, party: PartyClass, nearness: Nearness): readonly PeerIdentity[] {
  const known = context.memory.get(party) ?? new Map<Nearness, readonly PeerIdentity[]>()
  context.memory.set(party, known)
  const found = known.get(nearness) ?? findIdentities(context, party, nearness)
  known.set(nearness, found)
  return found
}

function findIdentities(context: IdentityContext, party: PartyClass, nearness: Nearness): readonly PeerIdentity[] {
  switch (party.kind) {
    case 'pod':
      return party.party.kind === 'pod' ? [podIdentity(context, party.party)] : []
    case 'node':
      return nodeIdentities(context, nodeOfParty(context, party.party), party.ip, nearness)
    case 'address':
      return party.ip === undefined ? [] : addressIdentities(context, party.ip)
    case 'entity':
      return party.party.kind === 'entity' ? entityIdentities(context, party.party.name) : []
    default:
      return party.kind satisfies never
  }
}

/** A pod whose labels Cilium does not know yet has `init`; one that does not exist yet has a number of nobody. */
function podIdentity(context: IdentityContext, party: Extract<Party, { kind: 'pod' }>): PeerIdentity {
  const { cluster, table } = context
  const given = cluster.ciliumEndpoints.get(keyOf(party.pod.meta))?.identity
  const reserved = reservedNames[given ?? -1]
  if (reserved !== undefined && reserved !== 'unknown') return reservedPeer(reserved)
  const labels = labelsOfPod(context, party.pod, party.namespaceLabels)
  const number = table.get(printLabelSet(labels))?.number ?? lastClusterNumber
  return { number, labels, names: [], title: `identity ${number} of ${keyOf(party.pod.meta)}` }
}

function reservedPeer(name: ReservedName, added: readonly Label[] = []): PeerIdentity {
  const { number, labels } = reservedIdentity(name)
  return { number, labels: labelSet([...labels.labels, ...added]), names: [], title: `identity ${number} (${name})` }
}

function nodeOfParty({ cluster }: IdentityContext, party: Party): ClusterNode | undefined {
  if (party.kind === 'node') return party.node
  return party.kind === 'pod' && party.pod.nodeName !== undefined ? cluster.nodes.get(party.pod.nodeName) : undefined
}

function nodeIdentities(
  context: IdentityContext,
  node: ClusterNode | undefined,
  ip: Ip | undefined,
  nearness: Nearness,
): readonly PeerIdentity[] {
  const addresses = [...(node === undefined ? [] : nodeIps(node)), ...(ip === undefined ? [] : [printIp(ip)])]
  const isApiServer = addresses.some((address) => context.apiServers.has(address))
  const host = reservedPeer('host', isApiServer ? [reservedLabel('kube-apiserver')] : [])
  const remote = remoteNode(context, { node, ip, isApiServer })
  if (nearness === 'same-node') return [host]
  return nearness === 'perhaps-same-node' ? [host, remote] : [remote]
}

type NodeFacts = { readonly node: ClusterNode | undefined; readonly ip: Ip | undefined; readonly isApiServer: boolean }

/** Nodes have numbers of their own where their labels or their addresses count. */
function remoteNode({ settings, nodeNumbers }: IdentityContext, { node, ip, isApiServer }: NodeFacts): PeerIdentity {
  const plain = reservedPeer(isApiServer ? 'kube-apiserver' : 'remote-node')
  if (!settings.hasNodeLabels && !settings.cidrMatchesNodes) return plain
  const ownLabels = settings.hasNodeLabels ? Object.entries(node?.meta.labels ?? {}) : []
  const labels = labelSet([
    ...plain.labels.labels,
    ...ownLabels.map(([key, value]) => ({ source: 'node', key, value })),
  ])
  const number = nodeNumbers.get(node?.meta.name ?? '') ?? plain.number
  const title = `identity ${number} of the node ${node?.meta.name ?? ''}`.trimEnd()
  const prefix = settings.cidrMatchesNodes && ip !== undefined ? { prefix: hostPrefix(ip) } : {}
  return { number, labels, names: [], title, ...prefix }
}

function addressIdentities(context: IdentityContext, ip: Ip): readonly PeerIdentity[] {
  const role = context.roles.get(printIp(ip))
  if (role?.kind === 'node') {
    return nodeIdentities(context, context.cluster.nodes.get(role.name), ip, 'perhaps-same-node')
  }
  if (role !== undefined) return [reservedPeer(role.kind)]
  const found = identityOfAddress(context.prefixes, ip)
  if (found === undefined) return [reservedPeer(worldName(ip, context.settings.isDualStack))]
  const { number, labels, prefix, names } = found
  return [{ number, labels, prefix, names, title: `identity ${number} of ${printPrefix(prefix)}` }]
}

/** `cluster` and `all` stand for every identity that Portolan knows of. */
function entityIdentities(context: IdentityContext, name: string): readonly PeerIdentity[] {
  const { isDualStack } = context.settings
  const outside: readonly ReservedName[] = isDualStack ? ['world', 'world-ipv4', 'world-ipv6'] : ['world']
  const inside: readonly ReservedName[] = [
    'host',
    'remote-node',
    'init',
    'ingress',
    'health',
    'unmanaged',
    'kube-apiserver',
  ]
  if (name === 'world') return outside.map((one) => reservedPeer(one))
  if (name === 'cluster') return [...inside.map((one) => reservedPeer(one)), ...allPods(context)]
  if (name === 'all') return [...outside, ...inside].map((one) => reservedPeer(one)).concat(allPods(context))
  const reserved = reservedNames.find((one) => one === name)
  return reserved === undefined ? [] : [reservedPeer(reserved)]
}

function allPods({ table }: IdentityContext): readonly PeerIdentity[] {
  return [...table.values()].map(({ number, labels }) => ({ number, labels, names: [], title: `identity ${number}` }))
}

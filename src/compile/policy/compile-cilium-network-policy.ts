/**
 * NetworkPolicy as Cilium reads it: ranges mean what is outside the cluster, and rules of a direction count even where
 * policyTypes does not list it. Mirrors pkg/k8s/network_policy.go, Cilium 1.16 to 1.19.
 */
import { addRequirement, endpointSelector } from '#compile/identities/endpoint-selector'
import { worldName } from '#compile/identities/prefix-identities'
import { refOf } from '#model/meta'
import type { NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort, NetworkPolicyRule } from '#model/network-policy'
import type { CiliumSettings } from './cilium-options'
import { rangeTitle, subtractPrefixes } from './cilium-peers'
import { ownPeer, ownSubject } from './cilium-rule'
import { inNamespace, networkPolicyPeer } from './cilium-selectors'
import {
  type CompiledPolicy,
  type Direction,
  everyPort,
  type PeerMatch,
  type PolicyRule,
  type PortMatch,
} from './policy-rule'

export function compileCiliumNetworkPolicy(policy: NetworkPolicy, settings: CiliumSettings): readonly CompiledPolicy[] {
  return (['ingress', 'egress'] as const).flatMap((direction) => {
    const rules = policy[direction]
    const isListed = policy.policyTypes.includes(direction === 'ingress' ? 'Ingress' : 'Egress')
    const isClosed = isListed || (direction === 'ingress' && !policy.policyTypes.includes('Egress'))
    if (rules.length === 0 && !isClosed) return []
    return [compileDirection(policy, direction, settings)]
  })
}

function compileDirection(policy: NetworkPolicy, direction: Direction, settings: CiliumSettings): CompiledPolicy {
  const { meta, podSelector } = policy
  const selector = addRequirement(endpointSelector(podSelector, 'k8s'), inNamespace(meta.namespace))
  const subject = { kind: 'endpoints' as const, selector, requires: [], requiresDeny: [], seenNames: [] }
  return {
    source: { object: refOf(meta), origin: meta.origin, path: 'spec' },
    tier: 'normal',
    priority: 0,
    direction,
    subject: ownSubject('spec.podSelector', subject),
    isolates: true,
    rules: policy[direction].map((rule) => compileRule(rule, meta.namespace, settings)),
  }
}

function compileRule(rule: NetworkPolicyRule, namespace: string, settings: CiliumSettings): PolicyRule {
  const { path, peers, ports } = rule
  return {
    path,
    action: 'allow',
    peers: peers.length === 0 ? 'any' : peers.flatMap((peer) => compilePeer(peer, namespace, settings)),
    ports: ports.length === 0 ? 'any' : ports.map(compilePort),
    detail: {},
  }
}

function compilePeer(
  peer: NetworkPolicyPeer,
  namespace: string,
  { isDualStack }: CiliumSettings,
): readonly PeerMatch[] {
  const { path } = peer
  if (peer.kind === 'selectors') {
    const selector = networkPolicyPeer(peer.podSelector, peer.namespaceSelector, namespace)
    return [ownPeer(path, { kind: 'endpoints', selector })]
  }
  const title = peer.except.length === 0 ? undefined : rangeTitle(peer.cidr, peer.except)
  return subtractPrefixes(peer.cidr, peer.except).map((prefix) => {
    if (prefix.length > 0) return ownPeer(path, { kind: 'prefix', prefix }, title)
    const world = worldName(prefix.ip, isDualStack)
    const isWorld = { source: 'reserved', key: world, operator: 'Exists', values: [] } as const
    return ownPeer(path, { kind: 'labels', selector: { requirements: [isWorld] } })
  })
}

function compilePort({ path, protocol, port, endPort }: NetworkPolicyPort): PortMatch {
  if (port === undefined) return { kind: 'range', path, protocol, range: everyPort }
  if (typeof port === 'string') return { kind: 'named', path, protocol, name: port.toLowerCase() }
  return { kind: 'range', path, protocol, range: { from: port, to: endPort ?? port } }
}

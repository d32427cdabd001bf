/** NetworkPolicy as rules: one compiled policy for each of its policyTypes, which isolates whom it selects. */
import { type Meta, refOf } from '#model/meta'
import type { NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort, NetworkPolicyRule } from '#model/network-policy'
import type { LabelSelector } from '#model/selector'
import { type CompiledPolicy, everyPort, type PeerMatch, type PolicyRule, type PortMatch } from './policy-rule'

const everyPod: LabelSelector = { matchLabels: {}, matchExpressions: [] }

/** Rules of a direction that policyTypes do not name have no effect. */
export function compileNetworkPolicy(policy: NetworkPolicy): readonly CompiledPolicy[] {
  const { meta, podSelector, policyTypes } = policy
  return (['ingress', 'egress'] as const).flatMap((direction): CompiledPolicy[] => {
    if (!policyTypes.includes(direction === 'ingress' ? 'Ingress' : 'Egress')) return []
    return [
      {
        source: { object: refOf(meta), origin: meta.origin, path: 'spec' },
        tier: 'normal',
        priority: 0,
        direction,
        subject: { kind: 'pods', path: 'spec.podSelector', namespaces: { name: meta.namespace }, pods: podSelector },
        isolates: true,
        rules: policy[direction].map((rule) => compileRule(rule, meta)),
      },
    ]
  })
}

function compileRule({ path, peers, ports }: NetworkPolicyRule, meta: Meta): PolicyRule {
  return {
    path,
    action: 'allow',
    peers: peers.length === 0 ? 'any' : peers.map((peer) => compilePeer(peer, meta)),
    ports: ports.length === 0 ? 'any' : ports.map(compilePort),
  }
}

function compilePeer(peer: NetworkPolicyPeer, { namespace }: Meta): PeerMatch {
  if (peer.kind === 'ipBlock') return { kind: 'addresses', path: peer.path, cidr: peer.cidr, except: peer.except }
  const { path, namespaceSelector, podSelector = everyPod } = peer
  const namespaces = namespaceSelector === undefined ? { name: namespace } : { selector: namespaceSelector }
  return { kind: 'pods', path, namespaces, pods: podSelector }
}

function compilePort({ path, protocol, port, endPort }: NetworkPolicyPort): PortMatch {
  if (typeof port === 'string') return { kind: 'named', path, protocol, name: port }
  const range = port === undefined ? everyPort : { from: port, to: endPort ?? port }
  return { kind: 'range', path, protocol, range }
}

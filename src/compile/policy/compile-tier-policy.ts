/** The cluster-wide policies as rules: they isolate nobody, and the first rule that matches counts. */
import { refOf } from '#model/meta'
import type { NamespacedPods, TierPeer, TierPolicy, TierPort, TierRule } from '#model/tier-policy'
import type { CompiledPolicy, PeerMatch, PodsMatch, PolicyRule, PortMatch } from './policy-rule'

/** A direction without rules has no effect, and is left out. */
export function compileTierPolicy(policy: TierPolicy): readonly CompiledPolicy[] {
  const { meta, tier, priority, subject } = policy
  return (['ingress', 'egress'] as const).flatMap((direction): CompiledPolicy[] => {
    const rules = policy[direction]
    if (rules.length === 0) return []
    return [
      {
        source: { object: refOf(meta), origin: meta.origin, path: 'spec' },
        tier,
        priority,
        direction,
        subject: compilePods(subject),
        isolates: false,
        rules: rules.map(compileRule),
      },
    ]
  })
}

function compileRule(rule: TierRule): PolicyRule {
  const { path, name, action, peers, ports } = rule
  const named = name === undefined ? {} : { name }
  if (peers.some(({ kind }) => kind === 'unknown')) return { ...named, ...failClosed(rule) }
  return {
    path,
    ...named,
    action,
    peers: peers.flatMap(compilePeer),
    ports: ports === undefined ? 'any' : ports.map(compilePort),
  }
}

/**
 * network-policy-api, v1alpha2 clusternetworkpolicy_types.go: with a peer that an implementation does not know, a rule
 * that accepts matches nothing, and one that denies or passes denies everything.
 */
function failClosed({ path, action }: TierRule): PolicyRule {
  const why = 'a peer is of a kind that Portolan does not know, and so the rule fails closed'
  if (action === 'allow') return { path, action, peers: [{ kind: 'nobody', path, why }], ports: 'any' }
  return { path, action: 'deny', peers: [{ kind: 'everybody', path, why }], ports: 'any' }
}

function compilePods({ path, namespaceSelector, podSelector }: NamespacedPods): PodsMatch {
  return { kind: 'pods', path, namespaces: { selector: namespaceSelector }, pods: podSelector }
}

function compilePeer(peer: TierPeer): readonly PeerMatch[] {
  switch (peer.kind) {
    case 'pods':
      return [compilePods(peer)]
    case 'nodes':
      return [{ kind: 'nodes', path: peer.path, selector: peer.selector }]
    case 'networks':
      return peer.cidrs.map((cidr) => ({ kind: 'addresses', path: peer.path, cidr, except: [] }))
    case 'domainNames':
      return [{ kind: 'names', path: peer.path, names: peer.names }]
    case 'unreadable':
      return [{ kind: 'unknown', path: peer.path, why: 'its selector is one that nothing can read' }]
    case 'unknown':
      return []
    default:
      return peer satisfies never
  }
}

function compilePort(port: TierPort): PortMatch {
  const { path } = port
  if (port.kind === 'named') return { kind: 'named', path, name: port.name }
  return { kind: 'range', path, protocol: port.protocol, range: port.range }
}

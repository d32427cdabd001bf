/** A cluster made ready for many questions about its policies: compiled once, its parties put into classes. */
import type { PeerMatch, PolicyRule } from '#compile/policy/policy-rule'
import type { Cluster } from '#model/cluster'
import { cutAddresses } from './address-atoms'
import { textOfPeer } from './peer-text'
import type { PolicyWorld, WorldMemory } from './policy-world'
import type { Semantics } from './semantics'

export { classOf, partyOfIp } from './classify'
export type { PolicyWorld } from './policy-world'

export type PolicyOptions = { readonly semantics: Semantics }

export function preparePolicies(cluster: Cluster, { semantics }: PolicyOptions): PolicyWorld {
  const policies = semantics.compile(cluster)
  const prefixes = semantics.rangesOf(policies)
  const rules = policies.flatMap((policy) => policy.rules)
  const { peerIds, peerCount } = numberPeers(rules)
  return {
    cluster,
    semantics,
    policies,
    classes: [],
    atoms: { ipv4: cutAddresses(prefixes, 'ipv4'), ipv6: cutAddresses(prefixes, 'ipv6') },
    peerIds,
    peerCount,
    ruleIds: new Map(rules.map((rule, id) => [rule, id])),
    memory: newMemory(),
  }
}

function newMemory(): WorldMemory {
  return {
    classIds: new Map(),
    partyIds: { ipv4: new WeakMap(), ipv6: new WeakMap(), any: new WeakMap() },
    addressIds: new Map(),
    labelTexts: new WeakMap(),
    holders: new Map(),
    subjects: { ingress: [], egress: [] },
    policySets: new Map(),
    peerMatches: [],
    tables: { ingress: [], egress: [] },
    nearTables: new Map(),
    tablesByText: new Map(),
    tablesByContent: new Map(),
    states: new Map(),
    sets: new Map(),
  }
}

function numberPeers(rules: readonly PolicyRule[]): Pick<PolicyWorld, 'peerIds' | 'peerCount'> {
  const ids = new Map<string, number>()
  const peerIds = new Map<PeerMatch, number>()
  for (const { peers } of rules) {
    if (peers === 'any') continue
    for (const peer of peers) {
      const text = textOfPeer(peer)
      const id = ids.get(text) ?? ids.size
      ids.set(text, id)
      peerIds.set(peer, id)
    }
  }
  return { peerIds, peerCount: ids.size }
}

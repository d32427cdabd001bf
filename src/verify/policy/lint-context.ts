/** What the checks of lint ask about: the pods by class, what else may be a peer, and which policies hold for whom. */
import type { CompiledPolicy, Direction, Match, PeerMatch } from '#compile/policy/policy-rule'
import type { Pod } from '#model/pod'
import type { PartyClass } from '#trace/policy/party'
import { hasEnded } from '#trace/policy/party-facts'
import { classOf, type PolicyWorld } from '#trace/policy/world'
import { outsideRanges } from './outside-ranges'

export type PodClass = { readonly party: PartyClass; readonly pods: readonly Pod[] }

export type LintContext = {
  readonly world: PolicyWorld
  readonly pods: readonly PodClass[]
  /** Nodes, and one address of each range outside. */
  readonly others: readonly PartyClass[]
  /** Whom a policy holds for. */
  readonly subjectsOf: (policy: CompiledPolicy) => readonly PodClass[]
  readonly policiesOf: (subject: PodClass, direction: Direction) => readonly CompiledPolicy[]
  readonly match: (peer: PeerMatch, of: PartyClass) => Match
}

export function lintContext(world: PolicyWorld): LintContext {
  const { cluster, semantics, policies } = world
  const members = new Map<PartyClass, Pod[]>()
  for (const pod of cluster.pods.values()) {
    if (hasEnded(pod)) continue
    const party = classOf(world, { kind: 'pod', pod })
    members.set(party, [...(members.get(party) ?? []), pod])
  }
  const pods = [...members].map(([party, own]) => ({ party, pods: own }))
  const nodes = [...cluster.nodes.values()].map((node) => classOf(world, { kind: 'node', node }))
  const outside = (['ipv4', 'ipv6'] as const).flatMap((family) => outsideRanges(world).all(family))
  const addresses = outside.map(({ example }) => classOf(world, { kind: 'address', ip: example }))
  const subjects = new Map(
    policies.map((policy) => [policy, pods.filter(({ party }) => semantics.matchSubject(policy.subject, party))]),
  )
  const held = new Map<PodClass, CompiledPolicy[]>()
  for (const [policy, own] of subjects) for (const one of own) held.set(one, [...(held.get(one) ?? []), policy])
  return {
    world,
    pods,
    others: [...new Set([...nodes, ...addresses])],
    subjectsOf: (policy) => subjects.get(policy) ?? [],
    policiesOf: (subject, direction) => (held.get(subject) ?? []).filter((policy) => policy.direction === direction),
    match: (peer, of) => semantics.matchPeer(peer, of),
  }
}

/** `ingress rules`, `from`: the words of a direction. */
export const directionWords = {
  ingress: { type: 'Ingress', into: 'to', nothing: 'nothing reaches them' },
  egress: { type: 'Egress', into: 'from', nothing: 'they reach nothing' },
} as const satisfies Readonly<
  Record<Direction, { readonly type: string; readonly into: string; readonly nothing: string }>
>

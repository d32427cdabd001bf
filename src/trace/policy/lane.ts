/** One direction between two classes: which policies hold for the subject, and which of their rules match the peer. */
import type { CompiledPolicy, Direction, PeerMatch, PolicyRule } from '#compile/policy/policy-rule'
import type { Nearness, PartyClass } from './party'
import type { PolicyWorld, SubjectPolicies } from './policy-world'
import type { Lane, Match, MatchedRule } from './semantics'

export type LaneEnds = { readonly subject: PartyClass; readonly peer: PartyClass; readonly nearness: Nearness }

export function layLane(world: PolicyWorld, direction: Direction, ends: LaneEnds): Lane {
  const { policies } = policiesFor(world, direction, ends.subject)
  const matched: MatchedRule[] = []
  for (const policy of policies) {
    for (const rule of policy.rules) {
      const found = matchRule(world, rule, ends.peer)
      if (found !== undefined) matched.push({ policy, rule, ...found })
    }
  }
  return { direction, ...ends, policies, matched }
}

/** Of a class that is met for the first time every policy is asked, and never again. */
export function policiesFor(world: PolicyWorld, direction: Direction, subject: PartyClass): SubjectPolicies {
  const known = world.memory.subjects[direction]
  const found = known[subject.id]
  if (found !== undefined) return found
  const holds = (policy: CompiledPolicy): boolean =>
    policy.direction === direction && world.semantics.matchSubject(policy.subject, subject)
  const policies: CompiledPolicy[] = []
  const numbers: number[] = []
  for (const [number, policy] of world.policies.entries()) {
    if (!holds(policy)) continue
    policies.push(policy)
    numbers.push(number)
  }
  const added = { policies, text: numbers.join() }
  known[subject.id] = added
  return added
}

const anyPeer: Pick<MatchedRule, 'peers' | 'isCertain'> = { peers: [], isCertain: true }

function matchRule(
  world: PolicyWorld,
  { peers }: PolicyRule,
  of: PartyClass,
): Pick<MatchedRule, 'peers' | 'isCertain'> | undefined {
  if (peers === 'any') return anyPeer
  const sure: PeerMatch[] = []
  const open: PeerMatch[] = []
  for (const peer of peers) {
    const match = matchPeer(world, peer, of)
    if (match === 'yes') sure.push(peer)
    else if (match === 'maybe') open.push(peer)
  }
  if (sure.length === 0 && open.length === 0) return undefined
  return { peers: [...sure, ...open], isCertain: sure.length > 0 }
}

const answers: readonly (Match | undefined)[] = [undefined, 'no', 'yes', 'maybe']

export function matchPeer(world: PolicyWorld, peer: PeerMatch, of: PartyClass): Match {
  const number = world.peerIds.get(peer)
  if (number === undefined) return world.semantics.matchPeer(peer, of)
  world.memory.peerMatches[of.id] ??= new Uint8Array(world.peerCount)
  const row = world.memory.peerMatches[of.id]
  const known = answers[row?.[number] ?? 0]
  if (known !== undefined) return known
  const match = world.semantics.matchPeer(peer, of)
  if (row !== undefined) row[number] = answers.indexOf(match)
  return match
}

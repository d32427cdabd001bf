/** One direction between two classes: which policies hold for the subject, and which of their rules match the peer. */
import type { CompiledPolicy, Direction, Match, PeerMatch, PolicyRule } from '#compile/policy/policy-rule'
import type { Nearness, PartyClass } from './party'
import type { NumberedRule, PolicyWorld, SubjectPolicies } from './policy-world'
import type { Lane, MatchedRule } from './semantics'

export type LaneEnds = { readonly subject: PartyClass; readonly peer: PartyClass; readonly nearness: Nearness }

export function layLane(world: PolicyWorld, direction: Direction, ends: LaneEnds): Lane {
  const { policies, rules } = policiesFor(world, direction, ends.subject)
  const matched: MatchedRule[] = []
  for (const one of rules) {
    const found = matchRule(world, one, ends.peer)
    if (found !== undefined) matched.push({ policy: one.policy, rule: one.rule, ...found })
  }
  const target = direction === 'ingress' ? ends.subject : ends.peer
  const portNames = world.semantics.portNames?.(direction, target) ?? target.ports
  return { direction, ...ends, policies, matched, portNames }
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
  const rules = policies.flatMap((policy) => policy.rules.map((rule) => numberRule(world, policy, rule)))
  const text = numbers.join()
  const number = world.memory.policySets.get(text) ?? world.memory.policySets.size
  world.memory.policySets.set(text, number)
  const added = { policies, rules, number }
  known[subject.id] = added
  return added
}

function numberRule({ peerIds, ruleIds }: PolicyWorld, policy: CompiledPolicy, rule: PolicyRule): NumberedRule {
  const { peers, ports } = rule
  const numbers = peers === 'any' ? [] : peers.map((peer) => peerIds.get(peer))
  const usesNames = ports !== 'any' && ports.some(({ kind }) => kind === 'named')
  return { policy, rule, id: ruleIds.get(rule) ?? -1, peers, numbers, usesNames }
}

const anyPeer: Pick<MatchedRule, 'peers' | 'isCertain'> = { peers: [], isCertain: true }

function matchRule(
  world: PolicyWorld,
  { peers, numbers }: NumberedRule,
  of: PartyClass,
): Pick<MatchedRule, 'peers' | 'isCertain'> | undefined {
  if (peers === 'any') return anyPeer
  const known = world.memory.peerMatches[of.id]
  if (known !== undefined && missesAll(numbers, known)) return undefined
  const sure: PeerMatch[] = []
  const open: PeerMatch[] = []
  for (let at = 0; at < peers.length; at++) {
    const peer = peers[at]
    const code = known?.[numbers[at] ?? -1]
    if (code === noMatch || peer === undefined) continue
    const match = matchPeer(world, peer, of)
    if (match === 'yes') sure.push(peer)
    else if (match === 'maybe') open.push(peer)
  }
  if (sure.length === 0 && open.length === 0) return undefined
  return { peers: open.length === 0 ? sure : [...sure, ...open], isCertain: sure.length > 0 }
}

/** Most rules match nobody in question, and that is known from the first time on. */
function missesAll(numbers: NumberedRule['numbers'], known: Uint8Array): boolean {
  for (let at = 0; at < numbers.length; at++) if (known[numbers[at] ?? -1] !== noMatch) return false
  return true
}

const answers: readonly (Match | undefined)[] = [undefined, 'no', 'yes', 'maybe']
const noMatch = 1

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

/** A number for what the decisions of a lane rest on, without laying it: lanes of one number decide alike. */
import type { Direction, PeerMatch } from '#compile/policy/policy-rule'
import type { LaneEnds } from './lane'
import { matchPeer, policiesFor } from './lane'
import type { PartyClass } from './party'
import type { NumberedRule, PolicyWorld } from './policy-world'

/** More than there are rules or peers in any cluster, and so that a step still is an exact number. */
const symbols = 2 ** 21

/**
 * A walk through the rules that match: from each state a symbol leads to the same next state, so that equal walks end in
 * equal states. Named ports are told by the states of the target's names.
 */
export function signLane(world: PolicyWorld, direction: Direction, { subject, peer, nearness }: LaneEnds): string {
  const { rules, number } = policiesFor(world, direction, subject)
  const start = direction === 'ingress' ? 0 : 1
  let state = step(world, start, number)
  let usesNames = false
  for (const rule of rules) {
    const match = matchOf(world, rule, peer)
    if (match === 'no') continue
    state = step(world, state, 2 * rule.id + (match === 'yes' ? 0 : 1))
    if (match === 'maybe') state = stepPeers(world, state, { rule, peer })
    usesNames ||= rule.usesNames
  }
  const target = direction === 'ingress' ? subject : peer
  return usesNames ? `${state} ${nearness} ${namesOf(target)}` : `${state} ${nearness}`
}

function step({ memory: { states } }: PolicyWorld, state: number, symbol: number): number {
  const key = state * symbols + symbol
  const known = states.get(key)
  if (known !== undefined) return known
  const next = states.size + 2
  states.set(key, next)
  return next
}

type Match = ReturnType<typeof matchPeer>

function matchOf(world: PolicyWorld, { peers, numbers }: NumberedRule, of: PartyClass): Match {
  if (peers === 'any') return 'yes'
  const row = world.memory.peerMatches[of.id]
  let best: Match = 'no'
  for (let at = 0; at < peers.length; at++) {
    const peer = peers[at]
    if (peer === undefined || row?.[numbers[at] ?? -1] === 1) continue
    const match = matchPeer(world, peer, of)
    if (match === 'yes') return match
    if (match === 'maybe') best = match
  }
  return best
}

/** Of a rule that may match it counts by which of its peers: these are the same in other rules. */
function stepPeers(
  world: PolicyWorld,
  from: number,
  { rule, peer }: { readonly rule: NumberedRule; readonly peer: PartyClass },
): number {
  let state = from
  const peers: readonly PeerMatch[] = rule.peers === 'any' ? [] : rule.peers
  for (const [at, one] of peers.entries()) {
    if (matchPeer(world, one, peer) === 'maybe') state = step(world, state, symbols - 1 - (rule.numbers[at] ?? 0))
  }
  return state
}

function namesOf({ ports }: PartyClass): string {
  return ports.map(({ name, protocol, port }) => `${name} ${protocol} ${port}`).join()
}

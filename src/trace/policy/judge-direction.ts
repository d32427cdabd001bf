/** One direction of one connection judged, without what other policies have to say. */
import type { Direction } from '#compile/policy/policy-rule'
import { type LaneEnds, layLane } from './lane'
import type { PolicyWorld } from './policy-world'
import { rulesAt } from './port-match'
import type { Judgement, Lane, LanePoint, RuleAtPort } from './semantics'

export type JudgedLane = { readonly lane: Lane; readonly rules: readonly RuleAtPort[]; readonly judgement: Judgement }

export function judgeDirection(
  world: PolicyWorld,
  direction: Direction,
  { ends, at }: { readonly ends: LaneEnds; readonly at: LanePoint },
): JudgedLane {
  const lane = layLane(world, direction, ends)
  const rules = rulesAt(lane, at)
  return { lane, rules, judgement: world.semantics.judge(lane, rules, at) }
}

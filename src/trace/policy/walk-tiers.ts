/**
 * One connection through the tiers of Kubernetes: admin, then NetworkPolicy, then baseline, then allow. Where order or
 * matching is open, every outcome that may come of it is kept.
 */
import type { CompiledPolicy, RuleAction, RuleTier } from '#compile/policy/policy-rule'
import type { Decision } from './answer'
import { textOfPeer } from './peer-text'
import { hasPorts } from './port-match'
import type { Lane, LanePoint, RuleAtPort } from './semantics'

/** What a cluster-wide tier may do; `none` when no rule of it matches. */
export type TierRun = {
  readonly tier: RuleTier
  readonly policies: readonly CompiledPolicy[]
  readonly actions: ReadonlySet<RuleAction | 'none'>
  /** The rules that decide, or may. */
  readonly rules: readonly RuleAtPort[]
  /** Policies of one priority want different things, and nothing says which goes first. */
  readonly isTied: boolean
}

export type NormalRun = {
  readonly policies: readonly CompiledPolicy[]
  readonly rules: readonly RuleAtPort[]
  /** What NetworkPolicies do to protocols without ports is not defined. */
  readonly isUndefined: boolean
}

export type TierWalk = {
  readonly decision: Decision
  /** Traffic that no policy may stop. */
  readonly bypass?: 'same-pod' | 'same-node' | 'perhaps-same-node'
  readonly admin?: TierRun
  /** Absent when the admin tier has surely decided, or no NetworkPolicy holds for the subject. */
  readonly normal?: NormalRun
  readonly baseline?: TierRun
  /** Nothing decided: what no policy speaks of is allowed. */
  readonly isDefault: boolean
  /** Something is open, but whatever it is comes to the same. */
  readonly isEitherWay?: true
}

export function walkTiers(lane: Lane, rules: readonly RuleAtPort[], at: LanePoint): TierWalk {
  const walk = walkOnce(lane, rules, at)
  if (walk.decision !== 'unknown') return walk
  const meanings = meaningsOf(rules)
  if (meanings === undefined) return walk
  const decisions = new Set(meanings.map((meaning) => walkOnce(lane, meaning, at).decision))
  const [only] = decisions
  return decisions.size === 1 && only !== undefined && only !== 'unknown'
    ? { ...walk, decision: only, isEitherWay: true }
    : walk
}

const mostOpenPeers = 6

/**
 * The rules as they are for each thing that open peers may turn out to be; a peer that stands in two rules is the same in
 * both. Undefined when nothing is open, or too much to try.
 */
function meaningsOf(rules: readonly RuleAtPort[]): readonly (readonly RuleAtPort[])[] | undefined {
  const open = [...new Set(rules.flatMap(({ isCertain, peers }) => (isCertain ? [] : peers.map(textOfPeer))))]
  if (open.length === 0 || open.length > mostOpenPeers) return undefined
  return Array.from({ length: 2 ** open.length }, (_, bits) => {
    const matches = new Set(open.filter((_, at) => (bits >> at) % 2 === 1))
    return rules.flatMap((rule) => {
      if (rule.isCertain) return [rule]
      return rule.peers.some((peer) => matches.has(textOfPeer(peer))) ? [{ ...rule, isCertain: true }] : []
    })
  })
}

function walkOnce(lane: Lane, rules: readonly RuleAtPort[], at: LanePoint): TierWalk {
  const { nearness } = lane
  if (nearness === 'same-pod' || nearness === 'same-node') {
    return { decision: 'allowed', bypass: nearness, isDefault: false }
  }
  const outcomes = new Set<Decision>()
  const admin = runTier('admin', lane, rules)
  addOutcomes(outcomes, admin)
  const goesOn = admin === undefined || admin.actions.has('pass') || admin.actions.has('none')
  const below = goesOn ? walkBelow(lane, rules, at) : { outcomes: [], isDefault: false }
  for (const outcome of below.outcomes) outcomes.add(outcome)
  const { outcomes: _, ...told } = below
  const isNear = nearness === 'perhaps-same-node' && outcomes.has('denied')
  if (isNear) outcomes.add('allowed')
  return {
    decision: decisionOf(outcomes),
    ...(isNear && { bypass: nearness }),
    ...(admin !== undefined && { admin }),
    ...told,
  }
}

type Below = Pick<TierWalk, 'normal' | 'baseline' | 'isDefault'> & { readonly outcomes: readonly Decision[] }

/** A NetworkPolicy that selects the pod in this direction is final; the baseline is for pods without one. */
function walkBelow(lane: Lane, rules: readonly RuleAtPort[], at: LanePoint): Below {
  const policies = lane.policies.filter(({ tier }) => tier === 'normal')
  if (policies.length > 0) {
    const normal = {
      policies,
      rules: rules.filter(({ policy }) => policy.tier === 'normal'),
      isUndefined: !hasPorts(at.protocol),
    }
    return { normal, outcomes: normalOutcomes(normal), isDefault: false }
  }
  const baseline = runTier('baseline', lane, rules)
  const outcomes = new Set<Decision>()
  addOutcomes(outcomes, baseline)
  const isDefault = baseline === undefined || baseline.actions.has('none') || baseline.actions.has('pass')
  if (isDefault) outcomes.add('allowed')
  return { ...(baseline !== undefined && { baseline }), outcomes: [...outcomes], isDefault }
}

function normalOutcomes({ rules, isUndefined }: NormalRun): readonly Decision[] {
  if (isUndefined) return ['allowed', 'denied']
  if (rules.some(({ isCertain }) => isCertain)) return ['allowed']
  return rules.length > 0 ? ['allowed', 'denied'] : ['denied']
}

function addOutcomes(outcomes: Set<Decision>, run: TierRun | undefined): void {
  if (run?.actions.has('allow')) outcomes.add('allowed')
  if (run?.actions.has('deny')) outcomes.add('denied')
}

function decisionOf(outcomes: ReadonlySet<Decision>): Decision {
  if (outcomes.size > 1) return 'unknown'
  return outcomes.has('allowed') ? 'allowed' : 'denied'
}

/** Undefined when the tier has no policy for the subject. Priorities are met in order, the lowest first. */
function runTier(tier: RuleTier, lane: Lane, rules: readonly RuleAtPort[]): TierRun | undefined {
  const policies = lane.policies.filter((policy) => policy.tier === tier)
  if (policies.length === 0) return undefined
  const actions = new Set<RuleAction | 'none'>()
  const deciding: RuleAtPort[] = []
  let isTied = false
  for (const priority of new Set(policies.map((policy) => policy.priority))) {
    const group = policies.filter((policy) => policy.priority === priority).map((policy) => firstMatches(policy, rules))
    const wanted = new Set(group.flatMap((first) => first.rules.map(({ rule }) => rule.action)))
    for (const action of wanted) actions.add(action)
    for (const first of group) deciding.push(...first.rules)
    isTied ||= group.filter((first) => first.rules.length > 0).length > 1 && wanted.size > 1
    if (group.some(({ isSure }) => isSure)) return { tier, policies, actions, rules: deciding, isTied }
  }
  actions.add('none')
  return { tier, policies, actions, rules: deciding, isTied }
}

type FirstMatches = { readonly rules: readonly RuleAtPort[]; readonly isSure: boolean }

/** The first rule that matches, and those before it that may. */
function firstMatches(policy: CompiledPolicy, rules: readonly RuleAtPort[]): FirstMatches {
  const own = rules.filter((rule) => rule.policy === policy)
  const sure = own.findIndex(({ isCertain }) => isCertain)
  return sure < 0 ? { rules: own, isSure: false } : { rules: own.slice(0, sure + 1), isSure: true }
}

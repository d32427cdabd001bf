/** What would have to change for another decision, in the words of the policies that made this one. */
import { listOf } from '#base/text'
import { describeParty, describePoint, describePolicy, describeRule } from './describe-policy'
import type { Lane, LanePoint, RuleAtPort } from './semantics'
import type { TierRun, TierWalk } from './walk-tiers'

export function adviseChanges(walk: TierWalk, lane: Lane, at: LanePoint): readonly string[] {
  switch (walk.decision) {
    case 'allowed':
      return adviseDeny(walk, lane, at)
    case 'denied':
      return adviseAllow(walk, lane, at)
    case 'unknown':
      return adviseCertainty(walk, at)
    default:
      return walk.decision satisfies never
  }
}

function adviseAllow(walk: TierWalk, lane: Lane, at: LanePoint): readonly string[] {
  const { direction, peer } = lane
  const side = direction === 'ingress' ? 'from' : 'to'
  const wish = `${side} ${describeParty(peer.party)}, ${describePoint(at)}`
  const denying = walk.normal === undefined ? (walk.baseline ?? walk.admin) : undefined
  if (walk.normal !== undefined) {
    const names = listOf(walk.normal.policies.map(describePolicy), 5)
    const one = walk.normal.policies.length === 1 ? names : `one of ${names}`
    return [`add to ${one} an ${direction} rule ${wish}; a NetworkPolicy of its own that has the rule does as well`]
  }
  if (denying === undefined) return []
  const rule = nameOf(denying)
  const isAdmin = denying.tier === 'admin'
  const before = `put a rule that allows ${wish} before ${rule}, in the same policy or in one of a lower priority number`
  return isAdmin
    ? [before]
    : [
        before,
        `or have a NetworkPolicy select ${describeParty(lane.subject.party)} for ${direction} and allow it: then the baseline does not count`,
      ]
}

function adviseDeny(walk: TierWalk, lane: Lane, at: LanePoint): readonly string[] {
  const { direction, subject } = lane
  if (walk.bypass !== undefined) return ['no policy of Kubernetes can stop this traffic']
  if (subject.kind !== 'pod')
    return [
      `limit it on the other side, at the pod, as no policy of Kubernetes holds for ${describeParty(subject.party)}`,
    ]
  if (walk.admin?.actions.has('allow'))
    return [`change ${nameOf(walk.admin)}, or put a rule that denies ${describePoint(at)} before it`]
  if (walk.normal !== undefined) {
    const names = walk.normal.rules.map(({ policy, rule }) => `${describePolicy(policy)} ${describeRule(rule)}`)
    return [
      `take away ${names.length === 1 ? '' : 'every one of '}${listOf(names, 5)}: ${describeParty(subject.party)} is isolated for ${direction} as it is`,
    ]
  }
  if (walk.baseline?.actions.has('allow'))
    return [`change ${nameOf(walk.baseline)}, or isolate the pod by a NetworkPolicy`]
  return [
    `have a NetworkPolicy with policyType ${direction === 'ingress' ? 'Ingress' : 'Egress'} select ${describeParty(subject.party)}: then what no rule allows is dropped`,
  ]
}

function adviseCertainty(walk: TierWalk, at: LanePoint): readonly string[] {
  const tied = [walk.admin, walk.baseline].find((run) => run?.isTied)
  const open = [walk.admin, walk.normal, walk.baseline].flatMap(
    (run) => run?.rules.filter(({ isCertain }) => !isCertain) ?? [],
  )
  return [
    ...(tied === undefined ? [] : ['give the policies different priorities']),
    ...(walk.normal?.isUndefined ? [`ask the network plugin what its NetworkPolicies do to ${at.protocol}`] : []),
    ...(walk.bypass === 'perhaps-same-node' ? ['add spec.nodeName, or the output of kubectl get pods -o yaml'] : []),
    ...(open.length === 0 ? [] : [`tell whom ${listOf(open.map(placeOf), 3)} matches`]),
  ]
}

function placeOf({ policy, rule }: RuleAtPort): string {
  return `${describePolicy(policy)} ${describeRule(rule)}`
}

function nameOf({ rules }: TierRun): string {
  const last = rules.at(-1)
  return last === undefined ? 'the rule' : placeOf(last)
}

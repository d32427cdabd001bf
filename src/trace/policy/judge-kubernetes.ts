/** The reasons of a decision as Kubernetes makes it: which tier, which rule, what is undefined, and what would change it. */
import { listOf } from '#base/text'
import type { CompiledPolicy, PolicyRule } from '#compile/policy/policy-rule'
import { adviseChanges } from './advise-changes'
import type { PolicyReason } from './answer'
import { describeParty, describePeer, describePoint, describePolicy, describeRule } from './describe-policy'
import { nameTiers } from './name-tiers'
import type { Judgement, Lane, LanePoint, RuleAtPort } from './semantics'
import { type NormalRun, type TierRun, type TierWalk, walkTiers } from './walk-tiers'

export function judgeKubernetes(lane: Lane, rules: readonly RuleAtPort[], at: LanePoint): Judgement {
  const walk = walkTiers(lane, rules, at)
  const because = reasonsOf(walk, lane, at)
  return {
    decision: walk.decision,
    because,
    deciding: new Set(
      [walk.admin, walk.normal, walk.baseline].flatMap((run) => run?.rules.map(({ rule }) => rule) ?? []),
    ),
    tiers: nameTiers(walk),
    changes: adviseChanges(walk, lane, at),
  }
}

type Context = { readonly lane: Lane; readonly at: LanePoint; readonly walk: TierWalk }

function reasonsOf(walk: TierWalk, lane: Lane, at: LanePoint): Judgement['because'] {
  const context = { lane, at, walk }
  const reasons = [
    ...reasonsOfBypass(context),
    ...(walk.admin === undefined ? [] : reasonsOfTier(walk.admin, context)),
    ...(walk.normal === undefined ? [] : reasonsOfNormal(walk.normal, context)),
    ...(walk.baseline === undefined ? [] : reasonsOfTier(walk.baseline, context)),
    ...(walk.isDefault ? [reasonOfDefault(context)] : []),
    ...(walk.isEitherWay
      ? [{ code: 'policy.either-way', sentence: `whatever is open here, it comes to the same: ${walk.decision}` }]
      : []),
  ]
  const [first = reasonOfDefault(context), ...rest] = reasons
  return [first, ...rest]
}

function reasonsOfBypass({ lane, walk }: Context): readonly PolicyReason[] {
  const [one, other] = [describeParty(lane.subject.party), describeParty(lane.peer.party)]
  switch (walk.bypass) {
    case undefined:
      return []
    case 'same-pod':
      return [
        {
          code: 'policy.same-pod',
          sentence: `a pod cannot cut itself off: what ${one} sends to itself meets no policy`,
        },
      ]
    case 'same-node':
      return [
        {
          code: 'policy.same-node',
          sentence: `${one} and ${other} are on one node, and traffic between a node and its own pods is allowed whatever policies say`,
        },
      ]
    case 'perhaps-same-node':
      return [
        {
          code: 'policy.perhaps-same-node',
          sentence: `the input does not tell whether ${one} and ${other} are on one node, where policies would not count`,
        },
      ]
    default:
      return walk.bypass satisfies never
  }
}

const verbs = { allow: 'allows', deny: 'denies', pass: 'passes' } as const
const codes = { allow: 'policy.rule-allows', deny: 'policy.rule-denies', pass: 'policy.rule-passes' } as const

function reasonsOfTier(run: TierRun, { lane, at }: Context): readonly PolicyReason[] {
  const reasons = run.rules.map((found) =>
    reasonOfRule(found, `${verbs[found.rule.action]} ${describePoint(at)}`, lane),
  )
  if (!run.isTied) return reasons
  const policies = listOf([...new Set(run.rules.map(({ policy }) => describePolicy(policy)))])
  const [first] = run.rules
  const sentence = `${policies} have the same priority ${first?.policy.priority} and want different things: upstream does not define which goes first`
  return [...reasons, { code: 'policy.undefined-order', sentence }]
}

function reasonsOfNormal({ policies, rules, isUndefined }: NormalRun, { lane, at }: Context): readonly PolicyReason[] {
  const isolation = reasonOfIsolation(policies, lane)
  if (isUndefined) {
    const sentence = `upstream does not define what NetworkPolicies do to ${at.protocol}: they are for TCP, UDP and SCTP`
    return [{ code: 'policy.undefined-protocol', sentence }, isolation]
  }
  if (rules.length > 0) return rules.map((found) => reasonOfRule(found, `allows ${describePoint(at)}`, lane))
  const sentence = `${isolation.sentence}, and no rule of theirs allows ${describePoint(at)} ${sideOf(lane)}`
  return [
    {
      ...isolation,
      code: 'policy.isolated',
      sentence: policies.length === 1 ? sentence.replace('of theirs', 'of it') : sentence,
    },
  ]
}

function reasonOfIsolation(policies: readonly CompiledPolicy[], { direction, subject }: Lane): PolicyReason {
  const names = listOf(policies.map(describePolicy), 5)
  const verb = policies.length === 1 ? 'isolates' : 'isolate'
  const sentence = `${names} ${verb} ${describeParty(subject.party)} for ${direction}`
  const [first] = policies
  return { code: 'policy.isolates', sentence, ...(first !== undefined && placeOf(first)) }
}

export function sideOf({ direction, peer }: Lane): string {
  return `${direction === 'ingress' ? 'from' : 'to'} ${describeParty(peer.party)}`
}

function reasonOfRule({ policy, rule, peers, isCertain }: RuleAtPort, did: string, lane: Lane): PolicyReason {
  const { kind } = policy.source.object
  const priority =
    policy.tier === 'normal' || kind === 'BaselineAdminNetworkPolicy' ? '' : ` (priority ${policy.priority})`
  const whom = peers.length === 0 ? (rule.peers === 'any' ? 'anybody' : 'nobody') : peers.map(describePeer).join(' or ')
  const side = lane.direction === 'ingress' ? 'from' : 'to'
  const may = isCertain ? '' : ', if that is what the peer is: the input does not tell'
  return {
    code: isCertain ? codes[rule.action] : 'policy.undecidable-peer',
    sentence: `${describePolicy(policy)}${priority} ${describeRule(rule)} ${did} ${side} ${whom}${may}${translationNote(peers, lane)}`,
    ...placeOf(policy, rule),
  }
}

/** Upstream leaves open whether an ipBlock sees addresses before or after translation. */
function translationNote(peers: RuleAtPort['peers'], { peer }: Lane): string {
  const isByAddress = peers.every(({ kind }) => kind === 'addresses') && peers.length > 0
  if (!isByAddress || peer.kind === 'address') return ''
  const own = peer.party.kind === 'pod' ? peer.party.pod.meta.assumed : []
  const isAssumed = own.includes('*') || own.includes('status.podIPs')
  const assumed = isAssumed ? '; the address is assumed' : ''
  return ` (by its address: upstream does not define whether a range matches addresses inside the cluster before or after translation; here it matches them as they are${assumed})`
}

function reasonOfDefault({ lane, walk }: Context): PolicyReason {
  const { subject, direction } = lane
  const who = describeParty(subject.party)
  if (subject.kind !== 'pod') {
    const sentence =
      subject.party.kind === 'pod'
        ? `${who} counts as its node: what policies do to host-networked pods is undefined upstream for NetworkPolicy, and the cluster-wide policies leave them out`
        : `policies hold for pods: nothing limits the ${direction} of ${who}`
    return { code: 'policy.no-subject', sentence }
  }
  const hasTier = walk.admin !== undefined || walk.baseline !== undefined
  const sentence = hasTier
    ? `no rule of the cluster-wide policies decides, and no NetworkPolicy selects ${who} for ${direction}: then all is allowed`
    : `no policy selects ${who} for ${direction}: then all is allowed`
  return { code: 'policy.not-isolated', sentence }
}

function placeOf({ source }: CompiledPolicy, rule?: PolicyRule): Pick<PolicyReason, 'object' | 'origin' | 'path'> {
  return { object: source.object, origin: source.origin, path: rule?.path ?? source.path }
}

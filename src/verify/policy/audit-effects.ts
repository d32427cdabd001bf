/** What each policy does with one recorded flow: in which direction it allows or denies it, of those that hold for one of its ends. */
import type { ObjectRef } from '#base/finding'
import type { Direction } from '#compile/policy/policy-rule'
import type { ObservedFlow } from '#flows/observed-flow'
import { judgeDirection } from '#trace/policy/judge-direction'
import { type AuditJudge, judgeFlow, nearnessBetween, pairsOf, textOfRef } from './audit-judge'
import type { AuditVerdict, Denial, Pair } from './audit-refusals'

export type PolicyEffect = {
  readonly policy: ObjectRef
  readonly direction: Direction
  /** Null where it allows the flow. */
  readonly reason: string | null
  /** The end that the policy does not hold for. */
  readonly other: string
}

export type FlowEffects = { readonly verdict: AuditVerdict; readonly effects: readonly PolicyEffect[] }

export type EffectsJudge = {
  readonly judge: AuditJudge
  /** Of pairs of two classes at one port: the policies with a rule that allows them. */
  readonly allowances: Map<string, readonly Allowance[]>
}

type Allowance = { readonly policy: ObjectRef; readonly direction: Direction }

export function newEffectsJudge(judge: AuditJudge): EffectsJudge {
  return { judge, allowances: new Map() }
}

/** Of a flow whose verdict is not known no policy is told. */
export function effectsOf(effectsJudge: EffectsJudge, flow: ObservedFlow): FlowEffects {
  const { judge } = effectsJudge
  const verdict = judgeFlow(judge, flow)
  if (verdict.kind === 'unknown') return { verdict, effects: [] }
  const denials = verdict.kind === 'denied' ? verdict.denials : []
  const denying = denials.flatMap((denial) =>
    denial.policies.map((policy) => {
      const { direction, other } = denial
      return { policy, direction, other, reason: reasonOf(denial, flow) }
    }),
  )
  const effects = new Map(denying.map((effect) => [keyOfEffect(effect), effect as PolicyEffect]))
  for (const pair of pairsOf(judge, flow)) {
    for (const allowance of allowancesOf(effectsJudge, pair)) {
      if (denials.some(({ direction }) => direction === allowance.direction)) continue
      const other = allowance.direction === 'egress' ? pair.target.name : pair.source.name
      const effect = { ...allowance, other, reason: null }
      if (!effects.has(keyOfEffect(effect))) effects.set(keyOfEffect(effect), effect)
    }
  }
  return { verdict, effects: [...effects.values()] }
}

function keyOfEffect({ policy, direction }: Allowance): string {
  return `${direction} ${textOfRef(policy)}`
}

function reasonOf({ isByRule, other, port, direction }: Denial, { protocol }: ObservedFlow): string {
  const what = `${direction === 'egress' ? 'to' : 'from'} ${other} on ${protocol} ${port}`
  return isByRule ? `a rule denies traffic ${what}` : `no rule allows traffic ${what}`
}

function allowancesOf({ judge, allowances }: EffectsJudge, pair: Pair): readonly Allowance[] {
  const { source, target, protocol, port } = pair
  const nearness = nearnessBetween(source, target)
  const key = `${source.of.id} ${target.of.id} ${nearness} ${protocol} ${port}`
  const known = allowances.get(key)
  if (known !== undefined) return known
  const made = (['egress', 'ingress'] as const).flatMap((direction): readonly Allowance[] => {
    const [subject, peer] = direction === 'egress' ? [source, target] : [target, source]
    const ends = { subject: subject.of, peer: peer.of, nearness }
    const { rules, judgement } = judgeDirection(judge.world, direction, { ends, at: { protocol, port } })
    if (judgement.decision !== 'allowed') return []
    return rules
      .filter(({ rule }) => judgement.deciding.has(rule) && rule.action === 'allow')
      .map(({ policy }) => ({ policy: policy.source.object, direction }))
  })
  const distinct = [...new Map(made.map((one) => [keyOfEffect(one), one])).values()]
  allowances.set(key, distinct)
  return distinct
}

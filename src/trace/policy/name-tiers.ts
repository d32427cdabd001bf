/** The tiers that a connection passed, in one line: `[ANP] Pass -> [NPv1] Dropped`. */
import type { TierAction } from '#model/tier-policy'
import type { RuleAtPort } from './semantics'
import type { NormalRun, TierRun, TierWalk } from './walk-tiers'

/** A tier without a policy for the subject is not named. */
export function nameTiers(walk: TierWalk): string {
  if (walk.bypass === 'same-pod' || walk.bypass === 'same-node') return '[None] Allow'
  const steps = [
    ...(walk.admin === undefined ? [] : [nameRun(walk.admin)]),
    ...(walk.normal === undefined ? [] : [nameNormal(walk.normal)]),
    ...(walk.baseline === undefined ? [] : [nameRun(walk.baseline)]),
    ...(walk.isDefault ? ['[Default] Allow'] : []),
  ]
  return steps.join(' -> ')
}

const words: Readonly<Record<TierAction, string>> = { allow: 'Allow', deny: 'Deny', pass: 'Pass' }

function nameRun({ tier, policies, actions, rules }: TierRun): string {
  const isOld = policies.every(({ source }) => source.object.kind !== 'ClusterNetworkPolicy')
  const label = tier === 'admin' ? (isOld ? 'ANP' : 'Admin') : isOld ? 'BANP' : 'Baseline'
  if (rules.length === 0) return `[${label}] No-Op`
  const [only] = actions
  if (actions.size > 1 || only === undefined || only === 'none') return `[${label}] Undecided`
  return `[${label}] ${words[only]}${nameRule(rules)}`
}

function nameRule(rules: readonly RuleAtPort[]): string {
  const last = rules.at(-1)
  return last === undefined ? '' : ` (${last.rule.name ?? `${last.policy.source.object.name} ${last.rule.path}`})`
}

function nameNormal({ rules, isUndefined }: NormalRun): string {
  if (isUndefined) return '[NPv1] Undefined'
  if (rules.some(({ isCertain }) => isCertain)) return '[NPv1] Allow'
  return rules.length > 0 ? '[NPv1] Undecided' : '[NPv1] Dropped'
}

/** Rules without which nothing changes: another one does all that they do, or decides all of it before. */
import { type Finding, printRef } from '#base/finding'
import type { CompiledPolicy, PolicyRule } from '#compile/policy/policy-rule'
import { coversRule, coversSubject } from './covers'
import { lintFinding } from './findings'
import type { LintContext } from './lint-context'

export type PlacedRule = { readonly policy: CompiledPolicy; readonly rule: PolicyRule }

/** Why a rule may go: `isolation` is a policy that keeps connections from reaching the tier of the rule. */
export type IdleRule = PlacedRule & {
  readonly because: PlacedRule | { readonly isolation: CompiledPolicy }
  readonly isShadowed: boolean
}

export function lintShadows(context: LintContext): readonly Finding[] {
  return idleRules(context).map(({ policy, rule, because, isShadowed }) => {
    const isIsolated = 'isolation' in because
    const where = isIsolated
      ? printRef(because.isolation.source.object)
      : because.policy === policy
        ? because.rule.path
        : `${printRef(because.policy.source.object)} ${because.rule.path}`
    const message = isIsolated
      ? `${where} isolates the pods, so that no connection comes as far as this rule`
      : isShadowed
        ? `${where} decides all that this rule matches, and ${pastOf(because.rule)} it`
        : `${where} ${pastOf(because.rule)} all that this rule does`
    const hint = isShadowed ? 'delete the rule, or put it before the other' : 'delete the rule'
    const code = isShadowed ? 'policy.shadowed-rule' : 'policy.redundant-rule'
    return lintFinding(code, policy.source, { message, path: rule.path, hint })
  })
}

function pastOf({ action }: PolicyRule): string {
  return { allow: 'allows', deny: 'denies', pass: 'passes on' }[action]
}

/** Only what is certain by the rules themselves, whatever pods there will be: several rules together are not looked at. */
export function idleRules({ world }: Pick<LintContext, 'world'>): readonly IdleRule[] {
  return (['ingress', 'egress'] as const).flatMap((direction) => {
    const policies = world.policies.filter((policy) => policy.direction === direction)
    const rules = policies.flatMap((policy) => policy.rules.map((rule): PlacedRule => ({ policy, rule })))
    const index = indexBySubject(rules)
    const isTiered = world.semantics.name === 'k8s'
    return rules.flatMap((one, place) => {
      const found = isTiered ? idleInTiers(one, { place, rules, index, policies }) : idleInCilium(one, { place, index })
      return found === undefined ? [] : [found]
    })
  })
}

type Indexed = PlacedRule & { readonly place: number }
type Setting = {
  readonly place: number
  readonly rules: readonly PlacedRule[]
  readonly index: (policy: CompiledPolicy) => readonly Indexed[]
  readonly policies: readonly CompiledPolicy[]
}

/** Rules whose subject holds that of a policy; asked once a subject. */
function indexBySubject(rules: readonly PlacedRule[]): (policy: CompiledPolicy) => readonly Indexed[] {
  const bySubject = new Map<string, readonly Indexed[]>()
  const placed = rules.map((rule, place): Indexed => ({ ...rule, place }))
  return (policy) => {
    const key = JSON.stringify({ ...policy.subject, path: '', detail: '' })
    const known = bySubject.get(key)
    if (known !== undefined) return known
    const found = placed.filter((other) => coversSubject(other.policy.subject, policy.subject))
    bySubject.set(key, found)
    return found
  }
}

function idleInTiers(one: PlacedRule, setting: Setting): IdleRule | undefined {
  const { policy, rule } = one
  const others = setting.index(policy)
  if (policy.tier === 'normal') {
    const twin = others.find((other) => other.policy.tier === 'normal' && outdoes(other, one, setting.place))
    if (twin !== undefined) return { ...one, because: twin, isShadowed: false }
  }
  const before = others.find((other) => goesBefore(other, one, setting))
  if (before !== undefined) {
    return { ...one, because: before, isShadowed: before.rule.action !== rule.action }
  }
  if (policy.tier !== 'baseline') return undefined
  const isolation = setting.policies.find(
    (other) => other.tier === 'normal' && other.isolates && coversSubject(other.subject, policy.subject),
  )
  return isolation === undefined ? undefined : { ...one, because: { isolation }, isShadowed: true }
}

/** Of two that do the same the later one is told. */
function outdoes(other: Indexed, one: PlacedRule, place: number): boolean {
  if (other.place === place || other.rule.action !== one.rule.action || !coversRule(other.rule, one.rule)) return false
  return (
    other.place < place ||
    !(coversRule(one.rule, other.rule) && coversSubject(one.policy.subject, other.policy.subject))
  )
}

const rank = { admin: 0, normal: 1, baseline: 2 } as const

/** Whether `other` surely decides first what `one` matches: what passes on leads to the next tier, unless it stands in the same. */
function goesBefore(other: Indexed, one: PlacedRule, { rules }: Setting): boolean {
  if (other.policy.tier === 'normal' || !isEarlier(other, one) || !coversRule(other.rule, one.rule)) return false
  if (other.policy.tier === one.policy.tier) return true
  const passes = rules.some(
    (third) => third.policy.tier === other.policy.tier && third.rule.action === 'pass' && !isEarlier(other, third),
  )
  return other.rule.action !== 'pass' && !passes
}

/** The order of policies of one priority is not defined. */
function isEarlier(other: PlacedRule, one: PlacedRule): boolean {
  if (other.policy === one.policy) return other.policy.rules.indexOf(other.rule) < one.policy.rules.indexOf(one.rule)
  if (other.policy.tier !== one.policy.tier) return rank[other.policy.tier] < rank[one.policy.tier]
  return other.policy.tier !== 'normal' && other.policy.priority < one.policy.priority
}

/** Denials go before, wherever they stand; what a proxy or a handshake is to do may differ even where rules allow alike. */
function idleInCilium(one: PlacedRule, { place, index }: Pick<Setting, 'place' | 'index'>): IdleRule | undefined {
  if (one.policy.tier !== 'normal' || one.rule.consequences !== undefined) return undefined
  const others = index(one.policy).filter(
    ({ policy, rule }) => policy.tier === 'normal' && rule.consequences === undefined,
  )
  const denial = others.find(({ rule }) => rule.action === 'deny' && coversRule(rule, one.rule))
  if (denial !== undefined && one.rule.action === 'allow') return { ...one, because: denial, isShadowed: true }
  const twin = others.find((other) => outdoes(other, one, place))
  return twin === undefined ? undefined : { ...one, because: twin, isShadowed: false }
}

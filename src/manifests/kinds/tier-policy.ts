/**
 * AdminNetworkPolicy and BaselineAdminNetworkPolicy (v1alpha1), ClusterNetworkPolicy (v1alpha2): read and held to the
 * CRDs of sigs.k8s.io/network-policy-api (experimental channel, v0.1 and v0.2).
 */
import { describeValue } from '#manifests/text/raw-object'
import type { Meta } from '#model/meta'
import type { NamespacedPods, PolicyTier, TierPolicy, TierPolicyKind, TierRule } from '#model/tier-policy'
import { type Fields, has, itemsAt, mapAt, mapsAt, numberAt } from './fields'
import { checkKnown, checkVersion, refuse, unlessRefused } from './policy-refusal'
import { tierGrammars } from './tier-grammar'
import { readSubject } from './tier-pods'
import { type RuleContext, readTierRule } from './tier-rule'

const group = 'policy.networking.k8s.io'
const versions: Readonly<Record<TierPolicyKind, readonly string[]>> = {
  AdminNetworkPolicy: [`${group}/v1alpha1`],
  BaselineAdminNetworkPolicy: [`${group}/v1alpha1`],
  ClusterNetworkPolicy: [`${group}/v1alpha2`, `${group}/v1beta1`],
}

const specFields: Readonly<Record<TierPolicyKind, readonly string[]>> = {
  AdminNetworkPolicy: ['priority', 'subject', 'ingress', 'egress'],
  BaselineAdminNetworkPolicy: ['subject', 'ingress', 'egress'],
  ClusterNetworkPolicy: ['tier', 'priority', 'subject', 'ingress', 'egress'],
}

/** Undefined, with findings, for one that the API server refuses. */
export function parseTierPolicy(root: Fields, meta: Meta, kind: TierPolicyKind): TierPolicy | undefined {
  return unlessRefused(root, () => {
    checkVersion(root, versions[kind])
    checkName(root, meta, kind)
    checkKnown(root, ['apiVersion', 'kind', 'metadata', 'spec', 'status'])
    const spec = mapAt(root, 'spec')
    checkKnown(spec, specFields[kind])
    return {
      kind,
      meta,
      tier: parseTier(spec, kind),
      priority: kind === 'BaselineAdminNetworkPolicy' ? 0 : parsePriority(spec),
      subject: parseSubject(spec, kind),
      ingress: parseRules(spec, { kind, side: 'ingress' }),
      egress: parseRules(spec, { kind, side: 'egress' }),
    }
  })
}

function checkName(root: Fields, meta: Meta, kind: TierPolicyKind): void {
  if (kind !== 'BaselineAdminNetworkPolicy' || meta.name === 'default') return
  const problem = 'there is one BaselineAdminNetworkPolicy at most, and its name is "default"'
  refuse(mapAt(root, 'metadata'), 'name', { problem, hint: 'write name: default' })
}

function parseTier(spec: Fields, kind: TierPolicyKind): PolicyTier {
  if (kind !== 'ClusterNetworkPolicy') return kind === 'AdminNetworkPolicy' ? 'admin' : 'baseline'
  const { tier } = spec.values
  if (tier === 'Admin') return 'admin'
  if (tier !== 'Baseline') {
    const problem = has(spec, 'tier') ? `${describeValue(tier)} is no tier` : 'it names no tier'
    refuse(spec, 'tier', { problem, hint: 'write Admin or Baseline' })
  }
  return 'baseline'
}

const priorities = { from: 0, to: 1000, noun: 'a priority from 0 to 1000' }

function parsePriority(spec: Fields): number {
  if (!has(spec, 'priority'))
    refuse(spec, 'priority', { problem: 'it has no priority', hint: 'write one from 0 to 1000' })
  const { priority } = spec.values
  if (typeof priority === 'number' && !(Number.isInteger(priority) && priority >= 0 && priority <= 1000)) {
    const problem = `${priority} is no priority from 0 to 1000`
    refuse(spec, 'priority', { problem, hint: 'the lower one goes first' })
    return 0
  }
  return numberAt(spec, 'priority', priorities) ?? 0
}

function parseSubject(spec: Fields, kind: TierPolicyKind): NamespacedPods {
  const subject = mapAt(spec, 'subject')
  checkKnown(subject, ['namespaces', 'pods'])
  const count = ['namespaces', 'pods'].filter((key) => has(subject, key)).length
  if (count !== 1) {
    const problem =
      count === 0 ? 'its subject is neither namespaces nor pods' : 'its subject is both namespaces and pods'
    refuse(spec, 'subject', { problem, hint: 'write one of them; for every pod, namespaces: {}' })
  }
  return readSubject(subject, tierGrammars[kind])
}

type Side = { readonly kind: TierPolicyKind; readonly side: 'ingress' | 'egress' }

function parseRules(spec: Fields, { kind, side }: Side): readonly TierRule[] {
  const { mostRules } = tierGrammars[kind]
  const count = itemsAt(spec, side).length
  if (count > mostRules) {
    const problem = `it has ${count} ${side} rules, where a ${kind} takes at most ${mostRules}`
    refuse(spec, side, { problem, hint: 'spread them over several policies' })
  }
  const context: RuleContext = { side, grammar: tierGrammars[kind] }
  return mapsAt(spec, side).map((rule) => readTierRule(rule, context))
}

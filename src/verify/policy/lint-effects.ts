/** Pods of which policies close or open a direction whole, and Cilium's rules that look like something else. */
import type { Finding } from '#base/finding'
import { countOf, listOf } from '#base/text'
import type { CompiledPolicy } from '#compile/policy/policy-rule'
import { type CiliumElement, type CiliumPolicy, ciliumSections } from '#model/cilium-policy'
import { keyOf, refOf } from '#model/meta'
import { type LintCode, lintFinding } from './findings'
import type { LintContext } from './lint-context'

/** All policies of a pod count together; the first that isolates it is named. */
export function lintEffects(context: LintContext): readonly Finding[] {
  return (['ingress', 'egress'] as const).flatMap((direction) => {
    const told = new Map<
      string,
      { readonly code: LintCode; readonly policy: CompiledPolicy; readonly names: string[] }
    >()
    for (const subject of context.pods) {
      const policies = context.policiesOf(subject, direction).filter(({ tier }) => tier === 'normal')
      const first = policies.find(({ isolates }) => isolates)
      const code = effectOf(policies)
      if (first === undefined || code === undefined) continue
      const key = `${code} ${context.world.policies.indexOf(first)}`
      const known = told.get(key) ?? { code, policy: first, names: [] }
      told.set(key, known)
      for (const { meta } of subject.pods) known.names.push(keyOf(meta))
    }
    return [...told.values()].map(({ code, policy, names }) => {
      const who = `${countOf(names.length, 'pod')} (${listOf(names.sort(), 3)})`
      const message =
        code === 'policy.all-blocked'
          ? `all ${direction} of ${who} is closed: no rule allows any`
          : `all ${direction} of ${who} is open: a rule allows everything`
      return lintFinding(code, policy.source, { message, path: policy.subject.path })
    })
  })
}

function effectOf(policies: readonly CompiledPolicy[]): LintCode | undefined {
  const rules = policies.flatMap((policy) => policy.rules)
  if (rules.length === 0) return 'policy.all-blocked'
  if (rules.some(({ action }) => action === 'deny')) return undefined
  const isOpen = rules.some(({ action, peers, ports }) => action === 'allow' && peers === 'any' && ports === 'any')
  return isOpen ? 'policy.all-allowed' : undefined
}

export function lintCilium({ world: { cluster } }: LintContext): readonly Finding[] {
  return [...cluster.ciliumPolicies.values()].flatMap((policy) =>
    policy.specs.flatMap(({ sections }) =>
      ciliumSections.flatMap((section) =>
        (sections[section] ?? []).flatMap((element) => lintElement(policy, section, element)),
      ),
    ),
  )
}

/** As the CRD names them, behind `from` or `to`. */
const peerFields: Readonly<Record<string, string>> = {
  endpoints: 'Endpoints',
  cidrs: 'CIDR',
  cidrSets: 'CIDRSet',
  entities: 'Entities',
  nodes: 'Nodes',
  groups: 'Groups',
  services: 'Services',
  fqdns: 'FQDNs',
}

function lintElement({ meta }: CiliumPolicy, section: string, element: CiliumElement): readonly Finding[] {
  const source = { object: refOf(meta), origin: meta.origin }
  const { path, ...members } = element
  const given = Object.entries(members).filter(([, value]) => value !== undefined)
  if (given.length === 0) {
    const direction = section.startsWith('ingress') ? 'ingress' : 'egress'
    const message = section.endsWith('Deny')
      ? 'the rule has no members: in Cilium it denies nothing'
      : `the rule has no members: in Cilium it allows nothing, and closes ${direction} but for other rules`
    const everybody = section.startsWith('ingress') ? 'fromEntities: [all]' : 'toEntities: [all]'
    const hint = `write ${everybody} to mean everybody, or leave the rule out`
    return [lintFinding('policy.empty-rule', source, { message, path, hint })]
  }
  const empty = given.filter(([name, value]) => name in peerFields && Array.isArray(value) && value.length === 0)
  return empty.map(([name]) =>
    lintFinding('policy.empty-peers', source, {
      message: `${section.startsWith('ingress') ? 'from' : 'to'}${peerFields[name]} is an empty list, and so matches nobody`,
      path,
      hint: 'leave it out to match everybody, or fill it in',
    }),
  )
}

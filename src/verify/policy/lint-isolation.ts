/** Directions that a NetworkPolicy closes though nobody may have meant it, and rules that have no effect. */
import type { Finding } from '#base/finding'
import type { Direction } from '#compile/policy/policy-rule'
import type { Cluster } from '#model/cluster'
import { refOf } from '#model/meta'
import type { NetworkPolicy, NetworkPolicyPort } from '#model/network-policy'
import { lintFinding } from './findings'
import { directionWords } from './lint-context'

const directions = ['ingress', 'egress'] as const

export function lintIsolation({ networkPolicies, ciliumPolicies }: Cluster): readonly Finding[] {
  const unplaced = [...networkPolicies.values(), ...ciliumPolicies.values()].filter(({ meta }) =>
    meta.assumed.includes('metadata.namespace'),
  )
  return [
    ...[...networkPolicies.values()].flatMap((policy) => [
      ...lintTypes(policy),
      ...directions.flatMap((direction) => lintDirection(policy, direction)),
      ...lintProtocols(policy),
    ]),
    ...unplaced.map(({ meta }) =>
      lintFinding('policy.no-namespace', sourceOf({ meta }), {
        message: 'the policy has no namespace; it is read as one of namespace default',
        path: 'metadata.namespace',
        hint: 'add metadata.namespace',
      }),
    ),
  ]
}

function sourceOf({ meta }: Pick<NetworkPolicy, 'meta'>): Parameters<typeof lintFinding>[1] {
  return { object: refOf(meta), origin: meta.origin }
}

function lintTypes(policy: NetworkPolicy): readonly Finding[] {
  if (policy.hasPolicyTypes) return []
  const types = policy.policyTypes.join(', ')
  const message = `policyTypes is missing; the API server makes it [${types}], as there ${policy.egress.length > 0 ? 'are' : 'are no'} egress rules`
  return [
    lintFinding('policy.no-policy-types', sourceOf(policy), {
      message,
      path: 'spec.policyTypes',
      hint: `write policyTypes: [${types}] if that is meant`,
    }),
  ]
}

function lintDirection(policy: NetworkPolicy, direction: Direction): readonly Finding[] {
  const { policyTypes, hasPolicyTypes } = policy
  const { type, nothing } = directionWords[direction]
  const other = direction === 'ingress' ? 'egress' : 'ingress'
  const isNamed = policyTypes.includes(type)
  const hasRules = policy[direction].length > 0
  if (hasRules && !isNamed) {
    return [
      lintFinding('policy.rules-without-type', sourceOf(policy), {
        message: `policyTypes does not name ${type}, so the ${direction} rules have no effect`,
        path: `spec.${direction}`,
        hint: `add ${type} to policyTypes, or delete the rules`,
      }),
    ]
  }
  // A policy without any rule is one that is meant to close what it closes.
  if (!isNamed || hasRules || policy[other].length === 0) return []
  const cause = hasPolicyTypes ? `policyTypes names ${type}` : `policyTypes is missing, which stands for ${type} too`
  return [
    lintFinding('policy.isolates-by-accident', sourceOf(policy), {
      message: `${cause}, and there is no ${direction} rule: the selected pods are closed for ${direction}, ${nothing}`,
      path: hasPolicyTypes ? 'spec.policyTypes' : 'spec',
      hint: `write policyTypes: [${directionWords[other].type}] if ${direction} is to stay open`,
    }),
  ]
}

function lintProtocols(policy: NetworkPolicy): readonly Finding[] {
  const rules = [...policy.ingress, ...policy.egress]
  const bare = rules.flatMap(({ ports }) => ports.filter(({ assumesProtocol }) => assumesProtocol === true))
  return bare.map((port) =>
    lintFinding('policy.no-protocol', sourceOf(policy), {
      message: `the port ${describePort(port)} has no protocol, and so is one of TCP alone`,
      path: port.path,
      hint: 'write protocol: TCP if that is meant',
    }),
  )
}

function describePort({ port, endPort }: NetworkPolicyPort): string {
  return port === undefined ? 'entry' : endPort === undefined ? String(port) : `range ${port}-${endPort}`
}

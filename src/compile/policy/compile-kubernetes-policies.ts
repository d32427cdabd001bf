/** Every policy that Kubernetes' own semantics knows, in the order in which they are met. */
import { compareText } from '#base/text'
import type { Cluster } from '#model/cluster'
import { compileNetworkPolicy } from './compile-network-policy'
import { compileTierPolicy } from './compile-tier-policy'
import type { CompiledPolicy, RuleTier } from './policy-rule'

const tierOrder: Readonly<Record<RuleTier, number>> = { admin: 0, normal: 1, baseline: 2 }

/** By tier, then priority; equal ones by name, so that answers do not depend on the order of the input. */
export function compileKubernetesPolicies(cluster: Cluster): readonly CompiledPolicy[] {
  const tiers = [...cluster.tierPolicies.values()].flatMap(compileTierPolicy)
  const normal = [...cluster.networkPolicies.values()].flatMap(compileNetworkPolicy)
  return sortPolicies([...tiers, ...normal])
}

export function sortPolicies(policies: readonly CompiledPolicy[]): readonly CompiledPolicy[] {
  const nameOf = ({ source: { object, path } }: CompiledPolicy): string =>
    `${object.namespace ?? ''}/${object.name} ${object.kind} ${path}`
  return policies.toSorted(
    (a, b) => tierOrder[a.tier] - tierOrder[b.tier] || a.priority - b.priority || compareText(nameOf(a), nameOf(b)),
  )
}

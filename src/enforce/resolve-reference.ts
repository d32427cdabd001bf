/** What a reference to a traffic policy comes to: the built-in policy, a policy of the namespace, or nothing, and why. */

import type { CompiledPolicy } from '#compile/traffic-policy/compile-policy'
import { compilePolicy, describeProblems } from '#compile/traffic-policy/compile-policy'
import type { Cluster } from '#model/cluster'
import type { Meta } from '#model/meta'
import type { TrafficPolicy } from '#model/traffic-policy'
import { reservedPolicyName } from '#model/traffic-policy-schema'

export type Resolution =
  | { readonly kind: 'default' }
  | { readonly kind: 'policy'; readonly policy: TrafficPolicy; readonly compiled: CompiledPolicy }
  /** It is there and does not compile. */
  | { readonly kind: 'invalid'; readonly policy: TrafficPolicy; readonly why: string; readonly message: string }
  /** Nothing is to be bound. */
  | { readonly kind: 'missing' | 'foreign'; readonly message: string }

type Reference = { readonly name: string }

/** Never leaves `namespace`, which for an edge link is the service's. */
export function resolveReference(
  { trafficPolicies }: Pick<Cluster, 'trafficPolicies'>,
  namespace: string,
  reference: Reference | undefined,
): Resolution {
  if (reference === undefined) return { kind: 'default' }
  const key = `${namespace}/${reference.name}`
  const policy = trafficPolicies.get(key)
  if (reference.name === reservedPolicyName) {
    if (policy === undefined || isOwnedByController(policy.meta)) return { kind: 'default' }
    const message = `TrafficPolicy ${key} is not the controller's, and its name is reserved for the built-in policy; rename it and refer to it by that name, or delete it`
    return { kind: 'foreign', message }
  }
  if (policy === undefined)
    return { kind: 'missing', message: `there is no TrafficPolicy ${key}; create it, or correct the reference` }
  const compilation = compilePolicy(policy)
  if (compilation.kind === 'compiled') return { kind: 'policy', policy, compiled: compilation.compiled }
  const why = describeProblems(compilation.problems).replaceAll('\n', '; ')
  return { kind: 'invalid', policy, why, message: `TrafficPolicy ${key} does not compile: ${why}` }
}

const managedBy = 'app.kubernetes.io/managed-by'
export const controllerName = 'portolan-controller'

/** A tenant's own object of the reserved name is none of the controller's. */
export function isOwnedByController({ labels }: Pick<Meta, 'labels'>): boolean {
  return labels[managedBy] === controllerName
}

/** Everything that is suspicious about a cluster's traffic policies, and about what binds them. */
import type { Finding } from '#base/finding'
import { compareText } from '#base/text'
import type { Cluster } from '#model/cluster'
import { keyOf } from '#model/meta'
import type { TrafficPolicy, TrafficPolicyBinding } from '#model/traffic-policy'
import { reservedPolicyName } from '#model/traffic-policy-schema'
import { compilePolicy } from './compile-policy'
import { defaultDenyAll } from './default-deny-all'
import type { Direction } from './entry'
import { trafficFinding } from './findings'
import { lintReplies, type OtherDirection } from './lint-replies'
import { lintRules } from './lint-rules'
import { lintNat64 } from './nat64'

export function lintTrafficPolicies(cluster: Cluster): readonly Finding[] {
  const uses = listUses(cluster)
  const policies = [...cluster.trafficPolicies.values()]
  return [
    ...policies.flatMap((policy) =>
      lintPolicy(
        policy,
        uses.filter(({ key }) => key === keyOf(policy.meta)),
        cluster,
      ),
    ),
    ...lintReferences(cluster),
    ...lintDoubles(cluster),
  ]
}

/** A policy that one direction of something refers to. */
type Use = { readonly key: string; readonly direction: Direction; readonly other: string | undefined }

type References = {
  readonly ingressPolicyRef?: { readonly name: string }
  readonly egressPolicyRef?: { readonly name: string }
}

function listUses(cluster: Cluster): readonly Use[] {
  const bindings = [...cluster.trafficPolicyBindings.values()].map(({ meta, spec }) => ({ meta, refs: spec }))
  const services = [...cluster.edgeServices.values()].map(({ meta, spec }) => ({ meta, refs: spec?.trafficPolicy }))
  return [...bindings, ...services].flatMap(({ meta, refs }) => usesOf(meta.namespace, refs))
}

function usesOf(namespace: string, refs: References = {}): readonly Use[] {
  const nameOf = (ref: { readonly name: string } | undefined) =>
    ref === undefined ? undefined : `${namespace}/${ref.name}`
  const [ingress, egress] = [nameOf(refs.ingressPolicyRef), nameOf(refs.egressPolicyRef)]
  return [
    ...(ingress === undefined ? [] : [{ key: ingress, direction: 'ingress' as const, other: egress }]),
    ...(egress === undefined ? [] : [{ key: egress, direction: 'egress' as const, other: ingress }]),
  ]
}

function lintPolicy(policy: TrafficPolicy, uses: readonly Use[], cluster: Cluster): readonly Finding[] {
  const compilation = compilePolicy(policy)
  if (compilation.kind === 'refused') {
    // What the schema refuses was told when the object was read.
    if (policy.problems.length > 0) return []
    return compilation.problems.map((problem) => trafficFinding('traffic-policy.uncompilable', policy.meta, problem))
  }
  const { compiled } = compilation
  const mayBeIngress = uses.length === 0 || uses.some(({ direction }) => direction === 'ingress')
  const replies = othersOf(policy, uses, cluster).flatMap((other) => lintReplies(policy, compiled, other))
  return [...lintRules(policy, compiled), ...(mayBeIngress ? lintNat64(policy) : []), ...replies]
}

/** What decides replies: of a policy that nothing binds, the policy itself, as it may be bound both ways. */
function othersOf(policy: TrafficPolicy, uses: readonly Use[], cluster: Cluster): readonly OtherDirection[] {
  if (uses.length === 0)
    return policy.spec === undefined ? [] : [{ name: 'the policy, bound the other way,', spec: policy.spec }]
  const others = new Map(uses.map(({ direction, other }) => [other, direction === 'ingress' ? 'egress' : 'ingress']))
  return [...others].flatMap(([key, direction]): readonly OtherDirection[] => {
    if (key === undefined) return [{ name: `the built-in ${direction} policy`, spec: defaultDenyAll.spec }]
    const spec = cluster.trafficPolicies.get(key)?.spec
    return spec === undefined ? [] : [{ name: `the ${direction} policy ${key}`, spec }]
  })
}

function lintReferences(cluster: Cluster): readonly Finding[] {
  const { trafficPolicies, trafficPolicyBindings, vpcAttachments, edgeServices } = cluster
  const bindings = [...trafficPolicyBindings.values()].flatMap(({ meta, spec }) => {
    const key = `${meta.namespace}/${spec?.vpcAttachmentRef.name}`
    const lost =
      spec === undefined || vpcAttachments.has(key) ? [] : [noSuch(meta, 'vpcAttachmentRef', `VPCAttachment ${key}`)]
    return [...lost, ...lostPolicies(meta, { refs: spec, path: 'spec', trafficPolicies })]
  })
  const services = [...edgeServices.values()].flatMap(({ meta, spec }) =>
    lostPolicies(meta, { refs: spec?.trafficPolicy, path: 'spec.trafficPolicy', trafficPolicies }),
  )
  return [...bindings, ...services]
}

type Looking = {
  readonly refs: References | undefined
  readonly path: string
  readonly trafficPolicies: Cluster['trafficPolicies']
}

function lostPolicies(meta: TrafficPolicy['meta'], { refs = {}, path, trafficPolicies }: Looking): readonly Finding[] {
  return (['ingressPolicyRef', 'egressPolicyRef'] as const).flatMap((field) => {
    const { [field]: ref } = refs
    if (ref === undefined || ref.name === reservedPolicyName) return []
    const key = `${meta.namespace}/${ref.name}`
    return trafficPolicies.has(key) ? [] : [noSuch(meta, field, `TrafficPolicy ${key}`, path)]
  })
}

function noSuch(meta: TrafficPolicy['meta'], field: string, what: string, path = 'spec'): Finding {
  return trafficFinding('traffic-policy.dangling-reference', meta, {
    path: `${path}.${field}.name`,
    message: `there is no ${what} in the input; references stay in their namespace`,
    hint: 'add it, or name one that is there',
  })
}

/** The older binding counts; of two of one age, that of the lesser name. */
export function compareBindings(one: TrafficPolicyBinding, other: TrafficPolicyBinding): number {
  const [a, b] = [one.meta.creationTimestamp ?? '', other.meta.creationTimestamp ?? '']
  return compareText(a, b) || compareText(one.meta.name, other.meta.name)
}

function lintDoubles({ trafficPolicyBindings }: Cluster): readonly Finding[] {
  const counting = new Map<string, TrafficPolicyBinding>()
  return [...trafficPolicyBindings.values()].sort(compareBindings).flatMap((binding) => {
    const { meta, spec } = binding
    if (spec === undefined) return []
    const key = `${meta.namespace}/${spec.vpcAttachmentRef.name}`
    const first = counting.get(key)
    if (first === undefined) {
      counting.set(key, binding)
      return []
    }
    const message = `VPCAttachment ${key} is bound by TrafficPolicyBinding ${first.meta.name} already, which counts`
    return [
      trafficFinding('traffic-policy.bound-twice', meta, {
        path: 'spec.vpcAttachmentRef',
        message,
        hint: 'delete one of the two',
      }),
    ]
  })
}

/** Whether references to policies resolve: of a binding by direction and together, of an EdgeService, and of a policy itself. */
import { countOf } from '#base/text'
import type { Cluster } from '#model/cluster'
import { keyOf } from '#model/meta'
import type { EdgeService, Problem, TrafficPolicy } from '#model/traffic-policy'
import { reservedPolicyName } from '#model/traffic-policy-schema'
import type { Judgement } from './condition'
import { isOwnedByController, type Resolution, resolveReference } from './resolve-reference'

type References = {
  readonly ingressPolicyRef?: { readonly name: string }
  readonly egressPolicyRef?: { readonly name: string }
}

type Answer = Pick<Judgement, 'status' | 'reason' | 'message'>

/** Resolves one reference of a namespace; a survey gives one that compiles each policy once. */
export type Resolver = (namespace: string, reference: { readonly name: string } | undefined) => Resolution

export function resolverOf(cluster: Pick<Cluster, 'trafficPolicies'>): Resolver {
  const known = new Map<string, Resolution>()
  return (namespace, reference) => {
    const key = `${namespace}/${reference?.name ?? ''}`
    const resolved = known.get(key) ?? resolveReference(cluster, namespace, reference)
    known.set(key, resolved)
    return resolved
  }
}

const reasons: Readonly<Record<Resolution['kind'], string>> = {
  default: 'Default',
  policy: 'Resolved',
  invalid: 'PolicyInvalid',
  missing: 'PolicyNotFound',
  foreign: 'NameReserved',
}

function answerOf(resolution: Resolution): Answer {
  const reason = reasons[resolution.kind]
  switch (resolution.kind) {
    case 'default':
      return { status: 'True', reason, message: `the built-in policy ${reservedPolicyName}` }
    case 'policy': {
      const { policy } = resolution
      return { status: 'True', reason, message: `TrafficPolicy ${keyOf(policy.meta)}, generation ${policy.generation}` }
    }
    default:
      return { status: 'False', reason, message: resolution.message }
  }
}

type Both = { readonly ingress: Answer; readonly egress: Answer }

function answersOf(resolve: Resolver, namespace: string, refs: References): Both {
  return {
    ingress: answerOf(resolve(namespace, refs.ingressPolicyRef)),
    egress: answerOf(resolve(namespace, refs.egressPolicyRef)),
  }
}

/** False with the first direction's reason that fails; Default where neither direction names a policy. */
function together({ ingress, egress }: Both): Answer {
  const message = `ingress: ${ingress.message}; egress: ${egress.message}`
  const lost = [ingress, egress].find(({ status }) => status === 'False')
  if (lost !== undefined) return { status: 'False', reason: lost.reason, message }
  const isDefault = ingress.reason === 'Default' && egress.reason === 'Default'
  return { status: 'True', reason: isDefault ? 'Default' : 'Resolved', message }
}

/** `Resolved` speaks of both directions and of the attachment, `IngressResolved` and `EgressResolved` of one each. */
export function judgeResolved(
  resolve: Resolver,
  { namespace, refs, lostAttachment }: ResolvedFacts,
): readonly Judgement[] {
  const both = answersOf(resolve, namespace, refs)
  const lost = {
    status: 'False',
    reason: 'AttachmentNotFound',
    message: `there is no VPCAttachment ${lostAttachment}; create it, or correct vpcAttachmentRef`,
  }
  return [
    { type: 'Resolved', ...(lostAttachment === undefined ? together(both) : (lost as Answer)) },
    { type: 'IngressResolved', ...both.ingress },
    { type: 'EgressResolved', ...both.egress },
  ]
}

export type ResolvedFacts = {
  readonly namespace: string
  readonly refs: References
  /** As `namespace/name`, where there is no such attachment. */
  readonly lostAttachment?: string
}

/** The service's own namespace alone is asked: the provider has no say. */
export function judgeEdgeService(resolve: Resolver, { meta, spec, problems }: EdgeService): Judgement {
  const type = 'TrafficPolicyResolved'
  if (spec === undefined) return { type, ...refused(problems) }
  return { type, ...together(answersOf(resolve, meta.namespace, spec.trafficPolicy ?? {})) }
}

/** Of an object that the API server would have refused. */
export function refused(problems: readonly Problem[]): Answer {
  const told = problems.map(({ path, message, hint }) => `${path}: ${message}; ${hint}`).join('; ')
  return { status: 'False', reason: 'Invalid', message: told === '' ? 'it has no spec; write one' : told }
}

/** By its own name the reserved one resolves to the built-in policy, so that a tenant's is looked at first. */
export function judgePolicy(resolve: Resolver, { meta }: TrafficPolicy): Judgement {
  const type = 'Valid'
  const resolution = resolve(meta.namespace, { name: meta.name })
  if (resolution.kind === 'policy') {
    const { rules, entries } = resolution.compiled
    const size = `${countOf(rules.length, 'rule')}, ${countOf(entries.length, 'compiled entry', 'compiled entries')}`
    return { type, status: 'True', reason: 'Valid', message: size }
  }
  if (resolution.kind === 'default' && isOwnedByController(meta)) {
    return { type, status: 'True', reason: 'BuiltIn', message: 'the built-in policy, which denies everything' }
  }
  if (resolution.kind === 'invalid') return { type, status: 'False', reason: 'Invalid', message: resolution.why }
  const message = 'message' in resolution ? resolution.message : ''
  return { type, status: 'False', reason: 'NameReserved', message }
}

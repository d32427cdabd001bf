/** All conditions of a cluster at one moment: a value of its objects and the clock, with nothing remembered beside them. */
import { compareText } from '#base/text'
import { describeProblems } from '#compile/traffic-policy/compile-policy'
import { compareBindings } from '#compile/traffic-policy/lint-traffic-policies'
import type { Cluster } from '#model/cluster'
import type { JudgedKind } from '#model/condition-schema'
import { keyOf, type Meta } from '#model/meta'
import type { Problem, TrafficPolicyBinding } from '#model/traffic-policy'
import { type Condition, controllerTypes, datedConditions, type Judgement } from './condition'
import {
  type InstalledFacts,
  judgeEnforcing,
  judgeInstalled,
  momentOfStaleness,
  type NodeEntry,
} from './condition-installed'
import { judgeEdgeService, judgePolicy, judgeResolved, type Resolver, refused, resolverOf } from './condition-resolved'

export type JudgedObject = {
  readonly kind: JudgedKind
  readonly meta: Meta
  readonly conditions: readonly Condition[]
  /** False where the conditions are, time and all, what the object holds already. */
  readonly isChanged: boolean
}

/** `objects` by namespace and name. */
export type Survey = {
  readonly objects: readonly JudgedObject[]
  /** When an answer changes with no object changing: the first heartbeat to turn stale, in milliseconds since the epoch. */
  readonly nextAt?: number
}

export type TrafficObjects = Pick<
  Cluster,
  'trafficPolicies' | 'trafficPolicyBindings' | 'vpcAttachments' | 'edgeServices'
>

/** Each object's status is what is written of it: by its nodes, and by the controller before. */
export function surveyConditions(cluster: TrafficObjects, now: number): Survey {
  const resolve = resolverOf(cluster)
  const losers = findLosers(cluster)
  const moments: number[] = []
  const dated = (kind: JudgedKind, object: Judged, judged: readonly Judgement[]): JudgedObject => {
    const { meta, generation, status } = object
    const before = status?.conditions ?? []
    const conditions = datedConditions(judged, { before, generation, now })
    return { kind, meta, conditions, isChanged: !isSame(before, conditions) }
  }
  const policies = [...cluster.trafficPolicies.values()].map((policy) =>
    dated('TrafficPolicy', policy, [judgePolicy(resolve, policy)]),
  )
  const bindings = [...cluster.trafficPolicyBindings.values()].map((binding) => {
    const facts = factsOf(cluster, binding, now)
    const staleAt = facts?.entry === undefined ? undefined : momentOfStaleness(facts.entry)
    if (staleAt !== undefined && staleAt > now) moments.push(staleAt)
    const winner = losers.get(keyOf(binding.meta))
    return dated('TrafficPolicyBinding', binding, judgeBinding(binding, { resolve, facts, winner, cluster }))
  })
  const services = [...cluster.edgeServices.values()].map((service) =>
    dated('EdgeService', service, [judgeEdgeService(resolve, service)]),
  )
  const objects = [...policies, ...bindings, ...services].sort(compareObjects)
  return moments.length === 0 ? { objects } : { objects, nextAt: moments.reduce((a, b) => Math.min(a, b)) }
}

function compareObjects({ meta: one }: JudgedObject, { meta: other }: JudgedObject): number {
  return compareText(one.namespace, other.namespace) || compareText(one.name, other.name)
}

type Judged = {
  readonly meta: Meta
  readonly generation: number
  readonly status?: { readonly conditions?: readonly Condition[] }
}

type Judging = {
  readonly resolve: Resolver
  /** Absent for a binding that names no attachment. */
  readonly facts: InstalledFacts | undefined
  /** The binding that counts instead of this one. */
  readonly winner: string | undefined
  readonly cluster: TrafficObjects
}

function judgeBinding(
  binding: TrafficPolicyBinding,
  { resolve, facts, winner, cluster }: Judging,
): readonly Judgement[] {
  const { meta, spec, problems } = binding
  if (spec === undefined || facts === undefined) {
    return (['Resolved', 'Installed', 'Enforcing'] as const).map((type) => ({ type, ...refused(problems) }))
  }
  const lost = cluster.vpcAttachments.has(facts.attachment) ? {} : { lostAttachment: facts.attachment }
  const resolved = judgeResolved(resolve, { namespace: meta.namespace, refs: spec, ...lost })
  if (winner !== undefined) return [...resolved, ...conflicts(facts.attachment, winner)]
  const installed = judgeInstalled(facts)
  return [...resolved, installed, judgeEnforcing(installed, facts)]
}

function conflicts(attachment: string, winner: string): readonly Judgement[] {
  const reason = 'Conflict'
  const message = `VPCAttachment ${attachment} is bound by TrafficPolicyBinding ${winner}, which is older and counts; delete one of the two, or bind another attachment`
  const not = { status: 'False', reason, message } as const
  return [
    { type: 'Installed', ...not },
    { type: 'Enforcing', ...not },
    { type: 'Conflict', status: 'True', reason: 'AttachmentBound', message },
  ]
}

function factsOf(
  { vpcAttachments }: TrafficObjects,
  { meta, generation, spec, status, unreadStatus }: TrafficPolicyBinding,
  now: number,
): InstalledFacts | undefined {
  if (spec === undefined) return undefined
  const attachment = `${meta.namespace}/${spec.vpcAttachmentRef.name}`
  const held = vpcAttachments.get(attachment)
  const node = held?.status?.node
  const unread = { ...told('attachment', held?.unreadStatus), ...told('binding', unreadStatus) }
  return { generation, attachment, node, unread, entry: entryOf(status?.nodes ?? [], node), now }
}

function told(whose: 'attachment' | 'binding', problems: readonly Problem[] | undefined) {
  return problems === undefined ? {} : { [whose]: describeProblems(problems).replaceAll('\n', '; ') }
}

/** However fresh and healthy, what other nodes say is ignored: a lost node cannot take its entry back. */
function entryOf(nodes: readonly NodeEntry[], node: string | undefined): NodeEntry | undefined {
  return nodes.find((one) => one.node === node)
}

/** Bindings that an older one of the same attachment takes the place of, with that one's key. */
function findLosers({ trafficPolicyBindings }: TrafficObjects): ReadonlyMap<string, string> {
  const counting = new Map<string, string>()
  const losers = new Map<string, string>()
  for (const { meta, spec } of [...trafficPolicyBindings.values()].sort(compareBindings)) {
    if (spec === undefined) continue
    const attachment = `${meta.namespace}/${spec.vpcAttachmentRef.name}`
    const winner = counting.get(attachment)
    if (winner === undefined) counting.set(attachment, keyOf(meta))
    else losers.set(keyOf(meta), winner)
  }
  return losers
}

/** Types that others write into the same list are not the controller's to compare. */
function isSame(before: readonly Condition[], now: readonly Condition[]): boolean {
  const own = before.filter(({ type }) => controllerTypes.includes(type))
  return own.length === now.length && now.every((one) => own.some((other) => isSameCondition(one, other)))
}

function isSameCondition(one: Condition, other: Condition): boolean {
  const fields = ['type', 'status', 'observedGeneration', 'lastTransitionTime', 'reason', 'message'] as const
  return fields.every((field) => one[field] === other[field])
}

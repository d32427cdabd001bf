/** What field managers say of objects, put into the objects: each owns its part, and none removes another's. */
import { compareText } from '#base/text'
import type { JudgedKind } from '#model/condition-schema'
import type { TrafficPolicyBinding } from '#model/traffic-policy'
import { type Condition, controllerTypes } from './condition'
import type { NodeEntry } from './condition-installed'
import type { TrafficObjects } from './condition-survey'

type Named = { readonly namespace: string; readonly name: string; readonly uid?: string }

export type SaidByNode = { readonly metadata: Named; readonly status: { readonly nodes: readonly NodeEntry[] } }

export type SaidByController = {
  readonly kind: JudgedKind
  readonly metadata: Named
  readonly status: { readonly conditions: readonly Condition[] }
}

export type Said = { readonly nodes: readonly SaidByNode[]; readonly conditions: readonly SaidByController[] }

/** An entry takes the place of the object's own of that node, and what the controller says that of all it said before. */
export function mergeStatuses<T extends TrafficObjects>(objects: T, { nodes, conditions }: Said): T {
  const conditionsOf = (kind: JudgedKind) => groupByKey(conditions.filter((one) => one.kind === kind))
  const entries = groupByKey(nodes)
  const bindings = withConditions(objects.trafficPolicyBindings, conditionsOf('TrafficPolicyBinding'))
  return {
    ...objects,
    trafficPolicies: withConditions(objects.trafficPolicies, conditionsOf('TrafficPolicy')),
    trafficPolicyBindings: mapValues(bindings, (key, binding) => withEntries(binding, entries.get(key) ?? [])),
    edgeServices: withConditions(objects.edgeServices, conditionsOf('EdgeService')),
  }
}

function groupByKey<T extends { readonly metadata: Named }>(all: readonly T[]): ReadonlyMap<string, readonly T[]> {
  const groups = new Map<string, T[]>()
  for (const one of all) {
    const key = `${one.metadata.namespace}/${one.metadata.name}`
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [one])
    else group.push(one)
  }
  return groups
}

function mapValues<T>(map: ReadonlyMap<string, T>, change: (key: string, value: T) => T): ReadonlyMap<string, T> {
  return new Map([...map].map(([key, value]) => [key, change(key, value)]))
}

type Judged = {
  readonly meta: { readonly uid?: string }
  readonly status?: { readonly conditions?: readonly Condition[] }
}

/** What was said of an object of another UID was said of one that is gone. */
function isAbout({ metadata }: { readonly metadata: Named }, { meta }: Judged): boolean {
  return metadata.uid === undefined || meta.uid === undefined || metadata.uid === meta.uid
}

function withConditions<T extends Judged>(
  objects: ReadonlyMap<string, T>,
  said: ReadonlyMap<string, readonly SaidByController[]>,
): ReadonlyMap<string, T> {
  return mapValues(objects, (key, object) => {
    const own = (said.get(key) ?? []).filter((one) => isAbout(one, object)).flatMap(({ status }) => status.conditions)
    if (own.length === 0) return object
    const others = (object.status?.conditions ?? []).filter(({ type }) => !controllerTypes.includes(type))
    return { ...object, status: { ...object.status, conditions: [...others, ...own] } }
  })
}

/** Sorted by node. Of two entries of one node the one with the later heartbeat counts. */
function withEntries(binding: TrafficPolicyBinding, said: readonly SaidByNode[]): TrafficPolicyBinding {
  const own = said.filter((one) => isAbout(one, binding)).flatMap(({ status }) => status.nodes)
  if (own.length === 0) return binding
  const entries = new Map<string, NodeEntry>()
  for (const entry of [...(binding.status?.nodes ?? []), ...own]) {
    const known = entries.get(entry.node)
    if (known === undefined || beatOf(known) <= beatOf(entry)) entries.set(entry.node, entry)
  }
  const nodes = [...entries.values()].sort((one, other) => compareText(one.node, other.node))
  return { ...binding, status: { ...binding.status, nodes } }
}

function beatOf({ heartbeatTime }: NodeEntry): number {
  const beat = Date.parse(heartbeatTime ?? '')
  return Number.isNaN(beat) ? Number.NEGATIVE_INFINITY : beat
}

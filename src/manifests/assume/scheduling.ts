/** Whether a node may run a pod: node selector, required node affinity, taints. What the scheduler only prefers is left aside. */

import { type Fields, has, mapAt, mapsAt, nameAt } from '#manifests/kinds/fields'
import { expressionsAt } from '#manifests/kinds/label-selector'
import { labelsAt } from '#manifests/kinds/meta'
import type { NodeRules, Taint } from '#manifests/kinds/node'
import type { Labels } from '#model/meta'
import { selects } from '#model/meta'
import type { ClusterNode } from '#model/node'
import { type Expression, matchesAll } from '#model/selector'

type Toleration = { readonly key?: string; readonly operator: string; readonly value: string; readonly effect?: string }

/** A term is met when all of it is; one of the terms must be met, if there are any. */
type Term = { readonly labels: readonly Expression[]; readonly fields: readonly Expression[] }

export type PlacementRules = {
  readonly nodeSelector: Labels
  readonly terms?: readonly Term[]
  readonly tolerations: readonly Toleration[]
}

/** The controller gives these to the pods of every DaemonSet (`pkg/controller/daemon/util`, AddOrUpdateDaemonPodTolerations). */
export const daemonTolerations: readonly Toleration[] = [
  'not-ready',
  'unreachable',
  'disk-pressure',
  'memory-pressure',
  'pid-pressure',
  'unschedulable',
].map((key) => ({ key: `node.kubernetes.io/${key}`, operator: 'Exists', value: '' }))

const unschedulable: Taint = { key: 'node.kubernetes.io/unschedulable', value: '', effect: 'NoSchedule' }

export function parsePlacement(podSpec: Fields): PlacementRules {
  const nodeSelector = labelsAt(podSpec, 'nodeSelector')
  const tolerations = mapsAt(podSpec, 'tolerations').map(parseToleration)
  const affinity = mapAt(mapAt(podSpec, 'affinity'), 'nodeAffinity')
  const required = 'requiredDuringSchedulingIgnoredDuringExecution'
  if (!has(affinity, required)) return { nodeSelector, tolerations }
  const terms = mapsAt(mapAt(affinity, required), 'nodeSelectorTerms').map((term) => ({
    labels: expressionsAt(term, 'matchExpressions'),
    fields: expressionsAt(term, 'matchFields'),
  }))
  return { nodeSelector, tolerations, terms }
}

/** True when the rules ask nothing of a node. */
export function asksNothing({ nodeSelector, terms, tolerations }: PlacementRules): boolean {
  return terms === undefined && tolerations.length === 0 && Object.keys(nodeSelector).length === 0
}

export function mayRunOn(rules: PlacementRules, node: ClusterNode, nodeRules: NodeRules | undefined): boolean {
  const { labels, name } = node.meta
  if (!selects(rules.nodeSelector, labels)) return false
  const meetsTerm = (term: Term): boolean =>
    term.labels.length + term.fields.length > 0 &&
    matchesAll(term.labels, labels) &&
    matchesAll(term.fields, { 'metadata.name': name })
  if (rules.terms !== undefined && !rules.terms.some(meetsTerm)) return false
  const taints = [...(nodeRules?.taints ?? []), ...(nodeRules?.isUnschedulable ? [unschedulable] : [])]
  return taints.every((taint) => taint.effect === 'PreferNoSchedule' || isTolerated(taint, rules.tolerations))
}

function isTolerated(taint: Taint, tolerations: readonly Toleration[]): boolean {
  return tolerations.some(
    ({ key, operator, value, effect }) =>
      (effect === undefined || effect === taint.effect) &&
      (key === undefined ? operator === 'Exists' : key === taint.key) &&
      (operator === 'Exists' || value === taint.value),
  )
}

function parseToleration(entry: Fields): Toleration {
  const key = nameAt(entry, 'key')
  const effect = nameAt(entry, 'effect')
  return {
    operator: nameAt(entry, 'operator') ?? 'Equal',
    value: nameAt(entry, 'value') ?? '',
    ...(key !== undefined && { key }),
    ...(effect !== undefined && { effect }),
  }
}

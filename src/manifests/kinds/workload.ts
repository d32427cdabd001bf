/** Workloads: Deployment, ReplicaSet, StatefulSet, DaemonSet, Job and CronJob, as far as the pods they imply go. */
import type { Labels, Meta } from '#model/meta'
import {
  type Bounds,
  conditionAt,
  type Fields,
  flagAt,
  has,
  itemsAt,
  mapAt,
  nameAt,
  numberAt,
  plainNameAt,
  report,
} from './fields'
import { type LabelSelector, matchesSelector, selectorAt } from './label-selector'
import { labelsAt } from './meta'
import { type PodSpec, parsePodSpec } from './pod'
import type { Writable } from './writable'

export type WorkloadKind = 'Deployment' | 'ReplicaSet' | 'StatefulSet' | 'DaemonSet' | 'Job' | 'CronJob'

/** `spec` is parsed; `placement` is the same map unread, for what the scheduler asks of it. */
export type PodTemplate = { readonly labels: Labels; readonly spec: PodSpec; readonly placement: Fields }

export type Workload = {
  readonly kind: WorkloadKind
  readonly meta: Meta
  /** Pods it has when it is at rest. A status tells better than the spec; a DaemonSet has one a node. */
  readonly count: number | 'each-node'
  /** How many of them are ready; absent when nothing tells, so that all are. */
  readonly readyCount?: number
  readonly selector?: LabelSelector
  readonly template: PodTemplate
  /** The headless Service of a StatefulSet. */
  readonly serviceName?: string
  readonly firstOrdinal: number
  readonly isIndexed: boolean
}

const counts: Bounds = { from: 0, to: 2 ** 31 - 1, noun: 'a whole number from 0' }

export function parseWorkload(root: Fields, meta: Meta, kind: WorkloadKind): Workload {
  const spec = mapAt(root, 'spec')
  const jobSpec = kind === 'CronJob' ? mapAt(mapAt(spec, 'jobTemplate'), 'spec') : spec
  const template = parseTemplate(mapAt(jobSpec, 'template'))
  const workload: Writable<Workload> = {
    kind,
    meta,
    count: countPods(root, kind),
    template,
    firstOrdinal: numberAt(mapAt(spec, 'ordinals'), 'start', counts) ?? 0,
    isIndexed: nameAt(jobSpec, 'completionMode') === 'Indexed',
  }
  const selector = selectorAt(jobSpec, 'selector')
  const readyCount = countReady(mapAt(root, 'status'), kind)
  const serviceName = plainNameAt(spec, 'serviceName')
  if (selector !== undefined) workload.selector = selector
  if (readyCount !== undefined) workload.readyCount = readyCount
  if (serviceName !== undefined) workload.serviceName = serviceName
  checkSelector(spec, workload)
  return workload
}

function parseTemplate(template: Fields): PodTemplate {
  const placement = mapAt(template, 'spec')
  return { labels: labelsAt(mapAt(template, 'metadata'), 'labels'), spec: parsePodSpec(placement), placement }
}

/** Jobs make a selector of their own; other kinds must write one that finds their pods. */
function checkSelector(spec: Fields, { kind, selector, template }: Workload): void {
  if (kind === 'Job' || kind === 'CronJob' || selector === undefined) return
  if (matchesSelector(selector, template.labels)) return
  report(spec, 'selector', {
    code: 'manifest.bad-value',
    message:
      'the API server refuses a selector that does not match the labels of spec.template; its pods are implied all the same',
    hint: 'make them agree',
  })
}

/** A controller that has seen its object says so in the status, and then the status counts. */
function isSeen(status: Fields): boolean {
  return has(status, 'observedGeneration')
}

function countPods(root: Fields, kind: WorkloadKind): number | 'each-node' {
  const spec = mapAt(root, 'spec')
  const status = mapAt(root, 'status')
  if (kind === 'Job') return countJob(spec, status)
  if (kind === 'CronJob') return countCronJob(spec, status)
  if (kind === 'DaemonSet') {
    return isSeen(status) && (numberAt(status, 'currentNumberScheduled', counts) ?? 0) === 0 ? 0 : 'each-node'
  }
  return (isSeen(status) ? (numberAt(status, 'replicas', counts) ?? 0) : numberAt(spec, 'replicas', counts)) ?? 1
}

function countReady(status: Fields, kind: WorkloadKind): number | undefined {
  if (kind === 'Job' || kind === 'CronJob' || !isSeen(status)) return undefined
  return numberAt(status, kind === 'DaemonSet' ? 'numberReady' : 'readyReplicas', counts) ?? 0
}

function countJob(spec: Fields, status: Fields): number {
  if (flagAt(spec, 'suspend') === true) return 0
  if (conditionAt(status, 'Complete') === true || conditionAt(status, 'Failed') === true) return 0
  return has(status, 'startTime') ? (numberAt(status, 'active', counts) ?? 0) : countJobSpec(spec)
}

function countJobSpec(spec: Fields): number {
  const parallelism = numberAt(spec, 'parallelism', counts) ?? 1
  return Math.min(parallelism, numberAt(spec, 'completions', counts) ?? parallelism)
}

/** One that has never run is taken to run one job; one that has run tells which of its jobs are active. */
function countCronJob(spec: Fields, status: Fields): number {
  if (flagAt(spec, 'suspend') === true) return 0
  const hasRun = has(status, 'lastScheduleTime') || has(status, 'active')
  if (hasRun && itemsAt(status, 'active').length === 0) return 0
  return Math.min(1, countJobSpec(mapAt(mapAt(spec, 'jobTemplate'), 'spec')))
}

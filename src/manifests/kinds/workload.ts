/** Workloads: Deployment, ReplicaSet, StatefulSet, DaemonSet, Job and CronJob, as far as the pods they imply go. */
import type { Labels, Meta } from '#model/meta'
import { type LabelSelector, matchesSelector } from '#model/selector'
import type { WorkloadKind } from '#model/workload'
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
import { selectorAt } from './label-selector'
import { labelsAt } from './meta'
import { type PodSpec, parsePodSpec } from './pod'
import type { Writable } from './writable'

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
  /** An API server keeps one of every object, and adds it to none that is only written down. */
  readonly hasStatus: boolean
}

/** More than any cluster holds is told where pods are implied. */
const counts: Bounds = { from: 0, to: Number.MAX_VALUE, noun: 'a whole number of 0 or more' }

export function parseWorkload(root: Fields, meta: Meta, kind: WorkloadKind): Workload {
  const spec = mapAt(root, 'spec')
  const status = mapAt(root, 'status')
  const jobSpec = kind === 'CronJob' ? mapAt(mapAt(spec, 'jobTemplate'), 'spec') : spec
  const template = parseTemplate(mapAt(jobSpec, 'template'))
  const told = { spec, status, jobSpec }
  const count = countPods(told, kind)
  const workload: Writable<Workload> = {
    kind,
    meta,
    count: hasTemplate(jobSpec) ? count : 0,
    template,
    firstOrdinal: countAt(mapAt(spec, 'ordinals'), 'start', 0),
    isIndexed: nameAt(jobSpec, 'completionMode') === 'Indexed',
    hasStatus: has(root, 'status'),
  }
  const selector = selectorAt(jobSpec, 'selector')
  const readyCount = countReady(status, kind)
  const serviceName = plainNameAt(spec, 'serviceName')
  if (selector !== undefined) workload.selector = selector
  if (readyCount !== undefined) workload.readyCount = readyCount
  if (serviceName !== undefined) workload.serviceName = serviceName
  if (hasTemplate(jobSpec)) checkSelector(spec, workload)
  else reportNoTemplate(jobSpec)
  return workload
}

function hasTemplate(jobSpec: Fields): boolean {
  return has(mapAt(jobSpec, 'template'), 'spec')
}

function reportNoTemplate(jobSpec: Fields): void {
  const key = has(jobSpec, 'template') ? 'template.spec' : 'template'
  report(mapAt(jobSpec, 'template'), has(jobSpec, 'template') ? 'spec' : '', {
    code: 'workload.no-template',
    message: `there is no ${key}, so no pods are implied`,
    hint: 'write the template of the pods',
  })
}

/** A number below zero counts as none, and what is no whole number as `otherwise`. */
function countAt(fields: Fields, key: string, otherwise: number): number {
  const value = fields.values[key]
  const isBelow = typeof value === 'number' && value < 0
  return numberAt(fields, key, counts, `it counts as ${isBelow ? 0 : otherwise}`) ?? (isBelow ? 0 : otherwise)
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

/** `jobSpec` is the spec that holds the template. */
type Told = { readonly spec: Fields; readonly status: Fields; readonly jobSpec: Fields }

function countPods({ spec, status, jobSpec }: Told, kind: WorkloadKind): number | 'each-node' {
  if (kind === 'Job') return countJob(spec, status)
  if (kind === 'CronJob') return countCronJob({ spec, status, jobSpec })
  if (kind === 'DaemonSet') {
    return isSeen(status) && countAt(status, 'currentNumberScheduled', 0) === 0 ? 0 : 'each-node'
  }
  return isSeen(status) ? countAt(status, 'replicas', 0) : countAt(spec, 'replicas', 1)
}

/** The pod of a CronJob is between two runs unless the status says that it runs. */
function countReady(status: Fields, kind: WorkloadKind): number | undefined {
  if (kind === 'CronJob') return itemsAt(status, 'active').length > 0 ? undefined : 0
  if (kind === 'Job' || !isSeen(status)) return undefined
  return countAt(status, kind === 'DaemonSet' ? 'numberReady' : 'readyReplicas', 0)
}

function countJob(spec: Fields, status: Fields): number {
  if (flagAt(spec, 'suspend', 'it counts as false') === true) return 0
  if (conditionAt(status, 'Complete') === true || conditionAt(status, 'Failed') === true) return 0
  return has(status, 'startTime') ? countAt(status, 'active', 0) : countJobSpec(spec)
}

function countJobSpec(spec: Fields): number {
  const parallelism = countAt(spec, 'parallelism', 1)
  return Math.min(parallelism, countAt(spec, 'completions', parallelism))
}

/** One that has never run is taken to run one job; one that has run tells which of its jobs are active. */
function countCronJob({ spec, status, jobSpec }: Told): number {
  if (flagAt(spec, 'suspend', 'it counts as false') === true) return 0
  const hasRun = has(status, 'lastScheduleTime') || has(status, 'active')
  if (hasRun && itemsAt(status, 'active').length === 0) return 0
  return Math.min(1, countJobSpec(jobSpec))
}

/** A workload, as far as others than the one who implies its pods need it: what it is, and what its pods are like. */
import type { Labels, Meta } from './meta'
import type { Pod } from './pod'
import type { LabelSelector } from './selector'

export type WorkloadKind = 'Deployment' | 'ReplicaSet' | 'StatefulSet' | 'DaemonSet' | 'Job' | 'CronJob'

export type WorkloadTemplate = {
  readonly labels: Labels
  readonly spec: Pick<Pod, 'containers' | 'initContainers' | 'hostNetwork' | 'serviceAccountName'>
}

export type Workload = {
  readonly kind: WorkloadKind
  readonly meta: Meta
  readonly selector?: LabelSelector
  readonly template: WorkloadTemplate
}

/** The key that workloads are indexed by: kinds share names. */
export function workloadKey(kind: string, meta: { readonly namespace: string; readonly name: string }): string {
  return `${kind} ${meta.namespace}/${meta.name}`
}

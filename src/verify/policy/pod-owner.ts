/** The workload that a pod belongs to: the highest of its owners that the input holds, else the owner that the pod names. */
import type { Cluster } from '#model/cluster'
import type { Meta, OwnerReference } from '#model/meta'
import type { Pod } from '#model/pod'
import { workloadKey } from '#model/workload'

export type PodOwner = { readonly kind: string; readonly namespace: string; readonly name: string }

const hashLabel = 'pod-template-hash'

/** A ReplicaSet stands for its Deployment only where the input has the Deployment; a static pod stands for itself. */
export function ownerOf(cluster: Cluster, pod: Pod): PodOwner {
  const { namespace, name } = pod.meta
  const owner = controllerOf(pod.meta)
  if (owner === undefined || owner.kind === 'Node') return { kind: 'Pod', namespace, name }
  const above = aboveOf(cluster, pod.meta, owner)
  const isRead = above !== undefined && cluster.workloads.has(workloadKey(above.kind, { namespace, name: above.name }))
  const { kind, name: ownerName } = isRead ? above : owner
  return { kind, namespace, name: ownerName }
}

function controllerOf({ ownerReferences }: Meta): OwnerReference | undefined {
  return ownerReferences.find(({ controller }) => controller === true) ?? ownerReferences[0]
}

/**
 * The name of a ReplicaSet is its Deployment's and the template's hash, and that of a Job its CronJob's and the time in
 * minutes, so that one the input lacks still tells what is above it.
 */
function aboveOf(cluster: Cluster, meta: Meta, owner: OwnerReference): Omit<PodOwner, 'namespace'> | undefined {
  const read = cluster.workloads.get(workloadKey(owner.kind, { namespace: meta.namespace, name: owner.name }))
  const told = read === undefined ? undefined : controllerOf(read.meta)
  if (told !== undefined) return told
  const cronJob = owner.kind === 'Job' ? /^(.+)-\d+$/.exec(owner.name)?.[1] : undefined
  if (cronJob !== undefined) return { kind: 'CronJob', name: cronJob }
  const suffix = `-${meta.labels[hashLabel] ?? ''}`
  if (owner.kind !== 'ReplicaSet' || suffix.length === 1 || !owner.name.endsWith(suffix)) return undefined
  return { kind: 'Deployment', name: owner.name.slice(0, -suffix.length) }
}

/** What controllers write on each pod of their own accord. */
const controllerLabels: ReadonlySet<string> = new Set([
  hashLabel,
  'controller-revision-hash',
  'pod-template-generation',
  'statefulset.kubernetes.io/pod-name',
  'apps.kubernetes.io/pod-index',
  'controller-uid',
  'job-name',
  'batch.kubernetes.io/controller-uid',
  'batch.kubernetes.io/job-name',
  'batch.kubernetes.io/job-completion-index',
])

/** The labels that somebody gave the pod, in one text: equal texts for pods that agree. */
export function givenLabels({ meta }: Pod): string {
  const given = Object.entries(meta.labels).filter(([key]) => !controllerLabels.has(key))
  return JSON.stringify(given.sort(([a], [b]) => (a < b ? -1 : 1)))
}

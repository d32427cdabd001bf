/** Owners: the workload that a pod belongs to in the end, from what the pod alone says. */
import type { Labels, Workload } from './holder'

export type OwnerReference = { readonly kind: string; readonly name: string; readonly isController: boolean }

export type OwnedPod = {
  readonly owners: readonly OwnerReference[]
  readonly labels: Labels
  /** Owners of the owner, when the sender looked them up; they end the guessing. */
  readonly ownersOfOwner?: readonly OwnerReference[]
}

/**
 * ReplicaSet → Deployment, Job → CronJob, any other controller as it is, a bare pod null. Without the owner's own references, a
 * ReplicaSet is a Deployment's when its name ends in the pod's pod-template-hash, and a Job is a CronJob's when its name ends
 * in the minutes since the epoch that the CronJob controller writes (kubernetes 1.34, pkg/controller/cronjob/utils.go).
 */
export function ownerOf(pod: OwnedPod): Workload | null {
  const owner = pod.owners.find((one) => one.isController) ?? pod.owners[0]
  if (owner === undefined || owner.name === '') return null
  const above = pod.ownersOfOwner?.find((one) => one.isController) ?? pod.ownersOfOwner?.[0]
  if (above !== undefined) return { kind: above.kind, name: above.name }
  if (owner.kind === 'ReplicaSet') return deploymentOf(owner.name, pod.labels['pod-template-hash']) ?? plain(owner)
  if (owner.kind === 'Job') return cronJobOf(owner.name) ?? plain(owner)
  // A static pod is owned by its Node, which is where it runs and not what it is.
  return owner.kind === 'Node' ? null : plain(owner)
}

function deploymentOf(replicaSet: string, hash: string | undefined): Workload | undefined {
  const end = `-${hash}`
  if (hash === undefined || hash === '' || !replicaSet.endsWith(end) || replicaSet === end) return undefined
  return { kind: 'Deployment', name: replicaSet.slice(0, -end.length) }
}

/** Minutes since the epoch have eight digits from 1989 to 2160; before Kubernetes 1.21 they were seconds, ten digits. */
function cronJobOf(job: string): Workload | undefined {
  const match = /^(.+)-(?:[1-9]\d{7}|1\d{9})$/.exec(job)
  return match?.[1] === undefined ? undefined : { kind: 'CronJob', name: match[1] }
}

function plain({ kind, name }: OwnerReference): Workload {
  return { kind, name }
}

/** How controllers name, label and own the pods they make; random parts are a hash of the name instead. */

import { hashText, printHash } from '#manifests/hash-text'
import type { Workload } from '#manifests/kinds/workload'
import type { Labels, OwnerReference } from '#model/meta'

/** What one implied pod has beside its template. */
export type Naming = {
  readonly name: string
  readonly labels: Labels
  readonly owner: OwnerReference
  readonly hostname?: string
}

/** `isTaken` tells names of pods in the workload's namespace. */
export function nameImpliedPod(workload: Workload, index: number, isTaken: (name: string) => boolean): Naming {
  const { kind, meta } = workload
  switch (kind) {
    case 'Deployment': {
      const hash = printHash(hashText(`${meta.namespace}/${meta.name}`), 10)
      const set = `${meta.name}-${hash}`
      const labels = { 'pod-template-hash': hash }
      return { name: generateName(set, index, isTaken), labels, owner: owner('ReplicaSet', set) }
    }
    case 'ReplicaSet':
    case 'DaemonSet':
      return { name: generateName(meta.name, index, isTaken), labels: {}, owner: owner(kind, meta.name) }
    case 'StatefulSet':
      return nameOrdinal(workload, index)
    case 'Job':
      return nameJobPod({ workload, job: meta.name, index, isTaken })
    case 'CronJob': {
      // A job is named after the minute it was due; with no clock at hand, the name's hash stands for one.
      const minute = 20_000_000 + (hashText(`${meta.namespace}/${meta.name}`) % 10_000_000)
      return nameJobPod({ workload, job: `${meta.name}-${minute}`, index, isTaken })
    }
    default:
      return kind satisfies never
  }
}

function nameOrdinal({ meta, firstOrdinal }: Workload, index: number): Naming {
  const ordinal = firstOrdinal + index
  const name = `${meta.name}-${ordinal}`
  const labels = { 'statefulset.kubernetes.io/pod-name': name, 'apps.kubernetes.io/pod-index': String(ordinal) }
  return { name, labels, owner: owner('StatefulSet', meta.name), hostname: name }
}

type JobPod = {
  readonly workload: Workload
  readonly job: string
  readonly index: number
  readonly isTaken: (name: string) => boolean
}

function nameJobPod({ workload, job, index, isTaken }: JobPod): Naming {
  const labels = { 'batch.kubernetes.io/job-name': job, 'job-name': job }
  if (!workload.isIndexed) return { name: generateName(job, index, isTaken), labels, owner: owner('Job', job) }
  const indexed = { ...labels, 'batch.kubernetes.io/job-completion-index': String(index) }
  const hostname = `${job}-${index}`
  return { name: generateName(hostname, index, isTaken), labels: indexed, owner: owner('Job', job), hostname }
}

/** The API server cuts a generated name's base to 58 characters, then adds five. */
function generateName(base: string, index: number, isTaken: (name: string) => boolean): string {
  for (let attempt = 0; ; attempt++) {
    const name = `${`${base}-`.slice(0, 58)}${printHash(hashText(`${base} ${index} ${attempt}`), 5)}`
    if (!isTaken(name)) return name
  }
}

function owner(kind: string, name: string): OwnerReference {
  return { kind, name, controller: true }
}

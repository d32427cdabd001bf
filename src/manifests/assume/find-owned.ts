/** Which workloads have pods of their own in the input, by owner reference, or by name and labels where that is missing. */

import type { Draft } from '#manifests/draft'
import type { Workload } from '#manifests/kinds/workload'
import type { OwnerReference } from '#model/meta'
import type { Pod } from '#model/pod'
import { type LabelSelector, matchesSelector } from '#model/selector'
import { workloadKey } from '#model/workload'

const hashLabel = 'pod-template-hash'

/** Keys of `Draft.workloads` (`Kind namespace/name`). */
export function findWorkloadsWithPods(draft: Draft): ReadonlySet<string> {
  const found = new Set<string>()
  const orphans: Pod[] = []
  for (const pod of draft.pods.values()) {
    const owner = controllerOf(pod.meta.ownerReferences)
    if (owner !== undefined) addOwner(found, pod, owner)
    else if (isRecorded(draft, pod)) orphans.push(pod)
  }
  addOrphansOwners(draft, orphans, found)
  addOwnersOfWorkloads(draft, found)
  return found
}

/** A pod that someone wrote, without a status, stands for itself: no controller has made it. */
function isRecorded(draft: Draft, pod: Pod): boolean {
  return !draft.openPods.get(`${pod.meta.namespace}/${pod.meta.name}`)?.isNew
}

function controllerOf(owners: readonly OwnerReference[]): OwnerReference | undefined {
  return owners.find(({ controller }) => controller === true) ?? owners[0]
}

/** The ReplicaSet's name is the Deployment's and the template's hash, so a missing ReplicaSet still tells its Deployment. */
function addOwner(found: Set<string>, { meta }: Pod, { kind, name }: OwnerReference): void {
  const { namespace } = meta
  found.add(workloadKey(kind, { namespace, name }))
  const suffix = `-${meta.labels[hashLabel] ?? ''}`
  if (kind === 'ReplicaSet' && suffix.length > 1 && name.endsWith(suffix)) {
    found.add(workloadKey('Deployment', { namespace, name: name.slice(0, -suffix.length) }))
  }
}

function addOrphansOwners(draft: Draft, orphans: readonly Pod[], found: Set<string>): void {
  if (orphans.length === 0) return
  const index = indexByLabel(orphans)
  for (const [key, workload] of draft.workloads) {
    if (found.has(key)) continue
    const { namespace, name } = workload.meta
    const selector = selectorOf(workload)
    const [pair] = Object.entries(selector.matchLabels)
    if (pair === undefined) continue
    const candidates = index.get(`${namespace}\n${pair[0]}=${pair[1]}`) ?? []
    const isOwn = (pod: Pod): boolean =>
      pod.meta.name.startsWith(`${name}-`) && matchesSelector(selector, pod.meta.labels)
    if (candidates.some(isOwn)) found.add(key)
  }
}

/** Jobs are mostly written without a selector; their template's labels serve as one. */
function selectorOf({ selector, template }: Workload): LabelSelector {
  return selector ?? { matchLabels: template.labels, matchExpressions: [] }
}

function indexByLabel(pods: readonly Pod[]): ReadonlyMap<string, readonly Pod[]> {
  const index = new Map<string, Pod[]>()
  for (const pod of pods) {
    for (const [label, value] of Object.entries(pod.meta.labels)) {
      const key = `${pod.meta.namespace}\n${label}=${value}`
      const known = index.get(key)
      if (known === undefined) index.set(key, [pod])
      else known.push(pod)
    }
  }
  return index
}

/** A ReplicaSet or Job in the input speaks for the Deployment or CronJob that owns it. */
function addOwnersOfWorkloads(draft: Draft, found: Set<string>): void {
  for (const { kind, meta } of draft.workloads.values()) {
    const owner = controllerOf(meta.ownerReferences)
    const { namespace } = meta
    if (owner !== undefined) found.add(workloadKey(owner.kind, { namespace, name: owner.name }))
    else if (kind === 'ReplicaSet') {
      const suffix = `-${meta.labels[hashLabel] ?? ''}`
      const isNamed = suffix.length > 1 && meta.name.endsWith(suffix)
      if (isNamed) found.add(workloadKey('Deployment', { namespace, name: meta.name.slice(0, -suffix.length) }))
    }
  }
}

/** Pods by namespace and label, so that a selector only looks at the pods of its rarest label. */
import { compareText } from '#base/text'
import { type Labels, selects } from '#model/meta'
import type { Pod } from '#model/pod'
import type { Service } from '#model/service'

type NamespacePods = { readonly byLabel: Map<string, Map<string, Pod[]>> }

export type PodIndex = ReadonlyMap<string, NamespacePods>

/** Indexes the pods that may be endpoints, by the label keys that some selector of their namespace asks for. */
export function indexPods(pods: Iterable<Pod>, services: Iterable<Service>): PodIndex {
  const index = new Map<string, NamespacePods>()
  for (const { meta, selector } of services) {
    for (const key in selector) {
      const entry = index.get(meta.namespace) ?? { byLabel: new Map() }
      index.set(meta.namespace, entry)
      if (!entry.byLabel.has(key)) entry.byLabel.set(key, new Map())
    }
  }
  for (const pod of pods) {
    const entry = index.get(pod.meta.namespace)
    if (entry === undefined || !mayBeEndpoint(pod)) continue
    for (const [key, byValue] of entry.byLabel) addPod(byValue, pod.meta.labels[key], pod)
  }
  return index
}

/** The pods of a namespace that a selector picks, by name. */
export function podsOf(index: PodIndex, namespace: string, selector: Labels): readonly Pod[] {
  const entry = index.get(namespace)
  if (entry === undefined) return []
  let rarest: readonly Pod[] | undefined
  let asked = 0
  for (const key in selector) {
    const pods = entry.byLabel.get(key)?.get(selector[key] ?? '')
    if (pods === undefined) return []
    if (rarest === undefined || pods.length < rarest.length) rarest = pods
    asked++
  }
  if (rarest === undefined) return []
  return byName(asked === 1 ? rarest : rarest.filter((pod) => selects(selector, pod.meta.labels)))
}

/**
 * endpointslice/util/controller_utils.go (1.34): a finished pod never counts, nor one without an address;
 * a terminating pod counts until it is gone.
 */
function mayBeEndpoint(pod: Pod): boolean {
  return pod.podIPs.length > 0 && pod.phase !== 'Succeeded' && pod.phase !== 'Failed'
}

function addPod(byValue: Map<string, Pod[]>, value: string | undefined, pod: Pod): void {
  if (value === undefined) return
  const pods = byValue.get(value)
  if (pods === undefined) byValue.set(value, [pod])
  else pods.push(pod)
}

/** The controller's own order is random; by name, one input has one answer. */
function byName(pods: readonly Pod[]): readonly Pod[] {
  const isSorted = pods.every((pod, at) => at === 0 || (pods[at - 1]?.meta.name ?? '') <= pod.meta.name)
  return isSorted ? pods : pods.toSorted((a, b) => compareText(a.meta.name, b.meta.name))
}

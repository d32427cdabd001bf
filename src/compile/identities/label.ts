/** Cilium's labels: a source, a key and a value, and sets of them. Mirrors pkg/labels, Cilium 1.18. */
import { compareText } from '#base/text'

export type Label = { readonly source: string; readonly key: string; readonly value: string }

/** Labels by key, as a selector without source asks for any source; sorted, so that equal sets print equal. */
export type LabelSet = { readonly labels: readonly Label[]; readonly byKey: ReadonlyMap<string, readonly Label[]> }

export const namespaceKey = 'io.kubernetes.pod.namespace'
export const namespaceLabelPrefix = 'io.cilium.k8s.namespace.labels.'
export const serviceAccountKey = 'io.cilium.k8s.policy.serviceaccount'
export const clusterKey = 'io.cilium.k8s.policy.cluster'

export const anySource = 'any'

const sources = /^(any|k8s|reserved|cidr|cidrgroup|node|fqdn|container|mesos|unspec|ingress|cni|api):/

/** `k8s:app=web`; a text without source counts as `otherwise`. */
export function parseLabel(text: string, otherwise = 'unspec'): Label {
  const { source, key: rest } = splitKey(text, otherwise)
  const equals = rest.indexOf('=')
  if (equals < 0) return { source, key: rest, value: '' }
  return { source, key: rest.slice(0, equals), value: rest.slice(equals + 1) }
}

/** Splits `k8s:app`. Keys of Kubernetes hold no colon, so what stands before one is the source. */
export function splitKey(text: string, otherwise: string): { readonly source: string; readonly key: string } {
  const match = sources.exec(text)
  if (match?.[1] === undefined) return { source: otherwise, key: text }
  return { source: match[1], key: text.slice(match[0].length) }
}

export function printLabel({ source, key, value }: Label): string {
  return value === '' ? `${source}:${key}` : `${source}:${key}=${value}`
}

export function labelSet(labels: readonly Label[]): LabelSet {
  const sorted = [...labels].sort((a, b) => compareText(printLabel(a), printLabel(b)))
  const byKey = new Map<string, Label[]>()
  for (const label of sorted) {
    const same = byKey.get(label.key)
    if (same === undefined) byKey.set(label.key, [label])
    else same.push(label)
  }
  return { labels: sorted, byKey }
}

export function printLabelSet(set: LabelSet): string {
  return set.labels.map(printLabel).join(';')
}

export function reservedLabel(name: string): Label {
  return { source: 'reserved', key: name, value: '' }
}

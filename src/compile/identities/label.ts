/** Cilium's labels: a source, a key and a value, and sets of them. Mirrors pkg/labels, Cilium 1.18. */
import { compareText } from '#base/text'

export type Label = { readonly source: string; readonly key: string; readonly value: string }

/** Labels by key, as a selector without source asks for any source; sorted, so that equal sets print equal. */
export type LabelSet = {
  readonly labels: readonly Label[]
  readonly byKey: ReadonlyMap<string, readonly Label[]>
  /** All of them, printed. */
  readonly text: string
}

export const namespaceKey = 'io.kubernetes.pod.namespace'
export { namespaceLabelPrefix } from '#model/cilium-policy'
export const serviceAccountKey = 'io.cilium.k8s.policy.serviceaccount'
export const clusterKey = 'io.cilium.k8s.policy.cluster'

export const anySource = 'any'

const reservedPrefix = 'reserved.'

/** `k8s:app=web`; a text without source counts as `otherwise`. */
export function parseLabel(text: string, otherwise = 'unspec'): Label {
  const { source, key: rest } = splitKey(text, otherwise)
  const equals = rest.indexOf('=')
  if (equals < 0) return { source, key: rest, value: '' }
  return { source, key: rest.slice(0, equals), value: rest.slice(equals + 1) }
}

/**
 * Splits `k8s:app`: whatever stands before a colon is the source, known or not. `$host` and `reserved.host` are short for
 * `reserved:host`, but `k8s.app` is a key as it stands. Mirrors parseSource.
 */
export function splitKey(text: string, otherwise: string): { readonly source: string; readonly key: string } {
  if (text.startsWith('$')) return { source: 'reserved', key: text.slice(1) }
  const colon = text.indexOf(':')
  if (colon >= 0) return { source: text.slice(0, colon) || otherwise, key: text.slice(colon + 1) }
  if (text.startsWith(reservedPrefix)) return { source: 'reserved', key: text.slice(reservedPrefix.length) }
  return { source: otherwise, key: text }
}

export function printLabel({ source, key, value }: Label): string {
  return value === '' ? `${source}:${key}` : `${source}:${key}=${value}`
}

export function labelSet(labels: readonly Label[]): LabelSet {
  const printed = labels
    .map((label) => ({ label, text: printLabel(label) }))
    .sort((a, b) => compareText(a.text, b.text))
  const sorted = printed.map(({ label }) => label)
  const byKey = new Map<string, Label[]>()
  for (const label of sorted) {
    const same = byKey.get(label.key)
    if (same === undefined) byKey.set(label.key, [label])
    else same.push(label)
  }
  return { labels: sorted, byKey, text: printed.map(({ text }) => text).join(';') }
}

export function printLabelSet(set: LabelSet): string {
  return set.text
}

export function reservedLabel(name: string): Label {
  return { source: 'reserved', key: name, value: '' }
}

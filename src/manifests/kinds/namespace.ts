/** Namespaces, with the label that the API server puts on each. */
import type { Namespace } from '#model/cluster'
import type { Meta } from '#model/meta'

/** Its value is the name of the namespace, in every cluster since 1.22. */
export const namespaceNameLabel = 'kubernetes.io/metadata.name'

export function parseNamespace(meta: Meta): Namespace {
  if (meta.labels[namespaceNameLabel] === meta.name) return { meta }
  return { meta: { ...meta, labels: { ...meta.labels, [namespaceNameLabel]: meta.name } } }
}

/** Namespaces, with the label that the API server puts on each. */
import type { Namespace } from '#model/cluster'
import type { Meta } from '#model/meta'

const nameLabel = 'kubernetes.io/metadata.name'

export function parseNamespace(meta: Meta): Namespace {
  if (meta.labels[nameLabel] === meta.name) return { meta }
  return { meta: { ...meta, labels: { ...meta.labels, [nameLabel]: meta.name } } }
}

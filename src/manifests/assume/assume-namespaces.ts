/** Namespaces that objects stand in but the input does not hold: marked in the model; they are told where policies ask for their labels. */
import type { Origin } from '#base/finding'
import { compareText } from '#base/text'
import type { Draft } from '#manifests/draft'
import { parseNamespace } from '#manifests/kinds/namespace'
import type { Meta } from '#model/meta'

export function assumeNamespaces(draft: Draft): void {
  const missing = new Map<string, Origin>()
  const { services, pods, slices, endpoints, configMaps, workloads, networkPolicies, ciliumPolicies } = draft
  for (const map of [services, pods, slices, endpoints, configMaps, workloads, networkPolicies, ciliumPolicies]) {
    for (const { meta } of map.values()) {
      if (meta.namespace !== '' && !draft.namespaces.has(meta.namespace) && !missing.has(meta.namespace))
        missing.set(meta.namespace, meta.origin)
    }
  }
  for (const name of [...missing.keys()].sort(compareText)) {
    draft.namespaces.set(name, parseNamespace(assumedMeta(name, missing.get(name))))
  }
}

function assumedMeta(name: string, origin: Origin = { file: 'assumed' }): Meta {
  return {
    kind: 'Namespace',
    name,
    namespace: '',
    labels: {},
    annotations: {},
    ownerReferences: [],
    origin,
    assumed: ['*'],
  }
}

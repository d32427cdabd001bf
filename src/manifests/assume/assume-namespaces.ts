/** Namespaces that objects stand in but the input does not hold. */
import type { Origin } from '#base/finding'
import { compareText, countOf, listOf } from '#base/text'
import type { Draft } from '#manifests/draft'
import { manifestFinding } from '#manifests/findings'
import { parseNamespace } from '#manifests/kinds/namespace'
import type { Meta } from '#model/meta'

export function assumeNamespaces(draft: Draft): void {
  const missing = new Map<string, Origin>()
  const { services, pods, slices, endpoints, configMaps, workloads } = draft
  for (const map of [services, pods, slices, endpoints, configMaps, workloads]) {
    for (const { meta } of map.values()) {
      if (!draft.namespaces.has(meta.namespace) && !missing.has(meta.namespace))
        missing.set(meta.namespace, meta.origin)
    }
  }
  if (missing.size === 0) return
  const names = [...missing.keys()].sort(compareText)
  for (const name of names) draft.namespaces.set(name, parseNamespace(assumedMeta(name, missing.get(name))))
  const named = `${countOf(names.length, 'namespace')} named by objects (${listOf(names, 5)})`
  draft.findings.push(
    manifestFinding('cluster.assumed-namespaces', {
      message: `${named} ${names.length === 1 ? 'is' : 'are'} not in the input, and assumed to have no labels of their own`,
      hint: 'add the output of kubectl get namespaces -o yaml',
    }),
  )
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

/** What a person may have meant by a name that is not there, or that leaves the cluster. */
import type { Finding } from '#base/finding'
import { listOf } from '#base/text'
import type { Cluster } from '#model/cluster'
import { labelsOf } from './domain-name'
import { dnsFinding } from './findings'
import type { ClusterResolution } from './resolve-in-cluster'

export type Suggestion = { readonly hints: readonly string[]; readonly findings: readonly Finding[] }

export function suggestNames(resolution: ClusterResolution, cluster: Cluster): Suggestion {
  const { lookup, outcome, found, asks } = resolution
  const labels = labelsOf(lookup.name)
  if (asks === 'outside') return { hints: [], findings: [] }
  if (outcome === 'not-found' && labels.length === 1)
    return { hints: suggestNamespaces(labels[0] ?? '', cluster), findings: [] }
  const isOutside = outcome === 'forwarded' && found !== undefined && labelsOf(found).join('.') === labels.join('.')
  return { hints: [], findings: isOutside ? mistakenService(labels, cluster) : [] }
}

/** True for `web.shop.` and `web.shop.svc.` when there is such a Service. */
export function isServiceName(name: string, { services }: Cluster): boolean {
  const [service = '', namespace = '', branch, ...rest] = labelsOf(name)
  return (branch === undefined || branch === 'svc') && rest.length === 0 && services.has(`${namespace}/${service}`)
}

function suggestNamespaces(name: string, { services }: Cluster): readonly string[] {
  const places = [...services.values()].filter(({ meta }) => meta.name === name).map(({ meta }) => meta.namespace)
  if (places.length === 0) return []
  const noun = places.length === 1 ? 'namespace' : 'namespaces'
  return [`a Service ${name} is in ${noun} ${listOf(places, 5)}: ask for ${name}.${places[0]}`]
}

/** `web.shop` with a namespace shop is meant for the cluster, whoever else has such a name. */
function mistakenService(labels: readonly string[], { namespaces, services }: Cluster): readonly Finding[] {
  const [name = '', namespace = '', branch] = labels
  const isShort = labels.length === 2 || (labels.length === 3 && branch === 'svc')
  if (!isShort || !namespaces.has(namespace) || services.has(`${namespace}/${name}`)) return []
  const message = `namespace ${namespace} has no Service ${name}, so ${labels.join('.')} is asked outside the cluster`
  return [dnsFinding('dns.no-such-service', { message, object: { kind: 'Namespace', name: namespace } })]
}

/** What a person may have meant by a name that is not there, or that leaves the cluster. */
import type { Finding } from '#base/finding'
import { listOf } from '#base/text'
import type { Cluster } from '#model/cluster'
import { foldName, labelsOf } from './domain-name'
import { isNear } from './explain-absence'
import { dnsFinding } from './findings'
import type { ClusterResolution } from './resolve-in-cluster'

export type Suggestion = { readonly hints: readonly string[]; readonly findings: readonly Finding[] }

export function suggestNames(resolution: ClusterResolution, cluster: Cluster): Suggestion {
  const { lookup, outcome, found, asks } = resolution
  const labels = labelsOf(foldName(lookup.name))
  if (asks === 'outside' || asks === 'outside-first' || asks === 'nobody') return { hints: [], findings: [] }
  if (outcome === 'not-found' && labels.length === 1)
    return { hints: suggestNamespaces(labels[0] ?? '', resolution, cluster), findings: [] }
  const isOutside =
    outcome === 'forwarded' && found !== undefined && labelsOf(foldName(found)).join('.') === labels.join('.')
  const message = isOutside ? explainMistake(labels, resolution, cluster) : undefined
  if (message === undefined) return { hints: [], findings: [] }
  return {
    hints: [],
    findings: [
      dnsFinding('dns.no-such-service', { message: `${message}, so ${lookup.name} is asked outside the cluster` }),
    ],
  }
}

/** True for `web.shop.` and `web.shop.svc.` when there is such a Service, and for up to two labels before: `db-0.db.shop.`. */
export function isServiceName(name: string, { services }: Cluster): boolean {
  const labels = labelsOf(name)
  const [namespace = '', service = '', ...below] = labels
    .slice(0, labels.at(-1) === 'svc' ? -1 : undefined)
    .toReversed()
  return below.length <= 2 && services.has(`${namespace}/${service}`)
}

/** A name in a namespace that was asked already is not asked better with the namespace written out. */
function suggestNamespaces(name: string, { attempts }: ClusterResolution, { services }: Cluster): readonly string[] {
  const wasAsked = (namespace: string): boolean =>
    attempts.some((attempt) => foldName(attempt.name).startsWith(`${name}.${namespace}.svc.`))
  const places = [...services.values()]
    .filter(({ meta }) => meta.name === name && !wasAsked(meta.namespace))
    .map(({ meta }) => meta.namespace)
  if (places.length === 0) return []
  const noun = places.length === 1 ? 'namespace' : 'namespaces'
  return [`a Service ${name} is in ${noun} ${listOf(places, 5)}: ask for ${name}.${places[0]}`]
}

/** What of the cluster a name that leaves it was meant for, whoever else has such a name. */
function explainMistake(
  labels: readonly string[],
  { attempts, lookup }: ClusterResolution,
  { namespaces, services }: Cluster,
): string | undefined {
  const met = attempts.find(({ because }) => because.startsWith('Service ') || because.startsWith('endpoint '))
  if (met !== undefined) return met.because
  const [name = '', namespace = '', branch] = labels
  if (branch === 'svc' && services.has(`${namespace}/${name}`))
    return `the cluster domain of Service ${namespace}/${name} is ${lookup.clusterDomain}`
  if (labels.length > 2 && !(labels.length === 3 && branch === 'svc')) return undefined
  if (namespaces.has(namespace)) return `namespace ${namespace} has no Service ${name}`
  const near = [...namespaces.keys()].find((other) => isNear(other, namespace) && services.has(`${other}/${name}`))
  return near === undefined ? undefined : `there is no namespace ${namespace} (Service ${name} is in ${near})`
}

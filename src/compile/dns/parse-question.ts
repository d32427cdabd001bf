/** What a name below the cluster's zone asks for (CoreDNS 1.14, plugin/kubernetes/parse.go). */
import { labelsOf } from './domain-name'

export type ParsedQuestion =
  /** The zone itself, `svc` or `pod` in it: these exist and hold nothing. */
  | { readonly kind: 'apex' }
  /** The label that should say `svc` or `pod` says something else, or there are too many labels. */
  | { readonly kind: 'invalid'; readonly because: string }
  | { readonly kind: 'namespace'; readonly branch: Branch; readonly namespace: string }
  | ({ readonly kind: 'object' } & ObjectQuestion)

export type Branch = 'svc' | 'pod'

export type ObjectQuestion = {
  readonly branch: Branch
  readonly namespace: string
  readonly name: string
  readonly endpoint?: string
  readonly port?: string
  readonly protocol?: string
  /** A topology zone, with the zonal option; `prefers` falls back to all endpoints when the zone has none. */
  readonly topology?: { readonly zone: string; readonly prefers: boolean }
}

/** Name and zone are folded, and the name is within the zone. */
export function parseQuestion(name: string, zone: string, isZonal: boolean): ParsedQuestion {
  const labels = labelsOf(zone === '.' ? name : name.slice(0, name.length - zone.length)).toReversed()
  const [branch, namespace, object, ...rest] = labels
  if (branch === undefined) return { kind: 'apex' }
  if (branch !== 'svc' && branch !== 'pod') {
    return { kind: 'invalid', because: `"${branch}" is neither svc nor pod, and ${zone} has nothing else` }
  }
  if (namespace === undefined) return { kind: 'apex' }
  if (object === undefined) return { kind: 'namespace', branch, namespace }
  const base = { kind: 'object', branch, namespace, name: object } as const
  const [first, second, ...more] = rest
  if (first === undefined) return base
  if (second === undefined) return { ...base, endpoint: first }
  if (more.length === 0) return { ...base, protocol: withoutUnderscore(first), port: withoutUnderscore(second) }
  const isTopology = isZonal && branch === 'svc' && first === '_zone' && (second === 'pin' || second === 'prefer')
  if (!isTopology) {
    return {
      kind: 'invalid',
      because: `a Service's name has at most two labels before it, and here are ${rest.length}`,
    }
  }
  return { ...base, topology: { zone: more.toReversed().join('.'), prefers: second === 'prefer' } }
}

/** The underscores are customary and may be left out. */
function withoutUnderscore(label: string): string {
  return label.startsWith('_') ? label.slice(1) : label
}

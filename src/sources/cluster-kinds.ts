/** The kinds that are read from a live cluster, as its API names them: groups, resource, and which objects of the kind. */
import { kinds } from '#manifests/kinds'
import { trafficGroup } from '#model/traffic-policy'

export type ClusterKind = {
  readonly kind: string
  /** The present one first; the core group is empty. */
  readonly groups: readonly string[]
  /** The name in paths and in RBAC rules. */
  readonly resource: string
  readonly isNamespaced: boolean
  /** Each group has objects of its own; else they are the same objects under two names. */
  readonly hasOwnObjects: boolean
  /** Only objects with these names, where others are no matter of ours. */
  readonly names?: readonly ObjectName[]
}

/** `namespace` is absent where the object may be in any. */
export type ObjectName = { readonly name: string; readonly namespace?: string }

/** ConfigMaps may hold anything: these five are read, and no other. */
const configMaps: readonly ObjectName[] = [
  { name: 'kube-proxy', namespace: 'kube-system' },
  { name: 'coredns', namespace: 'kube-system' },
  { name: 'coredns-custom', namespace: 'kube-system' },
  { name: 'cilium-config' },
  { name: 'ip-masq-agent' },
]

export const clusterKinds: ReadonlyMap<string, ClusterKind> = new Map(
  [...kinds].map(([kind, { groups, isNamespaced }]): [string, ClusterKind] => [
    kind,
    {
      kind,
      groups,
      resource: resourceOf(kind),
      isNamespaced,
      hasOwnObjects: groups.includes(trafficGroup),
      ...(kind === 'ConfigMap' && { names: configMaps }),
    },
  ]),
)

/** By kind, or `Kind/name` for those objects of it alone. Nothing for a kind that is not read. */
export function kindsNamed(wanted: readonly string[]): readonly ClusterKind[] {
  const names = [...new Set(wanted.map((one) => one.split('/')[0] ?? ''))]
  return names.flatMap((name): readonly ClusterKind[] => {
    const kind = clusterKinds.get(name)
    if (kind?.names === undefined) return kind === undefined ? [] : [kind]
    return [{ ...kind, names: kind.names.filter((one) => wanted.includes(`${name}/${one.name}`)) }]
  })
}

/** apimachinery, pkg/api/meta/restmapper.go UnsafeGuessKindToResource; Endpoints is the exception there, too. */
function resourceOf(kind: string): string {
  const word = kind.toLowerCase()
  if (word === 'endpoints') return word
  if (word.endsWith('s')) return `${word}es`
  return word.endsWith('y') ? `${word.slice(0, -1)}ies` : `${word}s`
}

/** As RBAC and kubectl write it: `pods`, `networkpolicies.networking.k8s.io`. */
export function printResource({ resource, groups }: ClusterKind): string {
  const [group = ''] = groups
  return group === '' ? resource : `${resource}.${group}`
}

/** `Pods`, `NetworkPolicies`, `Endpoints`. */
export function pluralOf({ kind }: ClusterKind): string {
  if (kind === 'Endpoints') return kind
  return kind.endsWith('y') ? `${kind.slice(0, -1)}ies` : `${kind}s`
}

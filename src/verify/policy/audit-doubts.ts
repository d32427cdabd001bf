/** Policies that select by labels which flows do not keep: of pods that are gone nobody can tell whether they hold. */
import { stableLabels } from '#flows/stable-labels'
import type { PolicyWorld } from '#trace/policy/policy-world'
import type { AuditParty } from './audit-parties'

/** `namespace` is empty for a policy of the whole cluster. */
export type Blind = { readonly namespace: string; readonly sentence: string }

export function blindPolicies({ cluster, semantics }: PolicyWorld): readonly Blind[] {
  const { networkPolicies, tierPolicies, ciliumPolicies } = cluster
  const own = semantics.name === 'cilium' ? ciliumPolicies : tierPolicies
  return [...networkPolicies.values(), ...own.values()].flatMap((policy) => {
    const [key] = [...selectorKeys(policy)].filter(isNotKept)
    if (key === undefined) return []
    const { kind, namespace, name } = policy.meta
    const sentence = `${kind} ${namespace === '' ? '' : `${namespace}/`}${name} selects by ${key}, which flows do not keep`
    return [{ namespace, sentence }]
  })
}

/** Keys of Cilium's selectors carry their source. */
function isNotKept(key: string): boolean {
  const plain = key.replace(/^(?:k8s|any)[:.]/, '')
  return Object.keys(stableLabels({ [plain]: '' })).length === 0 || plain === 'io.cilium.k8s.policy.serviceaccount'
}

function* selectorKeys(value: unknown): Generator<string> {
  if (Array.isArray(value)) for (const item of value) yield* selectorKeys(item)
  else if (typeof value === 'object' && value !== null) yield* keysInObject(value)
}

function* keysInObject(value: object): Generator<string> {
  for (const [field, inner] of Object.entries(value)) {
    if (field === 'meta' || field === 'namespaceSelector') continue
    if (field === 'matchLabels' && typeof inner === 'object' && inner !== null) yield* Object.keys(inner)
    else if (field === 'matchExpressions' && Array.isArray(inner)) for (const { key } of inner) yield String(key)
    else yield* selectorKeys(inner)
  }
}

/** Only where the policy may hold for one of the two, and one of them is known by its kept labels alone. */
export function doubtOf(blind: readonly Blind[], source: AuditParty, target: AuditParty): string | undefined {
  const isPartial = (party: AuditParty): boolean => party.party.kind === 'pod' && !party.hasAllLabels
  if (!isPartial(source) && !isPartial(target)) return undefined
  const concerns = ({ namespace }: Blind): boolean =>
    namespace === '' || namespace === source.namespace || namespace === target.namespace
  return blind.find(concerns)?.sentence
}

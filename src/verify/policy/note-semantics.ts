/** Policies that the semantics asked for leave out. */
import type { Finding } from '#base/finding'
import { countOf } from '#base/text'
import type { Cluster } from '#model/cluster'
import { refOf } from '#model/meta'
import { lintFinding } from './findings'

export function noteSemantics({ ciliumPolicies }: Cluster, semantics: 'k8s' | 'cilium'): readonly Finding[] {
  const [first] = ciliumPolicies.values()
  if (semantics === 'cilium' || first === undefined) return []
  const count = countOf(ciliumPolicies.size, 'policy of Cilium does', 'policies of Cilium do')
  const source = { object: refOf(first.meta), origin: first.meta.origin }
  const message = `${count} not count, as Kubernetes’ semantics know nothing of ${ciliumPolicies.size === 1 ? 'it' : 'them'}`
  return [lintFinding('policy.other-semantics', source, { message, hint: 'add --semantics cilium' })]
}

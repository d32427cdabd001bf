/** Network policy: its place between the node's rules and the pod. */
import type { Layer } from './explanation'
import type { ServiceView } from './service-view'

const kinds = [
  'NetworkPolicy',
  'CiliumNetworkPolicy',
  'CiliumClusterwideNetworkPolicy',
  'AdminNetworkPolicy',
  'GlobalNetworkPolicy',
]

/** No policy is evaluated yet: that the input has some is all that is said. */
export function explainPolicy({ input }: ServiceView): Layer {
  const found = [...input.cluster.skippedKinds].filter(([kind]) => kinds.some((known) => kind.startsWith(known)))
  const counts = found.map(([kind, count]) => `${count} ${kind}`).join(', ')
  const fact =
    found.length === 0
      ? 'not evaluated; the input holds none'
      : `not evaluated, and the input holds ${counts}: one of them may drop what the layers above let through`
  return { layer: 'policy', status: 'skipped', facts: [fact], findings: [] }
}

/** Entities as selectors. Mirrors pkg/policy/api/entity.go, Cilium 1.16 to 1.19. */
import { ciliumEntities } from '#model/cilium-policy'
import { addRequirement, type EndpointSelector, wildcardSelector } from './endpoint-selector'
import { clusterKey } from './label'

/** Two of them the agent knows and the CRD refuses. */
export const entityNames = [...ciliumEntities, 'world-ipv4', 'world-ipv6'] as const
export type EntityName = (typeof entityNames)[number]

export function isEntity(text: string): text is EntityName {
  return (entityNames as readonly string[]).includes(text)
}

/** Any of the selectors may match. `none` names an identity that nobody has. */
export function entitySelectors(name: EntityName, clusterName: string): readonly EndpointSelector[] {
  if (name === 'all') return [wildcardSelector]
  if (name === 'world') return ['world', 'world-ipv4', 'world-ipv6'].map(reserved)
  if (name === 'cluster') return [...clusterParts.map(reserved), ofCluster(clusterName)]
  return [reserved(name)]
}

const clusterParts = ['host', 'remote-node', 'init', 'ingress', 'health', 'unmanaged', 'kube-apiserver']

function reserved(name: string): EndpointSelector {
  return addRequirement(wildcardSelector, { source: 'reserved', key: name, operator: 'In', values: [''] })
}

function ofCluster(name: string): EndpointSelector {
  return addRequirement(wildcardSelector, { source: 'k8s', key: clusterKey, operator: 'In', values: [name] })
}

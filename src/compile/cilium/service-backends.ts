/** Which endpoints of a Service port are backends, and in which state. Mirrors pkg/k8s/endpoints.go and pkg/loadbalancer, Cilium 1.16 to 1.19. */
import type { PlannedEndpoint, ServicePortPlan } from '#compile/services/service-plan'

export type BackendState = 'active' | 'terminating'

export type PortBackend = { readonly endpoint: PlannedEndpoint; readonly state: BackendState }

/** A terminating endpoint that still serves keeps its connections; one that is neither ready nor that is none. */
export function backendsOf(plan: ServicePortPlan, hasTopology: boolean): readonly PortBackend[] {
  const isHinted = hasTopology && plan.chosen.topologyMode === 'PreferSameZone'
  const endpoints = isHinted ? plan.chosen.cluster : plan.endpoints
  return endpoints.flatMap((endpoint): readonly PortBackend[] => {
    if (endpoint.isReady && !endpoint.isTerminating) return [{ endpoint, state: 'active' }]
    return endpoint.isTerminating && endpoint.isServing ? [{ endpoint, state: 'terminating' }] : []
  })
}

/** What slots name: the active ones, or where none is left those that end. */
export function slotsOf(backends: readonly PortBackend[], isLocalOnly: boolean): readonly PortBackend[] {
  const near = isLocalOnly ? backends.filter(({ endpoint }) => endpoint.isLocal) : backends
  const active = near.filter(({ state }) => state === 'active')
  return active.length > 0 ? active : near
}

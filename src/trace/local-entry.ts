/** Where a load balancer brings packets in for a Service whose traffic stays local. */
import type { EndpointSlice } from '#model/endpoint-slice'
import type { Service } from '#model/service'

/** It asks nodes for their health, which those with endpoints alone are in: the first of these by name. */
export function localEntry(
  service: Service,
  slices: readonly EndpointSlice[],
  nodeNames: readonly string[],
): string | undefined {
  if (service.externalTrafficPolicy !== 'Local') return undefined
  const { namespace, name } = service.meta
  const holders = new Set(
    slices
      .filter(({ meta }) => meta.namespace === namespace && meta.labels['kubernetes.io/service-name'] === name)
      .flatMap(({ endpoints }) => endpoints.flatMap(({ nodeName }) => nodeName ?? [])),
  )
  return nodeNames.find((node) => holders.has(node))
}

/** The slices of one Service: those of the input, those its pods imply, and those that kube-proxy is taken to read. */
import type { Finding } from '#base/finding'
import { buildEndpointSlices } from '#compile/endpointslices/build-endpoint-slices'
import type { SliceMode } from '#compile/endpointslices/select-slices'
import type { Cluster } from '#model/cluster'
import { type EndpointSlice, serviceNameLabel } from '#model/endpoint-slice'
import { keyOf } from '#model/meta'
import type { Service } from '#model/service'

export type ServiceSlices = {
  /** Those of the input that name the Service, whoever wrote them. */
  readonly given: readonly EndpointSlice[]
  /** What the pods alone imply; absent where the input cannot tell (no pods at all, or no selector). */
  readonly wanted?: readonly EndpointSlice[]
  readonly used: readonly EndpointSlice[]
  readonly usesGiven: boolean
  readonly findings: readonly Finding[]
}

/** The cluster with this Service and its slices alone: what is computed for one costs what one costs. */
export function focusOn(cluster: Cluster, service: Service): Cluster {
  const key = keyOf(service.meta)
  const slices = [...cluster.slices].filter(([, slice]) => isOf(slice, service))
  const endpoints = cluster.endpoints.get(key)
  return {
    ...cluster,
    services: new Map([[key, service]]),
    slices: new Map(slices),
    endpoints: new Map(endpoints === undefined ? [] : [[key, endpoints]]),
  }
}

function isOf({ meta }: EndpointSlice, service: Service): boolean {
  return meta.namespace === service.meta.namespace && meta.labels[serviceNameLabel] === service.meta.name
}

/** `focus` is a cluster that holds one Service. */
export function serviceSlices(focus: Cluster, service: Service, mode: SliceMode | undefined): ServiceSlices {
  const given = [...focus.slices.values()]
  const computed = buildEndpointSlices(focus)
  const usesGiven = mode === undefined ? given.length > 0 : mode === 'input'
  const hasPods = focus.pods.size > 0 && service.selector !== undefined && service.type !== 'ExternalName'
  const wanted = hasPods ? buildEndpointSlices(focus, { start: 'nothing' }).value : undefined
  return {
    given,
    ...(wanted !== undefined && { wanted }),
    used: usesGiven ? given : computed.value,
    usesGiven,
    findings: computed.findings,
  }
}

/** A Service as kube-proxy and the EndpointSlice controller see it, API defaults applied. */
import type { Family } from '#base/ip'
import type { Labels, Meta } from './meta'

export type Protocol = 'TCP' | 'UDP' | 'SCTP'

export type ServicePort = {
  /** Empty for an unnamed port. */
  readonly name: string
  readonly protocol: Protocol
  readonly port: number
  readonly targetPort: number | string
  /** 0 when there is none. */
  readonly nodePort: number
  readonly appProtocol?: string
}

/** One entry of `status.loadBalancer.ingress`; `ipMode` is `VIP` when the API leaves it out. */
export type LoadBalancerIngress = { readonly ip?: string; readonly hostname?: string; readonly ipMode: 'VIP' | 'Proxy' }

export type ServiceType = 'ClusterIP' | 'NodePort' | 'LoadBalancer' | 'ExternalName'
export type TrafficPolicy = 'Cluster' | 'Local'

export type Service = {
  readonly meta: Meta
  readonly type: ServiceType
  /** Canonical addresses, in order; `['None']` for a headless Service, empty when there is none. */
  readonly clusterIPs: readonly string[]
  readonly ipFamilies: readonly Family[]
  readonly ports: readonly ServicePort[]
  /** Absent when the Service has no selector (an empty one counts as none, as the API drops it). */
  readonly selector?: Labels
  readonly externalIPs: readonly string[]
  readonly loadBalancerIngress: readonly LoadBalancerIngress[]
  /** Canonical CIDRs, trimmed. */
  readonly loadBalancerSourceRanges: readonly string[]
  readonly externalTrafficPolicy: TrafficPolicy
  readonly internalTrafficPolicy: TrafficPolicy
  /** Seconds of ClientIP affinity; absent for affinity None. */
  readonly affinitySeconds?: number
  /** 0 when there is none. */
  readonly healthCheckNodePort: number
  readonly publishNotReadyAddresses: boolean
  readonly trafficDistribution?: string
  readonly externalName?: string
}

export function isHeadless(service: Service): boolean {
  return service.clusterIPs[0] === 'None'
}

/** A cluster: a parsed, immutable set of objects, each kind keyed by `namespace/name`. */
import type { CiliumEgressGatewayPolicy, CiliumLocalRedirectPolicy } from './cilium-network'
import type {
  CiliumCidrGroup,
  CiliumEndpointObject,
  CiliumIdentityObject,
  CiliumNodeObject,
  CiliumPolicy,
} from './cilium-policy'
import type { EndpointSlice, Endpoints } from './endpoint-slice'
import type { Meta } from './meta'
import type { NetworkPolicy } from './network-policy'
import type { ClusterNode } from './node'
import type { Pod } from './pod'
import type { Service } from './service'
import type { TierPolicy } from './tier-policy'
import type { EdgeAttachment, EdgeService, TrafficPolicy, TrafficPolicyBinding, VpcAttachment } from './traffic-policy'
import type { Workload } from './workload'

export type Namespace = { readonly meta: Meta }
export type ConfigMap = { readonly meta: Meta; readonly data: Readonly<Record<string, string>> }

export type Cluster = {
  readonly services: ReadonlyMap<string, Service>
  readonly pods: ReadonlyMap<string, Pod>
  readonly slices: ReadonlyMap<string, EndpointSlice>
  readonly endpoints: ReadonlyMap<string, Endpoints>
  readonly nodes: ReadonlyMap<string, ClusterNode>
  readonly namespaces: ReadonlyMap<string, Namespace>
  readonly configMaps: ReadonlyMap<string, ConfigMap>
  /** By `workloadKey`: `Kind namespace/name`. */
  readonly workloads: ReadonlyMap<string, Workload>
  readonly networkPolicies: ReadonlyMap<string, NetworkPolicy>
  /** By `Kind name`, as the kinds share names. */
  readonly tierPolicies: ReadonlyMap<string, TierPolicy>
  readonly ciliumPolicies: ReadonlyMap<string, CiliumPolicy>
  readonly cidrGroups: ReadonlyMap<string, CiliumCidrGroup>
  readonly ciliumIdentities: ReadonlyMap<string, CiliumIdentityObject>
  readonly ciliumEndpoints: ReadonlyMap<string, CiliumEndpointObject>
  readonly ciliumNodes: ReadonlyMap<string, CiliumNodeObject>
  readonly egressGatewayPolicies: ReadonlyMap<string, CiliumEgressGatewayPolicy>
  readonly localRedirectPolicies: ReadonlyMap<string, CiliumLocalRedirectPolicy>
  readonly trafficPolicies: ReadonlyMap<string, TrafficPolicy>
  readonly trafficPolicyBindings: ReadonlyMap<string, TrafficPolicyBinding>
  readonly vpcAttachments: ReadonlyMap<string, VpcAttachment>
  readonly edgeServices: ReadonlyMap<string, EdgeService>
  readonly edgeAttachments: ReadonlyMap<string, EdgeAttachment>
  /** Objects of kinds that Portolan does not read, counted by kind. */
  readonly skippedKinds: ReadonlyMap<string, number>
}

type Objects = Omit<Cluster, 'workloads'>

/** The maps of a cluster while it is being read. */
export type OpenObjects = {
  readonly [Kind in keyof Objects]: Objects[Kind] extends ReadonlyMap<string, infer Value> ? Map<string, Value> : never
}

export function openObjects(): OpenObjects {
  return {
    services: new Map(),
    pods: new Map(),
    slices: new Map(),
    endpoints: new Map(),
    nodes: new Map(),
    namespaces: new Map(),
    configMaps: new Map(),
    networkPolicies: new Map(),
    tierPolicies: new Map(),
    ciliumPolicies: new Map(),
    cidrGroups: new Map(),
    ciliumIdentities: new Map(),
    ciliumEndpoints: new Map(),
    ciliumNodes: new Map(),
    egressGatewayPolicies: new Map(),
    localRedirectPolicies: new Map(),
    trafficPolicies: new Map(),
    trafficPolicyBindings: new Map(),
    vpcAttachments: new Map(),
    edgeServices: new Map(),
    edgeAttachments: new Map(),
    skippedKinds: new Map(),
  }
}

export const emptyCluster: Cluster = { ...openObjects(), workloads: new Map() }

/** Objects of a cluster for tests, made from the few fields that a test is about. */
import { type Family, familyOf } from '#base/ip'
import { type Cluster, emptyCluster } from '#model/cluster'
import {
  type Endpoint,
  type EndpointPort,
  type EndpointSlice,
  type Endpoints,
  serviceNameLabel,
} from '#model/endpoint-slice'
import { keyOf, type Labels, type Meta } from '#model/meta'
import type { ClusterNode } from '#model/node'
import type { Pod } from '#model/pod'
import type { Service, ServicePort } from '#model/service'

export function metaOf(kind: string, path: string, fields: Partial<Meta> = {}): Meta {
  const [name = '', namespace = ''] = path.split('/').reverse()
  return {
    kind,
    name,
    namespace,
    labels: {},
    annotations: {},
    ownerReferences: [],
    origin: { file: 'test' },
    assumed: [],
    ...fields,
  }
}

type WithMeta<T> = Omit<Partial<T>, 'meta'> & { readonly meta?: Partial<Meta> }

export type ServiceFields = WithMeta<Service>

/** `serviceOf('shop/web', { clusterIPs: ['10.96.10.1'], ports: [portOf(80)] })`; families follow the cluster IPs. */
export function serviceOf(path: string, { meta, ...fields }: ServiceFields = {}): Service {
  const clusterIPs = fields.clusterIPs ?? ['10.96.0.9']
  const ipFamilies: readonly Family[] = clusterIPs[0] === 'None' ? ['ipv4'] : clusterIPs.map(familyOf)
  return {
    meta: metaOf('Service', path, meta),
    type: 'ClusterIP',
    clusterIPs,
    ipFamilies,
    ports: [],
    externalIPs: [],
    loadBalancerIngress: [],
    loadBalancerSourceRanges: [],
    externalTrafficPolicy: 'Cluster',
    internalTrafficPolicy: 'Cluster',
    healthCheckNodePort: 0,
    publishNotReadyAddresses: false,
    ...fields,
  }
}

export function portOf(port: number, fields: Partial<ServicePort> = {}): ServicePort {
  return { name: '', protocol: 'TCP', port, targetPort: port, nodePort: 0, ...fields }
}

export function podOf(path: string, { meta, ...fields }: WithMeta<Pod> = {}): Pod {
  return {
    meta: metaOf('Pod', path, { labels: { app: 'web' }, ...meta }),
    containers: [],
    initContainers: [],
    nodeName: 'node-a',
    hostNetwork: false,
    dnsPolicy: 'ClusterFirst',
    phase: 'Running',
    podIPs: ['10.244.1.9'],
    hostIPs: [],
    isReady: true,
    ...fields,
  }
}

export function nodeOf(name: string, { meta, ...fields }: WithMeta<ClusterNode> = {}): ClusterNode {
  return { meta: metaOf('Node', name, meta), addresses: [], podCIDRs: [], isReady: true, ...fields }
}

/** A slice of the Service of the same namespace whose name `service` is; its own name is free. */
export function sliceOf(
  path: string,
  service: string,
  { meta, ...fields }: WithMeta<EndpointSlice> = {},
): EndpointSlice {
  const labels: Labels = { [serviceNameLabel]: service, ...meta?.labels }
  return {
    meta: metaOf('EndpointSlice', path, { ...meta, labels }),
    addressType: 'IPv4',
    endpoints: [],
    ports: [],
    ...fields,
  }
}

export function endpointOf(address: string, fields: Partial<Endpoint> = {}): Endpoint {
  return { addresses: [address], conditions: { ready: true, serving: true, terminating: false }, ...fields }
}

export function slicePortOf(port: number, fields: Partial<EndpointPort> = {}): EndpointPort {
  return { name: '', protocol: 'TCP', port, ...fields }
}

export type ClusterObjects = {
  readonly services?: readonly Service[]
  readonly pods?: readonly Pod[]
  readonly slices?: readonly EndpointSlice[]
  readonly endpoints?: readonly Endpoints[]
  readonly nodes?: readonly ClusterNode[]
}

export function clusterOf(objects: ClusterObjects): Cluster {
  return {
    ...emptyCluster,
    services: byKey(objects.services),
    pods: byKey(objects.pods),
    slices: byKey(objects.slices),
    endpoints: byKey(objects.endpoints),
    nodes: byKey(objects.nodes),
  }
}

function byKey<T extends { readonly meta: Meta }>(objects: readonly T[] = []): ReadonlyMap<string, T> {
  return new Map(objects.map((object) => [keyOf(object.meta), object]))
}

/** The objects that the kubernetes plugin answers from, each found by one look-up, as its informers index them. */
import type { Cluster } from '#model/cluster'
import { type Endpoint, type EndpointSlice, serviceNameLabel } from '#model/endpoint-slice'
import type { Pod } from '#model/pod'
import { isHeadless, type Service } from '#model/service'
import type { KubernetesOptions } from './kubernetes-options'

export type EndpointPlace = { readonly slice: EndpointSlice; readonly endpoint: Endpoint; readonly address: string }

export type ZoneIndex = {
  /** True for a namespace that exists and that the options expose. */
  readonly hasNamespace: (name: string) => boolean
  /** Whether the options hide a namespace that exists. */
  readonly isHidden: (name: string) => boolean
  readonly service: (namespace: string, name: string) => Service | undefined
  readonly slicesOf: (namespace: string, name: string) => readonly EndpointSlice[]
  readonly serviceAt: (address: string) => Service | undefined
  readonly endpointsAt: (address: string) => readonly EndpointPlace[]
  readonly podsAt: (address: string) => readonly Pod[]
  readonly servicesIn: (namespace: string) => readonly Service[]
}

type Source = { readonly cluster: Cluster; readonly slices: readonly EndpointSlice[] }

/** Tables that few questions need are made when the first of them comes. */
export function indexZone({ cluster, slices }: Source, options: KubernetesOptions): ZoneIndex {
  const { selector, namespaceSelector, namespaces, hasEndpoints } = options
  const isSelected = (meta: Service['meta']): boolean => selector === undefined || selector(meta.labels)
  const bySlice = (): ReadonlyMap<string, readonly EndpointSlice[]> =>
    hasEndpoints ? groupSlices(slices, isSelected) : new Map()
  const slicesByService = once(bySlice)
  const servicesByAddress = once(() => groupServices(cluster, isSelected))
  const placesByAddress = once(() =>
    hasEndpoints ? groupEndpoints(slices, isSelected) : new Map<string, EndpointPlace[]>(),
  )
  const servicesByNamespace = once(() => groupByNamespace(cluster, isSelected))
  const podsByAddress = once(() => groupPods(cluster, isSelected))
  const isExposed = (name: string): boolean => {
    const found = cluster.namespaces.get(name)
    if (found === undefined || (namespaces !== undefined && !namespaces.includes(name))) return false
    return namespaceSelector === undefined || namespaceSelector(found.meta.labels)
  }
  return {
    hasNamespace: isExposed,
    isHidden: (name) => cluster.namespaces.has(name) && !isExposed(name),
    service: (namespace, name) => {
      const found = cluster.services.get(`${namespace}/${name}`)
      return found !== undefined && isSelected(found.meta) ? found : undefined
    },
    slicesOf: (namespace, name) => slicesByService().get(`${namespace}/${name}`) ?? [],
    serviceAt: (address) => servicesByAddress().get(address),
    endpointsAt: (address) => placesByAddress().get(address) ?? [],
    podsAt: (address) => podsByAddress().get(address) ?? [],
    servicesIn: (namespace) => servicesByNamespace().get(namespace) ?? [],
  }
}

/** CoreDNS takes an absent `ready` for true, and looks at nothing else. */
export function isServed({ conditions }: Endpoint): boolean {
  return conditions.ready ?? true
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}

type IsSelected = (meta: Service['meta']) => boolean

function groupSlices(slices: readonly EndpointSlice[], isSelected: IsSelected): ReadonlyMap<string, EndpointSlice[]> {
  const groups = new Map<string, EndpointSlice[]>()
  for (const slice of slices) {
    const name = slice.meta.labels[serviceNameLabel]
    if (name !== undefined && isSelected(slice.meta)) append(groups, `${slice.meta.namespace}/${name}`, slice)
  }
  return groups
}

function groupServices({ services }: Cluster, isSelected: IsSelected): ReadonlyMap<string, Service> {
  const found = new Map<string, Service>()
  for (const service of services.values()) {
    if (isHeadless(service) || !isSelected(service.meta)) continue
    for (const address of service.clusterIPs) if (!found.has(address)) found.set(address, service)
  }
  return found
}

function groupByNamespace({ services }: Cluster, isSelected: IsSelected): ReadonlyMap<string, Service[]> {
  const groups = new Map<string, Service[]>()
  for (const service of services.values()) if (isSelected(service.meta)) append(groups, service.meta.namespace, service)
  return groups
}

function groupEndpoints(
  slices: readonly EndpointSlice[],
  isSelected: IsSelected,
): ReadonlyMap<string, EndpointPlace[]> {
  const groups = new Map<string, EndpointPlace[]>()
  for (const slice of slices) {
    if (slice.meta.labels[serviceNameLabel] === undefined || !isSelected(slice.meta)) continue
    for (const endpoint of slice.endpoints) {
      if (!isServed(endpoint)) continue
      for (const address of endpoint.addresses) append(groups, address, { slice, endpoint, address })
    }
  }
  return groups
}

/** Pods that have ended or are ending are not in the plugin's cache; it knows the first address of each alone. */
function groupPods({ pods }: Cluster, isSelected: IsSelected): ReadonlyMap<string, Pod[]> {
  const groups = new Map<string, Pod[]>()
  for (const pod of pods.values()) {
    const [address] = pod.podIPs
    const isLive = pod.phase === 'Running' || pod.phase === 'Pending'
    if (address === undefined || !isLive || pod.meta.deletionTimestamp !== undefined || !isSelected(pod.meta)) continue
    append(groups, address, pod)
  }
  return groups
}

function append<T>(groups: Map<string, T[]>, key: string, value: T): void {
  const group = groups.get(key)
  if (group === undefined) groups.set(key, [value])
  else group.push(value)
}

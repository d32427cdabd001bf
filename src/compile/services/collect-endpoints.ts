/** From slices to the endpoints of a Service port, as kube-proxy reads them. */
import type { Finding } from '#base/finding'
import { type Family, familyOf, printEndpoint } from '#base/ip'
import { compareText } from '#base/text'
import {
  type EndpointPort,
  type EndpointSlice,
  headlessLabel,
  proxyNameLabel,
  serviceNameLabel,
} from '#model/endpoint-slice'
import type { Service, ServicePort } from '#model/service'
import { findingAt } from './findings'
import type { PlannedEndpoint } from './service-plan'

/** The slices of one family by `namespace/name` of their Service; the ones that kube-proxy never sees are left out. */
export function indexSlices(
  slices: Iterable<EndpointSlice>,
  family: Family,
  findings: Finding[],
): ReadonlyMap<string, readonly EndpointSlice[]> {
  const addressType = family === 'ipv4' ? 'IPv4' : 'IPv6'
  const index = new Map<string, EndpointSlice[]>()
  for (const slice of slices) {
    const name = slice.meta.labels[serviceNameLabel]
    if (name === undefined || slice.addressType !== addressType) continue
    const key = `${slice.meta.namespace}/${name}`
    const list = index.get(key)
    if (list === undefined) index.set(key, [slice])
    else list.push(slice)
    notePorts(slice, findings)
  }
  return index
}

/** The informers of kube-proxy ask for objects without these labels, whatever their values. */
export function isHidden({ meta }: EndpointSlice | Service): boolean {
  return Object.hasOwn(meta.labels, proxyNameLabel) || Object.hasOwn(meta.labels, headlessLabel)
}

export type CollectOptions = {
  readonly family: Family
  readonly nodeName: string | undefined
  readonly findings: Finding[]
}

/**
 * Mirrors pkg/proxy/endpointslicecache.go (1.34): ports agree by name and protocol, an absent `serving` counts as true,
 * and of the same `ip:port` in several slices the local one stays.
 */
export function collectEndpoints(
  port: ServicePort,
  slices: readonly EndpointSlice[],
  options: CollectOptions,
): readonly PlannedEndpoint[] {
  const found: PlannedEndpoint[] = []
  for (const slice of slices) {
    for (const slicePort of slice.ports) {
      if (isPortOf(slicePort, port)) addEndpoints(found, slice, { ...options, number: slicePort.port ?? 0 })
    }
  }
  return withoutDoubles(found.sort((a, b) => compareText(a.text, b.text)))
}

function isPortOf(slicePort: EndpointPort, port: ServicePort): boolean {
  return (
    slicePort.name === port.name &&
    slicePort.protocol === port.protocol &&
    slicePort.port !== undefined &&
    slicePort.port !== 0
  )
}

function addEndpoints(
  found: PlannedEndpoint[],
  slice: EndpointSlice,
  { family, nodeName, number, findings }: CollectOptions & { readonly number: number },
): void {
  for (const endpoint of slice.endpoints) {
    const [ip] = endpoint.addresses
    if (ip === undefined) continue
    if (familyOf(ip) !== family) {
      const message = `${ip} is not of the slice's address type ${slice.addressType}`
      findings.push(findingAt(slice.meta, 'services.endpoint-of-other-family', { message, path: 'endpoints' }))
      continue
    }
    const { ready = true, serving = true, terminating = false } = endpoint.conditions
    found.push({
      text: printEndpoint(ip, number),
      ip,
      port: number,
      isLocal: nodeName !== undefined && endpoint.nodeName === nodeName,
      isReady: ready,
      isServing: serving,
      isTerminating: terminating,
      endpoint,
    })
  }
}

/** Of the same text the first stays, unless a later one is local. */
function withoutDoubles(sorted: readonly PlannedEndpoint[]): readonly PlannedEndpoint[] {
  if (sorted.every((endpoint, at) => at === 0 || sorted[at - 1]?.text !== endpoint.text)) return sorted
  const kept = new Map<string, PlannedEndpoint>()
  for (const endpoint of sorted) if (endpoint.isLocal || !kept.has(endpoint.text)) kept.set(endpoint.text, endpoint)
  return [...kept.values()]
}

function notePorts(slice: EndpointSlice, findings: Finding[]): void {
  for (const { name, port } of slice.ports) {
    if (name !== undefined && port !== undefined && port !== 0) continue
    const message = name === undefined ? 'a port has no name' : `port "${name}" has no number`
    findings.push(findingAt(slice.meta, 'services.slice-port-without-number', { message, path: 'ports' }))
  }
}

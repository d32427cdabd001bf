/** What the EndpointSlice controllers would write for a cluster: the slices of every Service, and mirrored Endpoints. */
import type { Finding, Parsed } from '#base/finding'
import { compareText, countOf } from '#base/text'
import type { Cluster } from '#model/cluster'
import { type EndpointSlice, managedByLabel, serviceNameLabel } from '#model/endpoint-slice'
import type { Service } from '#model/service'
import { findingAt } from './findings'
import { indexPods } from './index-pods'
import { controllerName } from './label-slices'
import { mirrorEndpoints, mirrorName } from './mirror-endpoints'
import { sliceNamer } from './name-slices'
import { type Controller, reconcileService } from './reconcile-service'
import { zoneShares } from './share-zones'

export type SliceOptions = {
  readonly maxEndpointsPerSlice?: number
  /** Whether the controllers find the slices of the input in place, or an empty cluster. */
  readonly start?: 'input' | 'nothing'
}

/** kube-controller-manager's `--max-endpoints-per-slice`. */
const defaultMost = 100

/**
 * Slices of other controllers, and of Services without a selector, are handed on as they are. The result is in
 * the order of Services by namespace and name, then the rest in input order.
 */
export function buildEndpointSlices(cluster: Cluster, options: SliceOptions = {}): Parsed<readonly EndpointSlice[]> {
  const findings: Finding[] = []
  const sorted = sortServices(cluster.services.values())
  const given = options.start === 'nothing' ? [] : [...cluster.slices.values()]
  const found = sortGiven(given, cluster, findings)
  const controller: Controller = {
    cluster,
    pods: indexPods(cluster.pods.values(), sorted.filter(hasSlices)),
    shares: zoneShares(cluster.nodes.values()),
    most: options.maxEndpointsPerSlice ?? defaultMost,
    nameSlice: sliceNamer(given.map(({ meta }) => `${meta.namespace}/${meta.name}`)),
    findings,
  }
  if (cluster.pods.size === 0) noteNoPods(sorted.filter(hasSlices), given, findings)
  const slices: EndpointSlice[] = []
  for (const service of sorted) {
    const key = `${service.meta.namespace}/${service.meta.name}`
    if (hasSlices(service)) append(slices, reconcileService(service, found.managed.get(key) ?? [], controller))
    else append(slices, mirrorEndpoints(service, found.mirrored.get(key) ?? [], controller))
  }
  append(slices, found.others)
  return { value: slices, findings }
}

/** pkg/controller/endpointslice (1.34): an ExternalName Service and one without a selector get none. */
function hasSlices(service: Service): boolean {
  return service.type !== 'ExternalName' && service.selector !== undefined
}

function sortServices(services: Iterable<Service>): readonly Service[] {
  return [...services].sort(
    (a, b) => compareText(a.meta.namespace, b.meta.namespace) || compareText(a.meta.name, b.meta.name),
  )
}

type Given = {
  readonly managed: ReadonlyMap<string, readonly EndpointSlice[]>
  readonly mirrored: ReadonlyMap<string, readonly EndpointSlice[]>
  readonly others: readonly EndpointSlice[]
}

/** Sorts the slices of the input by who looks after them; the controllers' own go with their Service. */
function sortGiven(slices: readonly EndpointSlice[], cluster: Cluster, findings: Finding[]): Given {
  const managed = new Map<string, EndpointSlice[]>()
  const mirrored = new Map<string, EndpointSlice[]>()
  const others: EndpointSlice[] = []
  for (const slice of slices) {
    const owner = slice.meta.labels[serviceNameLabel]
    const manager = slice.meta.labels[managedByLabel]
    const key = `${slice.meta.namespace}/${owner}`
    const service = cluster.services.get(key)
    const isManaged = manager === controllerName
    if (owner === undefined || (!isManaged && manager !== mirrorName)) others.push(slice)
    else if (service === undefined) findings.push(orphan(slice, key))
    else if (isManaged === hasSlices(service)) push(isManaged ? managed : mirrored, key, slice)
    else if (isManaged) others.push(slice)
  }
  return { managed, mirrored, others }
}

function orphan({ meta }: EndpointSlice, key: string): Finding {
  return findingAt(meta, 'endpointslices.orphan', {
    message: `its Service ${key} is not in the input; without its owner the slice is collected as garbage`,
  })
}

/** One finding for all Services, which would each tell the same. */
function noteNoPods(services: readonly Service[], given: readonly EndpointSlice[], findings: Finding[]): void {
  const [first] = services
  if (first === undefined) return
  const message = `the input holds no pods at all, so ${countOf(services.length, 'Service')} with a selector ${services.length === 1 ? 'comes' : 'come'} out empty, and rules refuse traffic (REJECT) for that reason alone`
  const hint = given.length === 0 ? 'add the pods' : 'add the pods, or take the slices as they are with --slices input'
  findings.push(findingAt(first.meta, 'endpointslices.no-pods-read', { message, hint }))
}

function push(map: Map<string, EndpointSlice[]>, key: string, slice: EndpointSlice): void {
  const list = map.get(key)
  if (list === undefined) map.set(key, [slice])
  else list.push(slice)
}

/** Not `push(...more)`: a long list would not fit on the stack. */
function append(list: EndpointSlice[], more: Iterable<EndpointSlice>): void {
  for (const slice of more) list.push(slice)
}

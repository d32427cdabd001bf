/** One Service as the EndpointSlice controller reconciles it: its pods become endpoints, and these become slices. */
import type { Finding } from '#base/finding'
import { type Family, familyOf } from '#base/ip'
import type { Cluster } from '#model/cluster'
import type { AddressType, EndpointSlice } from '#model/endpoint-slice'
import type { Labels } from '#model/meta'
import type { Service } from '#model/service'
import { assignHints, knownDistributions } from './assign-hints'
import { type Assumptions, assumedOf } from './collect-assumed'
import { findingAt } from './findings'
import { type EndpointGroups, groupPods } from './group-pods'
import { type PodIndex, podsOf } from './index-pods'
import { hasLabelsOf, isOwnedBy, labelsFor, ownerOf, reservedOn, triggerTimeAnnotation } from './label-slices'
import { generateNameOf, type NameSource } from './name-slices'
import { packGroup, type SliceChanges, type SliceDraft } from './pack-slices'
import { portsKey } from './resolve-ports'
import type { ZoneShares } from './share-zones'

/** What the controller knows beside the Service at hand. */
export type Controller = {
  readonly cluster: Cluster
  readonly pods: PodIndex
  readonly shares: ZoneShares | undefined
  readonly most: number
  readonly nameSlice: (source: NameSource) => string
  readonly findings: Finding[]
}

/** The slices of a Service afterwards; `existing` are those that the controller finds, in name order or any other. */
export function reconcileService(
  service: Service,
  existing: readonly EndpointSlice[],
  controller: Controller,
): readonly EndpointSlice[] {
  noteService(service, controller)
  const { meta, selector = {} } = service
  const pods = podsOf(controller.pods, meta.namespace, selector)
  if (pods.length === 0 && controller.cluster.pods.size > 0) noteNoPods(service, controller)
  const labels = labelsFor(service)
  const slices: EndpointSlice[] = []
  for (const [family, groups] of groupPods(service, pods, { families: familiesOf(service), controller })) {
    const addressType = addressTypeOf(family)
    const ofType = existing.filter((slice) => slice.addressType === addressType)
    const changes = withPlaceholder(packAll(groups, ofType, { service, controller }), ofType)
    const hinted = assignHints(changes, service, controller.shares)
    if (hinted.why !== undefined && pods.length > 0) noteNoHints(service, addressType, { why: hinted.why, controller })
    const writer: Writer = { service, addressType, labels, controller, assumptions: groups.assumptions }
    for (const slice of finish(hinted.changes, writer)) slices.push(slice)
  }
  return slices
}

export function addressTypeOf(family: Family): AddressType {
  return family === 'ipv4' ? 'IPv4' : 'IPv6'
}

/** endpointslice/utils.go getAddressTypesForService (1.34): a headless Service without families gets both. */
export function familiesOf({ ipFamilies, clusterIPs: [first] }: Service): readonly Family[] {
  if (ipFamilies.length > 0) return [...new Set(ipFamilies)]
  return first === undefined || first === 'None' ? ['ipv4', 'ipv6'] : [familyOf(first)]
}

function packAll(
  groups: EndpointGroups,
  existing: readonly EndpointSlice[],
  { service, controller }: { readonly service: Service; readonly controller: Controller },
): SliceChanges {
  const toCreate: SliceDraft[] = []
  const toUpdate: SliceDraft[] = []
  const toDelete: EndpointSlice[] = []
  const unchanged: EndpointSlice[] = []
  const byPorts = new Map<string, EndpointSlice[]>()
  for (const slice of existing) {
    if (!isOwnedBy(slice, service)) toDelete.push(slice)
    else {
      const key = portsKey(slice.ports)
      byPorts.set(key, [...(byPorts.get(key) ?? []), slice])
    }
  }
  const hasRightLabels = (slice: EndpointSlice): boolean => hasLabelsOf(slice, service)
  for (const group of groups.groups) {
    const key = existing.length === 0 ? '' : portsKey(group.ports)
    const packed = packGroup(group, { existing: byPorts.get(key) ?? [], most: controller.most, hasRightLabels })
    byPorts.delete(key)
    toCreate.push(...packed.toCreate)
    toUpdate.push(...packed.toUpdate)
    toDelete.push(...packed.toDelete)
    unchanged.push(...packed.unchanged)
  }
  for (const slices of byPorts.values()) toDelete.push(...slices)
  return { toCreate, toUpdate, toDelete, unchanged }
}

/** A family never goes without a slice: an empty one holds its place, and one that is in place stays. */
function withPlaceholder(changes: SliceChanges, existing: readonly EndpointSlice[]): SliceChanges {
  if (existing.length !== changes.toDelete.length || changes.toCreate.length > 0) return changes
  const [only] = changes.toDelete
  if (only !== undefined && changes.toDelete.length === 1 && only.endpoints.length === 0 && only.ports.length === 0) {
    return { ...changes, toDelete: [], unchanged: [only] }
  }
  return { ...changes, toCreate: [{ ports: [], endpoints: [] }] }
}

type Writer = {
  readonly service: Service
  readonly addressType: AddressType
  readonly labels: Labels
  readonly controller: Controller
  readonly assumptions: Assumptions
}

/** reconciler.go finalize (1.34): a slice that would go is written over with one that would come. */
function finish(changes: SliceChanges, writer: Writer): readonly EndpointSlice[] {
  const { service } = writer
  const toCreate = [...changes.toCreate]
  const recycled: EndpointSlice[] = []
  for (const slice of changes.toDelete) {
    const draft = isOwnedBy(slice, service) ? toCreate.pop() : undefined
    if (draft !== undefined) recycled.push(rewriteSlice(slice, draft, writer))
  }
  const isLeaving = service.meta.deletionTimestamp !== undefined
  const written = changes.toUpdate.map((draft) => writeSlice(draft, writer))
  const created = isLeaving ? [] : toCreate.map((draft) => writeSlice(draft, writer))
  return [...changes.unchanged, ...written, ...recycled, ...created]
}

function writeSlice(draft: SliceDraft, writer: Writer): EndpointSlice {
  return draft.existing === undefined ? createSlice(draft, writer) : rewriteSlice(draft.existing, draft, writer)
}

/** The trigger time is taken off: it would be the time of a change that nobody has timed. */
function rewriteSlice(existing: EndpointSlice, draft: SliceDraft, writer: Writer): EndpointSlice {
  const { [triggerTimeAnnotation]: _time, ...annotations } = existing.meta.annotations
  const assumed = assumedOf(writer.service, draft.endpoints, writer.assumptions)
  return {
    meta: { ...existing.meta, labels: writer.labels, annotations, assumed },
    addressType: writer.addressType,
    endpoints: draft.endpoints,
    ports: draft.ports,
  }
}

function createSlice({ ports, endpoints }: SliceDraft, writer: Writer): EndpointSlice {
  const { service, addressType, labels, controller } = writer
  const { namespace, name: owner, origin } = service.meta
  const name = controller.nameSlice({ namespace, owner, traits: `${addressType}/${portsKey(ports)}` })
  return {
    meta: {
      kind: 'EndpointSlice',
      name,
      namespace,
      generateName: generateNameOf(owner),
      labels,
      annotations: {},
      ownerReferences: [ownerOf(service.meta)],
      origin,
      assumed: assumedOf(service, endpoints, writer.assumptions),
    },
    addressType,
    endpoints,
    ports,
  }
}

function noteService(service: Service, { findings }: Controller): void {
  const reserved = reservedOn(service)
  if (reserved.length > 0) {
    findings.push(
      findingAt(service.meta, 'endpointslices.reserved-label', {
        message: `the controller sets ${reserved.join(', ')} itself and ignores the value on the Service`,
        path: 'metadata.labels',
      }),
    )
  }
  const { trafficDistribution } = service
  if (trafficDistribution !== undefined && !knownDistributions.includes(trafficDistribution)) {
    findings.push(
      findingAt(service.meta, 'endpointslices.unknown-traffic-distribution', {
        message: `"${trafficDistribution}" has no effect; known are ${knownDistributions.join(', ')}`,
        path: 'spec.trafficDistribution',
      }),
    )
  }
}

function noteNoPods(service: Service, { findings }: Controller): void {
  const wanted = Object.entries(service.selector ?? {}).map(([key, value]) => `${key}=${value}`)
  findings.push(
    findingAt(service.meta, 'endpointslices.no-pods', {
      message: `no pod of namespace ${service.meta.namespace} with an address has ${wanted.join(', ')}`,
      path: 'spec.selector',
    }),
  )
}

function noteNoHints(
  service: Service,
  addressType: AddressType,
  { why, controller }: { readonly why: string; readonly controller: Controller },
): void {
  controller.findings.push(
    findingAt(service.meta, 'endpointslices.topology-hints-disabled', {
      message: `topology mode Auto gives no hints for ${addressType}: ${why}`,
      path: 'metadata.annotations',
    }),
  )
}

/** Labels and owner of the slices that the EndpointSlice controller writes for a Service. */
import { type EndpointSlice, headlessLabel, managedByLabel, serviceNameLabel } from '#model/endpoint-slice'
import type { Labels, OwnerReference } from '#model/meta'
import type { Service } from '#model/service'
import { isSameUid } from './build-endpoint'

export const controllerName = 'endpointslice-controller.k8s.io'

export const triggerTimeAnnotation = 'endpoints.kubernetes.io/last-change-trigger-time'

const reservedLabels: readonly string[] = [serviceNameLabel, managedByLabel, headlessLabel]

/** The Service's labels with the three reserved ones set (endpointslice/utils.go setEndpointSliceLabels, 1.34). */
export function labelsFor(service: Service): Labels {
  const labels: Record<string, string> = { ...service.meta.labels }
  if (hasClusterIp(service)) delete labels[headlessLabel]
  else labels[headlessLabel] = ''
  labels[serviceNameLabel] = service.meta.name
  labels[managedByLabel] = controllerName
  return labels
}

/** The reserved labels that a Service carries itself, in vain. */
export function reservedOn(service: Service): readonly string[] {
  return reservedLabels.filter((key) => Object.hasOwn(service.meta.labels, key))
}

/** True when a slice has the Service's labels; a difference in the reserved ones alone does not count. */
export function hasLabelsOf(slice: EndpointSlice, service: Service): boolean {
  const own = slice.meta.labels
  const wanted = service.meta.labels
  return isSubset(own, wanted) && isSubset(wanted, own)
}

function isSubset(inner: Labels, outer: Labels): boolean {
  return Object.keys(inner).every((key) => reservedLabels.includes(key) || outer[key] === inner[key])
}

function hasClusterIp({ clusterIPs: [first] }: Service): boolean {
  return first !== undefined && first !== 'None'
}

export function ownerOf({
  kind,
  name,
  uid,
}: {
  readonly kind: string
  readonly name: string
  readonly uid?: string
}): OwnerReference {
  return uid === undefined ? { kind, name, controller: true } : { kind, name, uid, controller: true }
}

/** A slice written by hand may name no owner at all: it is then taken for the Service's. */
export function isOwnedBy(slice: EndpointSlice, service: Service): boolean {
  const { ownerReferences } = slice.meta
  if (ownerReferences.length === 0) return true
  return ownerReferences.some(
    ({ kind, name, uid }) => kind === 'Service' && name === service.meta.name && isSameUid(uid, service.meta.uid),
  )
}

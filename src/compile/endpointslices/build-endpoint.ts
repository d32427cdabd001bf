/** The endpoint that a pod is in a slice. */
import { type Family, familyOf } from '#base/ip'
import type { Conditions, Endpoint } from '#model/endpoint-slice'
import { type ClusterNode, zoneLabel } from '#model/node'
import type { Pod } from '#model/pod'
import type { Service } from '#model/service'

type Draft<T> = { -readonly [Key in keyof T]: T[Key] }

/** Undefined when the pod has no address of the family. Mirrors endpointslice/utils.go podToEndpoint (1.34). */
export function buildEndpoint(
  pod: Pod,
  {
    service,
    node,
    family,
  }: { readonly service: Service; readonly node: ClusterNode | undefined; readonly family: Family },
): Endpoint | undefined {
  const addresses = addressesOf(pod, family)
  if (addresses.length === 0) return undefined
  const { meta } = pod
  const { namespace, name, uid } = meta
  const endpoint: Draft<Endpoint> = {
    addresses,
    conditions: conditionsOf(pod, service),
    targetRef: uid === undefined ? { kind: 'Pod', namespace, name } : { kind: 'Pod', namespace, name, uid },
  }
  if (pod.nodeName !== undefined) endpoint.nodeName = pod.nodeName
  const zone = node?.meta.labels[zoneLabel]
  if (zone !== undefined && zone !== '') endpoint.zone = zone
  if (pod.hostname !== undefined && pod.hostname !== '' && pod.subdomain === service.meta.name) {
    endpoint.hostname = pod.hostname
  }
  return endpoint
}

function addressesOf(pod: Pod, family: Family): readonly string[] {
  const [first] = pod.podIPs
  if (pod.podIPs.length === 1 && first !== undefined) return familyOf(first) === family ? pod.podIPs : []
  return pod.podIPs.filter((ip) => familyOf(ip) === family).sort()
}

/** Every combination once: a cluster has few kinds of readiness and many endpoints. */
const combinations: readonly Conditions[] = Array.from({ length: 8 }, (_, bits) => ({
  ready: (bits & 1) !== 0,
  serving: (bits & 2) !== 0,
  terminating: (bits & 4) !== 0,
}))

/** publishNotReadyAddresses raises `ready` and nothing else; a terminating pod is never ready without it. */
function conditionsOf(pod: Pod, service: Service): Conditions {
  const isTerminating = pod.meta.deletionTimestamp !== undefined
  const isReady = service.publishNotReadyAddresses || (pod.isReady && !isTerminating)
  const bits = (isReady ? 1 : 0) | (pod.isReady ? 2 : 0) | (isTerminating ? 4 : 0)
  return combinations[bits] ?? {}
}

/** What makes two endpoints the same one, whatever else changed (endpointslice/util/endpointset.go, 1.34). */
export function identityOf({ addresses, hostname, targetRef }: Endpoint): string {
  return `${addresses.join()} ${hostname ?? ''} ${targetRef?.namespace ?? ''}/${targetRef?.name ?? ''}`
}

/** True when nothing else about two endpoints of one identity differs; hints are not looked at. */
export function isSameEndpoint(a: Endpoint, b: Endpoint): boolean {
  return (
    a.nodeName === b.nodeName &&
    a.zone === b.zone &&
    a.conditions.ready === b.conditions.ready &&
    a.conditions.serving === b.conditions.serving &&
    a.conditions.terminating === b.conditions.terminating &&
    a.targetRef?.kind === b.targetRef?.kind &&
    isSameUid(a.targetRef?.uid, b.targetRef?.uid)
  )
}

/** Objects written by hand have no uid, which tells nothing. */
export function isSameUid(a: string | undefined, b: string | undefined): boolean {
  return a === undefined || b === undefined || a === b
}

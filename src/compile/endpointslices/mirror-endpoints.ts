/** Slices mirrored from a hand-made Endpoints object of a Service without a selector. */
import { canonicalIp, familyOf } from '#base/ip'
import { countOf } from '#base/text'
import {
  type AddressType,
  type Endpoint,
  type EndpointPort,
  type EndpointSlice,
  type Endpoints,
  type EndpointsAddress,
  type EndpointsSubset,
  managedByLabel,
  serviceNameLabel,
} from '#model/endpoint-slice'
import type { Labels } from '#model/meta'
import type { Service } from '#model/service'
import { identityOf } from './build-endpoint'
import { findingAt } from './findings'
import { ownerOf, triggerTimeAnnotation } from './label-slices'
import { generateNameOf } from './name-slices'
import { addressTypeOf, type Controller } from './reconcile-service'
import { portsKey } from './resolve-ports'

export const mirrorName = 'endpointslicemirroring-controller.k8s.io'

/** kube-controller-manager's `--mirroring-max-endpoints-per-subset`. */
const mostPerSubset = 1000

const skipLabel = 'endpointslice.kubernetes.io/skip-mirror'
const leaderAnnotation = 'control-plane.alpha.kubernetes.io/leader'
const lastAppliedAnnotation = 'kubectl.kubernetes.io/last-applied-configuration'

type Wanted = {
  readonly addressType: AddressType
  readonly ports: readonly EndpointPort[]
  readonly endpoints: Map<string, Endpoint>
}

/**
 * Mirrors pkg/controller/endpointslicemirroring (1.34). Where the input has mirrored slices but not the Endpoints
 * object they came from, nothing is known against them and they stay.
 */
export function mirrorEndpoints(
  service: Service,
  existing: readonly EndpointSlice[],
  controller: Controller,
): readonly EndpointSlice[] {
  if (service.selector !== undefined) return []
  const source = controller.cluster.endpoints.get(`${service.meta.namespace}/${service.meta.name}`)
  if (source === undefined) return existing
  if (!isMirrored(source)) return []
  const free = [...existing]
  return wantedOf(source, controller).map((wanted) => {
    const key = portsKey(wanted.ports)
    const same = free.findIndex((slice) => slice.addressType === wanted.addressType && portsKey(slice.ports) === key)
    const [old] = same < 0 ? [] : free.splice(same, 1)
    return mirroredSlice(source, wanted, { old, controller })
  })
}

function isMirrored({ meta }: Endpoints): boolean {
  return meta.labels[skipLabel] !== 'true' && !Object.hasOwn(meta.annotations, leaderAnnotation)
}

/** One slice for each set of ports and family, ready addresses first. */
function wantedOf(source: Endpoints, controller: Controller): readonly Wanted[] {
  const wanted = new Map<string, Wanted>()
  let bad = 0
  let skipped = 0
  for (const subset of source.subsets) {
    let added = 0
    for (const { address, isReady } of addressesOf(subset)) {
      if (added >= mostPerSubset) skipped++
      else if (addAddress(wanted, subset, { address, isReady })) added++
      else bad++
    }
  }
  if (bad > 0) {
    const message = `${countOf(bad, 'address is', 'addresses are')} not mirrored: not an IP address`
    controller.findings.push(findingAt(source.meta, 'endpointslices.mirror-bad-address', { message }))
  }
  if (skipped > 0) {
    const message = `${countOf(skipped, 'address is', 'addresses are')} not mirrored: a subset may have ${mostPerSubset}`
    controller.findings.push(findingAt(source.meta, 'endpointslices.mirror-too-many', { message }))
  }
  return [...wanted.values()]
}

type ReadyAddress = { readonly address: EndpointsAddress; readonly isReady: boolean }

function addressesOf({ addresses, notReadyAddresses }: EndpointsSubset): readonly ReadyAddress[] {
  const ready = addresses.map((address) => ({ address, isReady: true }))
  return [...ready, ...notReadyAddresses.map((address) => ({ address, isReady: false }))]
}

function addAddress(
  wanted: Map<string, Wanted>,
  { ports }: EndpointsSubset,
  { address, isReady }: ReadyAddress,
): boolean {
  const ip = canonicalIp(address.ip)
  if (ip === undefined) return false
  const addressType = addressTypeOf(familyOf(ip))
  const key = `${addressType} ${portsKey(ports)}`
  const open: Wanted = wanted.get(key) ?? { addressType, ports: ports.map(withName), endpoints: new Map() }
  wanted.set(key, open)
  const { hostname, nodeName, targetRef } = address
  const endpoint: Endpoint = {
    addresses: [ip],
    conditions: { ready: isReady },
    ...(hostname !== undefined && hostname !== '' && { hostname }),
    ...(nodeName !== undefined && { nodeName }),
    ...(targetRef !== undefined && { targetRef }),
  }
  open.endpoints.set(identityOf(endpoint), endpoint)
  return true
}

/** A port of an Endpoints object without a name has the empty one in the slice. */
function withName(port: EndpointPort): EndpointPort {
  return port.name === undefined ? { ...port, name: '' } : port
}

function mirroredSlice(
  source: Endpoints,
  { addressType, ports, endpoints }: Wanted,
  { old, controller }: { readonly old: EndpointSlice | undefined; readonly controller: Controller },
): EndpointSlice {
  const { meta } = source
  const { namespace, name: owner, origin, assumed } = meta
  const name = old?.meta.name ?? controller.nameSlice({ namespace, owner, traits: `${addressType}/${portsKey(ports)}` })
  const fresh = {
    kind: 'EndpointSlice',
    name,
    namespace,
    generateName: generateNameOf(owner),
    labels: { ...meta.labels, [serviceNameLabel]: owner, [managedByLabel]: mirrorName },
    annotations: copiedAnnotations(meta.annotations),
    ownerReferences: [ownerOf(meta)],
    origin,
    assumed,
  }
  return {
    meta: { ...old?.meta, ...fresh },
    addressType,
    endpoints: [...endpoints.values()].slice(0, mostPerSubset),
    ports,
  }
}

function copiedAnnotations(annotations: Labels): Labels {
  const { [triggerTimeAnnotation]: _time, [lastAppliedAnnotation]: _applied, ...copied } = annotations
  return copied
}

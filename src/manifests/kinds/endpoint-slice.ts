/** EndpointSlices: discovery.k8s.io/v1, and v1beta1 whose topology map held the node and the zone. */
import { familyOf } from '#base/ip'
import type { AddressType, Conditions, Endpoint, EndpointPort, EndpointSlice, TargetRef } from '#model/endpoint-slice'
import type { Meta } from '#model/meta'
import { zoneLabel } from '#model/node'
import { addressesAt } from './addresses'
import {
  type Fields,
  flagAt,
  has,
  itemsAt,
  mapAt,
  mapsAt,
  nameAt,
  numberAt,
  plainNameAt,
  portBounds,
  report,
  textsAt,
  wordAt,
} from './fields'
import { portNameAt, protocolAt } from './pod'
import type { Writable } from './writable'

const addressTypes = ['IPv4', 'IPv6', 'FQDN'] as const satisfies readonly AddressType[]
const noConditions: Conditions = {}
const hostLabel = 'kubernetes.io/hostname'

/** Undefined when its `addressType` is none: nobody would read it. */
export function parseEndpointSlice(root: Fields, meta: Meta): EndpointSlice | undefined {
  const addressType = parseAddressType(root)
  if (addressType === undefined) return undefined
  const endpoints: Endpoint[] = []
  for (const entry of mapsAt(root, 'endpoints')) {
    const endpoint = parseEndpoint(entry, addressType)
    if (endpoint !== undefined) endpoints.push(endpoint)
  }
  return { meta, addressType, endpoints, ports: parseEndpointPorts(root) }
}

/** As the API server does: an absent name is the empty one, and an absent protocol is TCP. */
export function parseEndpointPorts(fields: Fields): readonly EndpointPort[] {
  return mapsAt(fields, 'ports').flatMap((entry) => {
    const protocol = protocolAt(entry)
    const name = portNameAt(entry)
    if (protocol === undefined || name === undefined) return []
    const port: Writable<EndpointPort> = { name, protocol }
    const number = numberAt(entry, 'port', portBounds)
    const appProtocol = nameAt(entry, 'appProtocol')
    if (number !== undefined) port.port = number
    if (appProtocol !== undefined) port.appProtocol = appProtocol
    return [port]
  })
}

export function parseTargetRef(entry: Fields): TargetRef | undefined {
  if (!has(entry, 'targetRef')) return undefined
  const fields = mapAt(entry, 'targetRef')
  const kind = plainNameAt(fields, 'kind')
  const name = plainNameAt(fields, 'name')
  if (kind === undefined || name === undefined) return undefined
  const ref: Writable<TargetRef> = { kind, name }
  const namespace = plainNameAt(fields, 'namespace')
  const uid = nameAt(fields, 'uid')
  if (namespace !== undefined) ref.namespace = namespace
  if (uid !== undefined) ref.uid = uid
  return ref
}

function parseAddressType(root: Fields): AddressType | undefined {
  const isAbsent = !has(root, 'addressType') || root.values.addressType === ''
  return isAbsent ? guessType(root) : wordAt(root, 'addressType', addressTypes, 'the slice is left out')
}

/** The API server demands `addressType`; without it the first address tells. */
function guessType(root: Fields): AddressType {
  const [first] = mapsAt(root, 'endpoints')
  const address = first === undefined ? '' : itemsAt(first, 'addresses')[0]
  const guess = typeof address === 'string' && address.includes(':') ? 'IPv6' : 'IPv4'
  report(root, 'addressType', { message: `the field is missing; ${guess} is taken`, hint: `add addressType: ${guess}` })
  return guess
}

/** Undefined without an address: kube-proxy and the DNS server pass over it. */
function parseEndpoint(entry: Fields, addressType: AddressType): Endpoint | undefined {
  const addresses = addressType === 'FQDN' ? textsAt(entry, 'addresses') : parseAddresses(entry, addressType)
  if (addresses.length === 0) {
    const { addresses: told = [] } = entry.values
    // What is no list, or holds only what is no address, is told already.
    if (told === null || (Array.isArray(told) && told.length === 0)) {
      const message = 'the endpoint has no addresses; it is left out'
      report(entry, 'addresses', { code: 'slice.no-addresses', message, hint: 'give it an address, or delete it' })
    }
    return undefined
  }
  const endpoint: Writable<Endpoint> = {
    addresses,
    conditions: has(entry, 'conditions') ? parseConditions(mapAt(entry, 'conditions')) : noConditions,
  }
  const hostname = plainNameAt(entry, 'hostname')
  const targetRef = parseTargetRef(entry)
  if (hostname !== undefined) endpoint.hostname = hostname
  if (targetRef !== undefined) endpoint.targetRef = targetRef
  fillPlace(entry, endpoint)
  if (has(entry, 'hints')) fillHints(mapAt(entry, 'hints'), endpoint)
  return endpoint
}

function parseAddresses(entry: Fields, addressType: AddressType): readonly string[] {
  const family = addressType === 'IPv6' ? 'ipv6' : 'ipv4'
  const addresses = addressesAt(entry, 'addresses')
  if (addresses.every((address) => familyOf(address) === family)) return addresses
  return addresses.filter((address) => {
    if (familyOf(address) === family) return true
    const message = `${address} stands in a slice of ${addressType}; it is left out`
    report(entry, 'addresses', { code: 'slice.family-mismatch', message })
    return false
  })
}

function parseConditions(fields: Fields): Conditions {
  const conditions: Writable<Conditions> = {}
  const ready = flagAt(fields, 'ready', 'the endpoint counts as ready')
  const serving = flagAt(fields, 'serving', 'the endpoint counts as serving')
  const terminating = flagAt(fields, 'terminating', 'the endpoint counts as not terminating')
  if (ready !== undefined) conditions.ready = ready
  if (serving !== undefined) conditions.serving = serving
  if (terminating !== undefined) conditions.terminating = terminating
  return conditions
}

function fillPlace(entry: Fields, endpoint: Writable<Endpoint>): void {
  const topology = has(entry, 'topology') ? mapAt(entry, 'topology') : undefined
  const nodeName = plainNameAt(entry, 'nodeName') ?? (topology && nameAt(topology, hostLabel))
  const zone = plainNameAt(entry, 'zone') ?? (topology && nameAt(topology, zoneLabel))
  if (nodeName !== undefined) endpoint.nodeName = nodeName
  if (zone !== undefined) endpoint.zone = zone
}

function fillHints(hints: Fields, endpoint: Writable<Endpoint>): void {
  if (has(hints, 'forZones'))
    endpoint.forZones = mapsAt(hints, 'forZones').flatMap((zone) => plainNameAt(zone, 'name') ?? [])
  if (has(hints, 'forNodes'))
    endpoint.forNodes = mapsAt(hints, 'forNodes').flatMap((node) => plainNameAt(node, 'name') ?? [])
}

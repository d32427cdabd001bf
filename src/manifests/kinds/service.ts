/** Services, with the defaults that the API server applies to what is left out. */
import { type Family, familyOf } from '#base/ip'
import { describeValue, isRecord } from '#manifests/text/raw-object'
import type { Labels, Meta } from '#model/meta'
import type { LoadBalancerIngress, Service, ServiceType, TrafficPolicy } from '#model/service'
import { addressAt, addressesAt, cidrsAt } from './addresses'
import {
  type Bounds,
  type Fields,
  flagAt,
  has,
  itemsAt,
  mapAt,
  mapsAt,
  nameAt,
  numberAt,
  portOrZeroAt,
  report,
  wordAt,
} from './fields'
import { labelsAt } from './meta'
import { parseServicePorts } from './service-ports'
import type { Writable } from './writable'

const familyPolicies = ['SingleStack', 'PreferDualStack', 'RequireDualStack'] as const

/** A Service, and what its text left to the API server to choose. */
export type ServiceText = {
  readonly service: Writable<Service>
  readonly familyPolicy: (typeof familyPolicies)[number] | undefined
  /** False as well when it holds a ClusterIP that cannot be read: no other is chosen for it. */
  readonly lacksClusterIp: boolean
  readonly allocatesNodePorts: boolean
}

const types = ['ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName'] as const satisfies readonly ServiceType[]
const trafficPolicies = ['Cluster', 'Local'] as const satisfies readonly TrafficPolicy[]
const affinities = ['None', 'ClientIP'] as const
const ingressModes = ['VIP', 'Proxy'] as const
const affinityBounds: Bounds = { from: 1, to: 86400, noun: 'a number of seconds from 1 to 86400' }

export function parseService(root: Fields, meta: Meta): ServiceText {
  const spec = mapAt(root, 'spec')
  const type = wordAt(spec, 'type', types, 'the Service counts as ClusterIP') ?? 'ClusterIP'
  const clusterIPs = type === 'ExternalName' ? [] : parseClusterIps(spec)
  const service: Writable<Service> = {
    meta,
    type,
    clusterIPs,
    ipFamilies: type === 'ExternalName' ? [] : parseFamilies(spec, clusterIPs),
    ports: parseServicePorts(spec, type !== 'ExternalName' && clusterIPs[0] !== 'None'),
    externalIPs: addressesAt(spec, 'externalIPs'),
    loadBalancerIngress: parseIngress(root),
    loadBalancerSourceRanges: cidrsAt(spec, 'loadBalancerSourceRanges'),
    externalTrafficPolicy: wordAt(spec, 'externalTrafficPolicy', trafficPolicies, 'Cluster counts') ?? 'Cluster',
    internalTrafficPolicy: wordAt(spec, 'internalTrafficPolicy', trafficPolicies, 'Cluster counts') ?? 'Cluster',
    healthCheckNodePort: portOrZeroAt(spec, 'healthCheckNodePort'),
    publishNotReadyAddresses: flagAt(spec, 'publishNotReadyAddresses', 'it counts as false') ?? false,
  }
  fillOptional(spec, service)
  return {
    service,
    familyPolicy: wordAt(spec, 'ipFamilyPolicy', familyPolicies),
    lacksClusterIp: type !== 'ExternalName' && !hasClusterIp(spec),
    allocatesNodePorts:
      type === 'NodePort' ||
      (type === 'LoadBalancer' && flagAt(spec, 'allocateLoadBalancerNodePorts', 'it counts as true') !== false),
  }
}

function fillOptional(spec: Fields, service: Writable<Service>): void {
  const selector = parseSelector(spec)
  const affinitySeconds = parseAffinity(spec)
  const trafficDistribution = nameAt(spec, 'trafficDistribution')
  const externalName = nameAt(spec, 'externalName')
  if (Object.keys(selector).length > 0) service.selector = selector
  if (affinitySeconds !== undefined) service.affinitySeconds = affinitySeconds
  if (trafficDistribution !== undefined) service.trafficDistribution = trafficDistribution
  if (externalName !== undefined) service.externalName = externalName
}

/** Empty is none. One that cannot be read in full would find too many pods, so it counts as none. */
function parseSelector(spec: Fields): Labels {
  const selector = labelsAt(spec, 'selector')
  const raw = spec.values.selector
  if (!isRecord(raw) || Object.keys(selector).length === Object.keys(raw).length) return selector
  report(spec, 'selector', { message: 'a part of the selector cannot be read, so the Service counts as one without' })
  return {}
}

function hasClusterIp(spec: Fields): boolean {
  return (has(spec, 'clusterIP') && spec.values.clusterIP !== '') || itemsAt(spec, 'clusterIPs').length > 0
}

/** `clusterIPs` from `clusterIP` when that stands alone; `None` makes a Service headless. */
function parseClusterIps(spec: Fields): readonly string[] {
  const items = itemsAt(spec, 'clusterIPs')
  const first = spec.values.clusterIP
  if (items.length === 0) return first === 'None' ? ['None'] : [addressAt(spec, 'clusterIP')].flatMap((ip) => ip ?? [])
  if (typeof first === 'string' && first !== '' && first !== items[0]) {
    const message = `${describeValue(first)} is not what clusterIPs begins with; clusterIPs counts`
    report(spec, 'clusterIP', { code: 'manifest.bad-value', message, hint: 'make them agree' })
  }
  if (items[0] === 'None') return ['None']
  return addressesAt(spec, 'clusterIPs')
}

/** Empty when neither addresses nor `ipFamilies` tell them: they depend on the cluster. */
function parseFamilies(spec: Fields, clusterIPs: readonly string[]): readonly Family[] {
  const told = itemsAt(spec, 'ipFamilies').flatMap((item, index): Family[] => {
    if (item === 'IPv4') return ['ipv4']
    if (item === 'IPv6') return ['ipv6']
    const message = `${describeValue(item)} is neither IPv4 nor IPv6; it is left out`
    report(spec, `ipFamilies[${index}]`, { code: 'manifest.bad-value', message })
    return []
  })
  if (clusterIPs.length === 0 || clusterIPs[0] === 'None') return told
  const shown = clusterIPs.map(familyOf)
  if (told.length > 0 && shown.some((family, index) => told[index] !== family)) {
    const message = 'they are not the families of clusterIPs; the addresses count'
    report(spec, 'ipFamilies', { code: 'service.family-mismatch', message, hint: 'make them agree' })
    return shown
  }
  return told.length > shown.length ? told : shown
}

function parseAffinity(spec: Fields): number | undefined {
  if (wordAt(spec, 'sessionAffinity', affinities, 'None counts') !== 'ClientIP') return undefined
  const clientIp = mapAt(mapAt(spec, 'sessionAffinityConfig'), 'clientIP')
  return numberAt(clientIp, 'timeoutSeconds', affinityBounds, '10800 counts') ?? 10800
}

function parseIngress(root: Fields): readonly LoadBalancerIngress[] {
  if (!has(root, 'status')) return []
  return mapsAt(mapAt(mapAt(root, 'status'), 'loadBalancer'), 'ingress').map((entry) => {
    const ingress: Writable<LoadBalancerIngress> = {
      ipMode: wordAt(entry, 'ipMode', ingressModes, 'VIP counts') ?? 'VIP',
    }
    const ip = addressAt(entry, 'ip')
    const hostname = nameAt(entry, 'hostname')
    if (ip !== undefined) ingress.ip = ip
    if (hostname !== undefined) ingress.hostname = hostname
    return ingress
  })
}

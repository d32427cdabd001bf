/** Services and slices to the plan of one node and family, as kube-proxy derives it before it writes any rule. */
import type { Finding, Parsed } from '#base/finding'
import { type Family, familyOf, parseIp } from '#base/ip'
import { containsIp, parsePrefix } from '#base/prefix'
import { compareText } from '#base/text'
import type { Cluster } from '#model/cluster'
import { type EndpointSlice, proxyNameLabel } from '#model/endpoint-slice'
import { refOf } from '#model/meta'
import { nodeIps } from '#model/node'
import { isHeadless, type Service, type ServicePort } from '#model/service'
import { chooseEndpoints, ignoresHints } from './choose-endpoints'
import { collectEndpoints, indexSlices, isHidden } from './collect-endpoints'
import { findingAt } from './findings'
import { localTraffic } from './local-traffic'
import { nodePortAddresses } from './node-port-addresses'
import { keptPorts, noteExposure, noteHiddenSlices, notePorts, noteSkipped } from './note-services'
import { defaultSettings, type ProxySettings } from './proxy-settings'
import type {
  PlannedEndpoint,
  ProxyNode,
  ServicePlan,
  ServicePortPlan,
  SkippedService,
  SkipReason,
} from './service-plan'

export type PlanOptions = {
  readonly family: Family
  /** Left out: no endpoint is local. */
  readonly node?: ProxyNode
  readonly settings?: Partial<ProxySettings>
}

type Planner = {
  readonly family: Family
  readonly node: ProxyNode
  readonly settings: ProxySettings
  readonly slices: ReadonlyMap<string, readonly EndpointSlice[]>
  readonly findings: Finding[]
}

export const noNode: ProxyNode = { ips: [], labels: {}, podCIDRs: [] }

/** What kube-proxy on a node of the cluster knows of it; a name that no Node has still makes endpoints local. */
export function proxyNodeOf(cluster: Cluster, name: string): ProxyNode {
  const node = cluster.nodes.get(name)
  if (node === undefined) return { ...noNode, name }
  return { name, ips: nodeIps(node), labels: node.meta.labels, podCIDRs: node.podCIDRs }
}

export function planServices(
  cluster: Cluster,
  slices: Iterable<EndpointSlice>,
  options: PlanOptions,
): Parsed<ServicePlan> {
  const { family, node = noNode } = options
  const settings = { ...defaultSettings, ...options.settings }
  const findings: Finding[] = []
  const visible = noteHiddenSlices(slices, { services: cluster.services, family, findings })
  const planner: Planner = { family, node, settings, slices: indexSlices(visible, family, findings), findings }
  const ports: ServicePortPlan[] = []
  const skipped: SkippedService[] = []
  let endpointCount = 0
  for (const service of sortServices(cluster.services.values())) {
    const clusterIP = clusterIpOf(service, family)
    const why = skipReasonOf(service, clusterIP)
    if (clusterIP === undefined || why !== undefined) {
      const reason = why ?? 'no-cluster-ip-in-family'
      skipped.push({ service: refOf(service.meta), why: reason })
      noteSkipped(service, reason, findings)
      continue
    }
    noteExposure(service, findings)
    for (const plan of planService(service, clusterIP, planner)) {
      ports.push(plan)
      endpointCount += plan.endpoints.length
    }
  }
  noteMissingNode(ports, planner)
  noteNodePorts(ports, planner)
  const local = localTraffic(settings, { family, podCIDRs: node.podCIDRs })
  const plan = { family, node, settings, ports, skipped, endpointCount }
  return { value: local === undefined ? plan : { ...plan, localTraffic: local }, findings }
}

function sortServices(services: Iterable<Service>): readonly Service[] {
  return [...services].sort(
    (a, b) => compareText(a.meta.namespace, b.meta.namespace) || compareText(a.meta.name, b.meta.name),
  )
}

/** pkg/proxy/util GetClusterIPByFamily (1.34): families and cluster IPs go in pairs. */
function clusterIpOf({ ipFamilies, clusterIPs }: Service, family: Family): string | undefined {
  if (ipFamilies.length > 0) return clusterIPs[ipFamilies.indexOf(family)]
  const [first] = clusterIPs
  return first !== undefined && first !== 'None' && familyOf(first) === family ? first : undefined
}

function skipReasonOf(service: Service, clusterIP: string | undefined): SkipReason | undefined {
  if (isHidden(service)) return Object.hasOwn(service.meta.labels, proxyNameLabel) ? 'other-proxy' : 'headless-label'
  if (service.type === 'ExternalName') return 'external-name'
  if (isHeadless(service)) return 'headless'
  if (service.clusterIPs.length === 0) return 'no-cluster-ip'
  return clusterIP === undefined ? 'no-cluster-ip-in-family' : undefined
}

function planService(service: Service, clusterIP: string, planner: Planner): readonly ServicePortPlan[] {
  const { family, node, findings } = planner
  const slices = planner.slices.get(`${service.meta.namespace}/${service.meta.name}`) ?? []
  notePorts(service, slices, findings)
  const isFamily = (ip: string): boolean => familyOf(ip) === family
  const loadBalancerSourceRanges = service.loadBalancerSourceRanges.filter(isFamily)
  const shared = {
    service,
    clusterIP,
    externalIPs: service.externalIPs.filter(isFamily),
    loadBalancerVIPs: service.loadBalancerIngress.flatMap(({ ip, ipMode }) =>
      ip !== undefined && ipMode === 'VIP' && isFamily(ip) ? [ip] : [],
    ),
    loadBalancerSourceRanges,
    allowsNode: holdsNode(loadBalancerSourceRanges, node.ips.find(isFamily)),
    healthCheckNodePort: hasHealthCheck(service) ? service.healthCheckNodePort : 0,
    isInternalLocal: service.internalTrafficPolicy === 'Local',
    isExternalLocal: isExternalLocal(service),
    ...(service.affinitySeconds !== undefined && { affinitySeconds: service.affinitySeconds }),
  }
  return keptPorts(service, findings).map((port) => {
    const endpoints = collectEndpoints(port, slices, { family, nodeName: node.name, findings })
    return planPort(shared, port, { endpoints, planner })
  })
}

type SharedFields = Pick<
  ServicePortPlan,
  | 'service'
  | 'clusterIP'
  | 'externalIPs'
  | 'loadBalancerVIPs'
  | 'loadBalancerSourceRanges'
  | 'allowsNode'
  | 'healthCheckNodePort'
  | 'isInternalLocal'
  | 'isExternalLocal'
> & { readonly affinitySeconds?: number }

/** Mirrors pkg/proxy/serviceport.go (1.34). */
function planPort(
  shared: SharedFields,
  servicePort: ServicePort,
  { endpoints, planner }: { readonly endpoints: readonly PlannedEndpoint[]; readonly planner: Planner },
): ServicePortPlan {
  const { isInternalLocal, isExternalLocal, externalIPs, loadBalancerVIPs, service } = shared
  const { nodePort } = servicePort
  const isExternallyAccessible = nodePort !== 0 || loadBalancerVIPs.length > 0 || externalIPs.length > 0
  const usesClusterEndpoints = !isInternalLocal || isExternallyAccessible
  const usesLocalEndpoints = isInternalLocal || (isExternalLocal && isExternallyAccessible)
  const chosen = chooseEndpoints(endpoints, {
    usesClusterEndpoints,
    usesLocalEndpoints,
    node: planner.node,
    hasNodeHints: planner.settings.preferSameTrafficDistribution,
  })
  if (usesClusterEndpoints && ignoresHints(endpoints, chosen.topologyMode))
    noteHints(shared.service, servicePort, planner)
  const hasLocal = chosen.local.length > 0
  // Field by field: engines keep an object that is spread into many more fields as a table.
  const plan: ServicePortPlan = {
    service,
    clusterIP: shared.clusterIP,
    externalIPs,
    loadBalancerVIPs,
    loadBalancerSourceRanges: shared.loadBalancerSourceRanges,
    allowsNode: shared.allowsNode,
    healthCheckNodePort: shared.healthCheckNodePort,
    isInternalLocal,
    isExternalLocal,
    name: servicePortName(service, servicePort),
    servicePort,
    protocol: protocols[servicePort.protocol],
    port: servicePort.port,
    nodePort,
    isExternallyAccessible,
    usesClusterEndpoints,
    usesLocalEndpoints,
    endpoints,
    chosen,
    hasInternal: chosen.hasAny && (!isInternalLocal || hasLocal),
    hasExternal: chosen.hasAny && (!isExternalLocal || hasLocal),
  }
  return shared.affinitySeconds === undefined ? plan : { ...plan, affinitySeconds: shared.affinitySeconds }
}

const protocols = { TCP: 'tcp', UDP: 'udp', SCTP: 'sctp' } as const

/** `namespace/name`, and `:port` when the port has a name. */
export function servicePortName({ meta }: Service, { name }: ServicePort): string {
  return name === '' ? `${meta.namespace}/${meta.name}` : `${meta.namespace}/${meta.name}:${name}`
}

/** pkg/api/v1/service ExternalPolicyLocal (1.34): the field counts only where traffic can come from outside. */
function isExternalLocal({ externalTrafficPolicy, type, externalIPs }: Service): boolean {
  return externalTrafficPolicy === 'Local' && (type !== 'ClusterIP' || externalIPs.length > 0)
}

function hasHealthCheck({ type, externalTrafficPolicy }: Service): boolean {
  return type === 'LoadBalancer' && externalTrafficPolicy === 'Local'
}

function holdsNode(ranges: readonly string[], nodeIp: string | undefined): boolean {
  const ip = nodeIp === undefined ? undefined : parseIp(nodeIp)
  if (ip === undefined) return false
  return ranges.some((text) => {
    const prefix = parsePrefix(text)?.prefix
    return prefix !== undefined && containsIp(prefix, ip)
  })
}

function noteHints(service: Service, port: ServicePort, { node, findings }: Planner): void {
  if (node.name === undefined) return
  const message =
    `topology hints of port ${port.port}/${port.protocol} do not count on ${node.name}: ` +
    "a ready endpoint has none, or none is for this node's zone"
  findings.push(findingAt(service.meta, 'services.hints-ignored', { message, path: 'spec.trafficDistribution' }))
}

function noteMissingNode(ports: readonly ServicePortPlan[], { node, findings }: Planner): void {
  if (node.name !== undefined) return
  const first = ports.find(({ usesLocalEndpoints }) => usesLocalEndpoints)
  if (first === undefined) return
  const message =
    'no node is named, so no endpoint is local; traffic policy Local finds none, here and in other Services'
  findings.push(findingAt(first.service.meta, 'services.no-node', { message, hint: 'name the node with --node' }))
}

function noteNodePorts(ports: readonly ServicePortPlan[], { family, node, settings, findings }: Planner): void {
  const first = ports.find(({ nodePort }) => nodePort !== 0)
  if (first === undefined || node.ips.length === 0) return
  const addresses = nodePortAddresses(settings, { family, ips: node.ips }, 'all')
  if (addresses.kind === 'all' || addresses.ips.length > 0) return
  const message =
    `nodePortAddresses (${settings.nodePortAddresses.join(', ')}) hold none of the node's known addresses: ` +
    'node ports answer nowhere, here and in other Services'
  findings.push(findingAt(first.service.meta, 'services.node-port-addresses-unmatched', { message }))
}

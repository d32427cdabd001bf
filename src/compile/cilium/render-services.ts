/** The load balancer's maps of a node: services with their slots, backends, reverse NAT, Maglev tables, affinity and source ranges. Mirrors pkg/loadbalancer and pkg/maps/lbmap, Cilium 1.16 to 1.19. */
import { type Family, type Ip, printIp } from '#base/ip'
import { type Prefix, parsePrefix } from '#base/prefix'
import { planServices, proxyNodeOf } from '#compile/services/plan-services'
import type { ServicePlan, ServicePortPlan } from '#compile/services/service-plan'
import { isAtLeast } from '#model/cilium-version'
import { refOf } from '#model/meta'
import { mapsFinding } from './findings'
import { type FrontendAddress, frontendsOf, nodePortIps } from './frontends'
import { hostPortFrontends } from './host-ports'
import { type BackendRow, type Lb, type ServiceRow, startLb } from './lb-rows'
import { localRedirects } from './local-redirects'
import { type RowSource, sourceOf } from './map-source'
import type { NodeWorld } from './node-world'
import { backendsOf, type PortBackend, slotsOf } from './service-backends'
import { type FrontendType, flagsOfFrontend, serviceFlags } from './service-flags'

export type SourceRangeRow = { readonly revNat: number; readonly prefix: Prefix; readonly source: RowSource }

export type LbMaps = {
  readonly services: readonly ServiceRow[]
  readonly backends: readonly BackendRow[]
  readonly sourceRanges: readonly SourceRangeRow[]
}

export function renderServices(world: NodeWorld): LbMaps {
  const lb = startLb(world)
  const redirected = addRedirects(world, lb)
  const nodeIps = { ipv4: nodePortIps(world, 'ipv4'), ipv6: nodePortIps(world, 'ipv6') }
  for (const plan of portPlans(world)) addPort(world, lb, { plan, redirected, nodeIps })
  for (const one of hostPortFrontends(world, lb)) lb.addFrontend(one)
  addWildcards(world, lb)
  return { services: lb.services, backends: [...lb.backends.values()], sourceRanges: lb.sourceRanges }
}

/** Both families of one Service stand together, as its numbers do. */
function portPlans(world: NodeWorld): readonly ServicePortPlan[] {
  const node = proxyNodeOf(world.cluster, world.node)
  const plans = world.settings.families.map((family): ServicePlan => {
    const { value, findings } = planServices(world.cluster, world.slices, { family, node })
    world.findings.push(...findings.filter(({ code }) => /^services\.(?:slice-port|endpoint-of)/.test(code)))
    return value
  })
  const [first, second] = plans
  if (first === undefined || second === undefined) return first?.ports ?? []
  const later = new Map<string, ServicePortPlan>(second.ports.map((port) => [port.name, port]))
  const paired = first.ports.flatMap((port) => {
    const other = later.get(port.name)
    later.delete(port.name)
    return other === undefined ? [port] : [port, other]
  })
  return [...paired, ...later.values()]
}

type PortFacts = {
  readonly plan: ServicePortPlan
  readonly redirected: ReadonlySet<string>
  readonly nodeIps: Readonly<Record<Family, readonly Ip[]>>
}

function addPort(world: NodeWorld, lb: Lb, { plan, redirected, nodeIps }: PortFacts): void {
  const { settings } = world
  const backends = backendsOf(plan, settings.hasServiceTopology)
  const family = plan.clusterIP.includes(':') ? 'ipv6' : 'ipv4'
  tellEmpty(world, plan, backends)
  // One that ends keeps its row, and its connections with it, though no slot names it.
  for (const backend of backends) lb.backendOf(backend, plan.servicePort.protocol)
  for (const frontend of frontendsOf(plan, nodeIps[family], settings)) {
    const protocol = lb.protocolOf(plan.servicePort.protocol)
    if (redirected.has(`${printIp(frontend.ip)} ${frontend.port} ${protocol}`)) continue
    for (const scope of scopesOf(plan, frontend)) addScope(world, lb, { plan, frontend, backends, scope })
  }
}

type Scope = 'external' | 'internal'

function policiesFor({ isExternalLocal, isInternalLocal }: ServicePortPlan, type: FrontendType) {
  return { isExternalLocal: isExternalLocal && type !== 'ClusterIP', isInternalLocal }
}

/** Two rows where inside and outside traffic have different backends; a ClusterIP is met from inside alone. */
function scopesOf(plan: ServicePortPlan, { type }: FrontendAddress): readonly Scope[] {
  const { isExternalLocal, isInternalLocal } = policiesFor(plan, type)
  return isExternalLocal !== isInternalLocal && type !== 'ClusterIP' ? ['external', 'internal'] : ['external']
}

type ScopeFacts = {
  readonly plan: ServicePortPlan
  readonly frontend: FrontendAddress
  readonly backends: readonly PortBackend[]
  readonly scope: Scope
}

function addScope(world: NodeWorld, lb: Lb, { plan, frontend, backends, scope }: ScopeFacts): void {
  const { settings } = world
  const { type, ip, port, isSurrogate, path } = frontend
  const { isExternalLocal, isInternalLocal } = policiesFor(plan, type)
  const isLocalOnly = type === 'ClusterIP' || scope === 'internal' ? isInternalLocal : isExternalLocal
  const ranges = rangesOf(world, plan, type)
  const { meta } = plan.service
  const row = lb.addFrontend({
    type,
    ip,
    port,
    protocol: plan.servicePort.protocol,
    scope,
    isSurrogate,
    flags: flagsOfFrontend({
      type,
      isExternalLocal,
      isInternalLocal,
      hasAffinity: settings.hasAffinity && plan.affinitySeconds !== undefined,
      isRoutable: !isSurrogate && (type !== 'ClusterIP' || settings.hasExternalClusterIp),
      hasSourceRanges: ranges.length > 0,
      deniesSources: meta.annotations['service.cilium.io/src-ranges-policy'] === 'deny',
    }),
    ...(settings.hasAffinity && plan.affinitySeconds !== undefined && { affinitySeconds: plan.affinitySeconds }),
    algorithm: algorithmOf(meta.annotations['service.cilium.io/lb-algorithm']),
    slots: slotsOf(backends, isLocalOnly).map((one) => lb.backendOf(one, plan.servicePort.protocol)),
    source: sourceOf('services', meta, { path }),
  })
  for (const { prefix, path: at } of ranges) {
    lb.sourceRanges.push({ revNat: row.revNat, prefix, source: sourceOf('services', meta, { path: at }) })
  }
}

/** Ranges guard load balancer addresses alone, unless all types are asked for. */
function rangesOf(
  { settings }: NodeWorld,
  { service, clusterIP }: ServicePortPlan,
  type: FrontendType,
): readonly { readonly prefix: Prefix; readonly path: string }[] {
  if (!settings.checksSourceRanges || !(type === 'LoadBalancer' || settings.checksRangesOfAllTypes)) return []
  const isIpv6 = clusterIP.includes(':')
  return service.loadBalancerSourceRanges.flatMap((text, index) => {
    const prefix = parsePrefix(text)?.prefix
    const path = `spec.loadBalancerSourceRanges[${index}]`
    return prefix === undefined || (prefix.ip.family === 'ipv6') !== isIpv6 ? [] : [{ prefix, path }]
  })
}

function algorithmOf(text: string | undefined): number {
  return text === 'random' ? 1 : text === 'maglev' ? 2 : 0
}

function tellEmpty(
  { findings }: NodeWorld,
  { service, servicePort }: ServicePortPlan,
  backends: readonly PortBackend[],
): void {
  if (backends.length > 0) return
  findings.push(
    mapsFinding('maps.no-backends', {
      message: `port ${servicePort.port}/${servicePort.protocol} has no backends: its row has count 0, and packets to it are dropped with reason 158 or rejected`,
      object: refOf(service.meta),
      origin: service.meta.origin,
      path: `spec.ports[${service.ports.indexOf(servicePort)}]`,
    }),
  )
}

/** Frontends that a policy redirects are taken from their Service. */
function addRedirects(world: NodeWorld, lb: Lb): ReadonlySet<string> {
  const taken = new Set<string>()
  for (const { policy, ip, port, protocol, backends } of localRedirects(world)) {
    if (!world.settings.families.includes(ip.family)) continue
    const slots = backends.map((one) =>
      lb.addBackend({
        ip: one.ip,
        port: one.port,
        protocol,
        state: 'active',
        source: sourceOf('redirects', one.pod.pod.meta, {
          path: one.pod.ips.find(({ ip: own }) => own === one.ip)?.path ?? '',
        }),
      }),
    )
    const path =
      policy.frontend.kind === 'service'
        ? 'spec.redirectFrontend.serviceMatcher'
        : 'spec.redirectFrontend.addressMatcher'
    lb.addFrontend({
      type: 'LocalRedirect',
      ip,
      port,
      protocol,
      scope: 'external',
      isSurrogate: false,
      flags: serviceFlags.localRedirect | serviceFlags.routable,
      algorithm: 0,
      slots,
      source: sourceOf('redirects', policy.meta, { path }),
    })
    taken.add(`${printIp(ip)} ${port} ${lb.protocolOf(protocol)}`)
  }
  return taken
}

/** From 1.18 on: other ports of a load balancer's address are dropped here, and not sent to the gateway and back. */
function addWildcards(world: NodeWorld, lb: Lb): void {
  if (!isAtLeast(world.settings.policy.version, '1.18')) return
  const seen = new Set<string>()
  for (const { type, ip, source } of [...lb.services]) {
    if ((type !== 'LoadBalancer' && type !== 'ExternalIPs') || seen.has(printIp(ip))) continue
    seen.add(printIp(ip))
    lb.services.push(wildcard(type, ip, source))
  }
}

function wildcard(type: FrontendType, ip: Ip, source: RowSource): ServiceRow {
  const flags = (type === 'LoadBalancer' ? serviceFlags.loadBalancer : serviceFlags.externalIps) | serviceFlags.routable
  const note = 'ports of this address that no Service has'
  const plain = {
    scope: 'external',
    port: 0,
    protocol: 0,
    revNat: 0,
    algorithm: 0,
    slots: [],
    isSurrogate: false,
  } as const
  return { type, ip, flags, ...plain, isWildcard: true, source: { ...source, note } }
}

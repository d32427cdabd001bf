/** What is worth telling about a Service before its rules are made: why it gets none, or fewer than it seems. */
import type { Finding } from '#base/finding'
import { type Family, familyOf } from '#base/ip'
import { listOf } from '#base/text'
import { type EndpointSlice, headlessLabel, proxyNameLabel, serviceNameLabel } from '#model/endpoint-slice'
import type { Service, ServicePort } from '#model/service'
import { isHidden } from './collect-endpoints'
import { findingAt } from './findings'
import type { SkipReason } from './service-plan'

/** Skips that everybody expects (ExternalName, a plain headless Service, the other family) are not told. */
export function noteSkipped(service: Service, why: SkipReason, findings: Finding[]): void {
  switch (why) {
    case 'other-proxy': {
      const proxy = service.meta.labels[proxyNameLabel] ?? ''
      const message = `label ${proxyNameLabel}="${proxy}" leaves it to another proxy: kube-proxy makes no rules`
      findings.push(findingAt(service.meta, 'services.other-proxy', { message, path: 'metadata.labels' }))
      return
    }
    case 'headless-label': {
      if (service.clusterIPs[0] === 'None' || service.clusterIPs.length === 0) return
      const message = `label ${headlessLabel} hides it and its slices from kube-proxy: no rules, though it has a cluster IP`
      findings.push(findingAt(service.meta, 'services.headless-label', { message, path: 'metadata.labels' }))
      return
    }
    case 'headless':
      noteHeadless(service, findings)
      return
    case 'no-cluster-ip': {
      const message = 'it has no cluster IP, so kube-proxy passes it over'
      findings.push(findingAt(service.meta, 'services.no-cluster-ip', { message, path: 'spec.clusterIP' }))
      return
    }
    case 'external-name':
    case 'no-cluster-ip-in-family':
      return
    default:
      why satisfies never
  }
}

function noteHeadless(service: Service, findings: Finding[]): void {
  const exposed = [
    ...service.externalIPs,
    ...service.loadBalancerIngress.flatMap(({ ip }) => (ip === undefined ? [] : [ip])),
    ...service.ports.flatMap(({ nodePort }) => (nodePort === 0 ? [] : [`node port ${nodePort}`])),
  ]
  if (exposed.length === 0) return
  const message = `it is headless, so kube-proxy makes no rules at all, not even for ${listOf(exposed)}`
  findings.push(findingAt(service.meta, 'services.headless-exposed', { message }))
}

export function noteExposure(service: Service, findings: Finding[]): void {
  const hasFamily = (ip: string): boolean =>
    service.ipFamilies.length === 0
      ? service.clusterIPs.some((own) => familyOf(own) === familyOf(ip))
      : service.ipFamilies.includes(familyOf(ip))
  const vips = service.loadBalancerIngress.flatMap(({ ip, ipMode }) =>
    ip === undefined || ipMode === 'Proxy' ? [] : [ip],
  )
  const lost = [...service.externalIPs, ...vips].filter((ip) => !hasFamily(ip))
  if (lost.length > 0) {
    const message = `${listOf(lost)} gets no rules: the Service has no cluster IP of that family`
    findings.push(findingAt(service.meta, 'services.address-without-family', { message }))
  }
  const needsHealthCheck = service.type === 'LoadBalancer' && service.externalTrafficPolicy === 'Local'
  if (needsHealthCheck && service.healthCheckNodePort === 0) {
    const message = 'externalTrafficPolicy is Local but there is no healthCheckNodePort for the load balancer to ask'
    const path = 'spec.healthCheckNodePort'
    findings.push(findingAt(service.meta, 'services.no-health-check-port', { message, path }))
  }
}

/**
 * pkg/proxy/servicechangetracker.go serviceToServiceMap (1.34): ports go into a map by name and protocol, so of two that
 * agree in both the later stays.
 */
export function keptPorts(service: Service, findings: Finding[]): readonly ServicePort[] {
  const last = new Map(service.ports.map((port) => [`${port.name}/${port.protocol}`, port]))
  if (last.size === service.ports.length) return service.ports
  const kept = new Set(last.values())
  for (const [at, port] of service.ports.entries()) {
    if (kept.has(port)) continue
    const { name, protocol } = port
    const later = last.get(`${name}/${protocol}`)?.port
    const alike =
      name === '' ? `is unnamed, as is the later port ${later}` : `is named "${name}", as is the later port ${later}`
    const message = `port ${port.port}/${protocol} ${alike}/${protocol}: kube-proxy keeps that one alone`
    const path = `spec.ports[${at}].name`
    const hint = 'give each port its own name'
    findings.push(findingAt(service.meta, 'services.port-replaced', { message, path, hint }))
  }
  return service.ports.filter((port) => kept.has(port))
}

/** A Service port whose name no slice port has, while slices with endpoints have ports of other names. */
export function notePorts(service: Service, slices: readonly EndpointSlice[], findings: Finding[]): void {
  const offered = slices.flatMap(({ ports, endpoints }) => (endpoints.length === 0 ? [] : ports))
  if (offered.length === 0) return
  for (const [at, { name, protocol }] of service.ports.entries()) {
    if (offered.some((port) => port.name === name && port.protocol === protocol)) continue
    const names = [...new Set(offered.map((port) => `"${port.name ?? ''}"/${port.protocol}`))]
    const message = `no slice has a port "${name}"/${protocol}, only ${listOf(names)}: the port has no endpoints`
    const path = `spec.ports[${at}].name`
    findings.push(findingAt(service.meta, 'services.port-name-mismatch', { message, path }))
  }
}

/** Hands on the slices that kube-proxy sees, and tells of those that are hidden though their Service is not. */
export function* noteHiddenSlices(
  slices: Iterable<EndpointSlice>,
  options: { readonly services: ReadonlyMap<string, Service>; readonly family: Family; readonly findings: Finding[] },
): Generator<EndpointSlice> {
  const { services, family, findings } = options
  for (const slice of slices) {
    if (!isHidden(slice)) {
      yield slice
      continue
    }
    const service = services.get(`${slice.meta.namespace}/${slice.meta.labels[serviceNameLabel]}`)
    const isOfFamily = slice.addressType === (family === 'ipv4' ? 'IPv4' : 'IPv6')
    if (service === undefined || isHidden(service) || service.clusterIPs[0] === 'None' || !isOfFamily) continue
    const message = `a label hides the slice from kube-proxy: its endpoints do not count for ${service.meta.name}`
    findings.push(findingAt(slice.meta, 'services.hidden-slice', { message, path: 'metadata.labels' }))
  }
}

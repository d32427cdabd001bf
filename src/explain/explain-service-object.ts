/** The Service object itself: what it asks for, and what hides it or binds its clients. */
import { countOf, listOf } from '#base/text'
import { isHeadless, type Service, type ServicePort } from '#model/service'
import { adoptFinding } from './adopt-finding'
import { type ExplainFinding, type Layer, layerOf } from './explanation'
import { explainFinding } from './findings'
import { placeFinding } from './place-finding'
import type { ServiceView } from './service-view'

export function explainServiceObject(view: ServiceView): Layer {
  const { service } = view
  const told = view.findings.filter((finding) => placeFinding(finding) === 'service')
  return layerOf('service', {
    facts: factsOf(service),
    findings: [...told.map((finding) => adoptFinding(finding)), ...affinityFindings(view)],
  })
}

function factsOf(service: Service): readonly string[] {
  const { type, externalName, selector } = service
  if (type === 'ExternalName') return [`ExternalName ${externalName ?? ''}: a name and nothing else`]
  const ips = isHeadless(service)
    ? 'headless (no cluster IP)'
    : `cluster IP ${listOf(service.clusterIPs) || 'none yet'}`
  const labels = Object.entries(selector ?? {}).map(([key, value]) => `${key}=${value}`)
  return [
    `type ${type}, ${ips}${externalText(service)}`,
    ...service.ports.map(portText),
    labels.length === 0 ? 'no selector: its endpoints are made by someone else' : `selector ${labels.join(',')}`,
    ...policyFacts(service),
  ]
}

function externalText({ externalIPs, loadBalancerIngress }: Service): string {
  const vips = loadBalancerIngress.map(({ ip, hostname }) => ip ?? hostname ?? '?')
  const external = externalIPs.length > 0 ? `, external IPs ${listOf(externalIPs)}` : ''
  return vips.length > 0 ? `${external}, load balancer ${listOf(vips)}` : external
}

function portText({ name, port, protocol, targetPort, nodePort }: ServicePort): string {
  const named = name === '' ? '' : `${name} `
  const node = nodePort === 0 ? '' : `, node port ${nodePort}`
  const target = typeof targetPort === 'number' ? `port ${targetPort}` : `the port named "${targetPort}"`
  return `port ${named}${port}/${protocol}${node} goes to ${target} of the pods`
}

function policyFacts(service: Service): readonly string[] {
  const { affinitySeconds, loadBalancerSourceRanges, trafficDistribution } = service
  return [
    ...(service.externalTrafficPolicy === 'Local' ? ['externalTrafficPolicy Local'] : []),
    ...(service.internalTrafficPolicy === 'Local' ? ['internalTrafficPolicy Local'] : []),
    ...(affinitySeconds === undefined ? [] : [`sessionAffinity ClientIP, ${affinitySeconds} s`]),
    ...(loadBalancerSourceRanges.length === 0 ? [] : [`loadBalancerSourceRanges ${listOf(loadBalancerSourceRanges)}`]),
    ...(trafficDistribution === undefined ? [] : [`trafficDistribution ${trafficDistribution}`]),
    ...(service.publishNotReadyAddresses ? ['publishNotReadyAddresses: pods count as ready from the start'] : []),
  ]
}

/** The list of clients is kept for each endpoint of each port, and an entry lives on from the client's last connection. */
function affinityFindings(view: ServiceView): readonly ExplainFinding[] {
  const { service } = view
  if (service.affinitySeconds === undefined) return []
  const findings: ExplainFinding[] = []
  const plan = view.plans.flatMap(({ ports }) => ports).find(({ endpoints }) => endpoints.length > 1)
  if (plan !== undefined) {
    const ready = plan.endpoints.filter(({ isReady }) => isReady).map(({ text }) => text)
    findings.push(
      explainFinding('explain.affinity-pinning', {
        about: service.meta,
        path: 'spec.sessionAffinity',
        message: `a client stays with its endpoint until ${service.affinitySeconds} s after its last connection; new pods get new clients only, and clients behind one address count as one`,
        evidence: [`${countOf(ready.length, 'ready endpoint')} of port ${plan.port}: ${listOf(ready)}`],
        hint: 'to spread clients again, wait that long, shorten timeoutSeconds, or set sessionAffinity: None',
      }),
    )
  }
  if (service.ports.length > 1) {
    findings.push(
      explainFinding('explain.affinity-per-port', {
        about: service.meta,
        path: 'spec.sessionAffinity',
        message: 'affinity is kept for each port apart: a client may reach one pod on one port and another on the next',
        evidence: service.ports.map(
          ({ name, port, protocol }) => `port ${name === '' ? '' : `${name} `}${port}/${protocol}`,
        ),
        hint: 'serve what must stay together on one port',
      }),
    )
  }
  return findings
}

/** The name: what cluster DNS answers for the Service, and whether anyone is there to answer. */
import { type Family, familyOf, parseIp } from '#base/ip'
import { compareText, countOf, listOf } from '#base/text'
import type { Endpoint } from '#model/endpoint-slice'
import { keyOf } from '#model/meta'
import { isHeadless, type Service } from '#model/service'
import { endpointsOf, nameEndpoint, stateOf } from './describe-endpoint'
import { type ExplainFinding, type Layer, layerOf } from './explanation'
import { explainFinding } from './findings'
import { focusOn, serviceSlices } from './service-slices'
import type { ServiceView } from './service-view'

type Told = { readonly facts: readonly string[]; readonly findings: readonly ExplainFinding[] }

export function explainName(view: ServiceView): Layer {
  const { service } = view
  const own =
    service.type === 'ExternalName'
      ? explainExternalName(view)
      : isHeadless(service)
        ? explainHeadlessName(view)
        : { facts: addressFacts(view), findings: [] }
  const server = explainServer(view)
  return layerOf('name', {
    facts: [...own.facts, ...server.facts],
    findings: [...own.findings, ...server.findings],
  })
}

function fullName({ input, service }: ServiceView, of: Service = service): string {
  return `${of.meta.name}.${of.meta.namespace}.svc.${input.clusterDomain}`
}

const recordOf: Readonly<Record<Family, string>> = { ipv4: 'A', ipv6: 'AAAA' }

function addressFacts(view: ServiceView): readonly string[] {
  const { clusterIPs } = view.service
  if (clusterIPs.length === 0) return [`${fullName(view)} has no answer: the Service has no cluster IP`]
  return clusterIPs.map((ip) => `${fullName(view)} ${recordOf[familyOf(ip)]} ${ip}, whatever its endpoints do`)
}

/** CoreDNS answers with every endpoint that is ready, nil counting as ready, and NXDOMAIN when there is none. */
function explainHeadlessName(view: ServiceView): Told {
  const { service, slices } = view
  const used = slices.used.filter(({ addressType }) => addressType !== 'FQDN')
  const all = [...endpointsOf(used)].map(({ endpoint }) => endpoint)
  const answered = all.filter((endpoint) => stateOf(endpoint).isReady)
  if (answered.length === 0) return { facts: [], findings: [nameWithoutAnswer(view, all)] }
  const facts = view.families.flatMap((family) => {
    const ips = [...new Set(answered.flatMap(({ addresses }) => addresses.filter((ip) => familyOf(ip) === family)))]
    return ips.length === 0 ? [] : [`${fullName(view)} ${recordOf[family]} ${listOf(ips.sort(compareText))}`]
  })
  const unready = answered.filter((endpoint) => !stateOf(endpoint).isServing)
  const findings = [...compareAnswer(view, answered)]
  if (unready.length > 0 && service.publishNotReadyAddresses) findings.push(answersNotReady(view, unready))
  return { facts, findings }
}

function nameWithoutAnswer(view: ServiceView, all: readonly Endpoint[]): ExplainFinding {
  const { service } = view
  const why =
    all.length === 0 ? 'it has no endpoint at all' : `not one of its ${countOf(all.length, 'endpoint')} is ready`
  return explainFinding('explain.name-without-answer', {
    about: service.meta,
    message: `${fullName(view)} does not exist for DNS (NXDOMAIN, which is remembered), because ${why}`,
    path: 'spec.publishNotReadyAddresses',
    evidence: all.slice(0, 10).map((endpoint) => `${nameEndpoint(endpoint)}: ${conditionsText(endpoint)}`),
    hint: 'mend what keeps the pods from being ready; where clients must find pods that start, set publishNotReadyAddresses: true',
  })
}

function conditionsText(endpoint: Endpoint): string {
  const { isReady, isServing, isTerminating } = stateOf(endpoint)
  return `ready=${isReady} serving=${isServing} terminating=${isTerminating}`
}

/** The name follows the slices; where these have fallen behind, it sends clients to pods that are gone. */
function compareAnswer({ service, slices }: ServiceView, answered: readonly Endpoint[]): readonly ExplainFinding[] {
  const { wanted } = slices
  if (wanted === undefined || !slices.usesGiven) return []
  const addressOf = (endpoint: Endpoint): string => endpoint.addresses[0] ?? ''
  const ready = [...endpointsOf(wanted)].map(({ endpoint }) => endpoint).filter((one) => stateOf(one).isReady)
  const has = (list: readonly Endpoint[]): ReadonlySet<string> => new Set(list.map(addressOf))
  const [answers, pods] = [has(answered), has(ready)]
  const extra = answered.filter((endpoint) => !pods.has(addressOf(endpoint)))
  const lost = ready.filter((endpoint) => !answers.has(addressOf(endpoint)))
  if (extra.length + lost.length === 0) return []
  const parts = [
    ...(extra.length > 0 ? [`answers with ${listOf(extra.map(addressOf))}, which no ready pod has`] : []),
    ...(lost.length > 0 ? [`leaves out ${listOf(lost.map(nameEndpoint))}`] : []),
  ]
  return [
    explainFinding('explain.name-answer-differs', {
      about: service.meta,
      message: `its name ${parts.join(', and it ')}`,
      evidence: [
        `answered: ${listOf([...answers].sort(compareText))}`,
        `ready pods: ${listOf(ready.map(nameEndpoint)) || 'none'}`,
      ],
      hint: 'the slices are what DNS reads: see that layer',
    }),
  ]
}

function answersNotReady(view: ServiceView, unready: readonly Endpoint[]): ExplainFinding {
  return explainFinding('explain.name-answers-not-ready', {
    about: view.service.meta,
    message: `its name also answers with ${countOf(unready.length, 'pod that is', 'pods that are')} not ready, as publishNotReadyAddresses asks`,
    path: 'spec.publishNotReadyAddresses',
    evidence: unready.slice(0, 10).map((endpoint) => `${nameEndpoint(endpoint)}: ${conditionsText(endpoint)}`),
    hint: 'clients must cope with a pod that refuses; otherwise set publishNotReadyAddresses: false',
  })
}

function explainExternalName(view: ServiceView): Told {
  const { service, input } = view
  const target = (service.externalName ?? '').replace(/\.$/, '')
  const facts = [`${fullName(view)} CNAME ${target}.; kube-proxy has no rules for it`]
  const about = service.meta
  const path = 'spec.externalName'
  if (parseIp(target) !== undefined) {
    const finding = explainFinding('explain.external-name-is-address', {
      about,
      path,
      message: `externalName ${target} is an address, and a CNAME needs a name: the answer is NXDOMAIN`,
      evidence: [`spec.externalName: ${target}`],
      hint: `use a Service without selector, and an EndpointSlice with address ${target}`,
    })
    return { facts: [`${fullName(view)} does not exist for DNS (NXDOMAIN)`], findings: [finding] }
  }
  if (target !== input.clusterDomain && !target.endsWith(`.${input.clusterDomain}`)) return { facts, findings: [] }
  const inside = serviceNamed(view, target)
  if (inside === undefined) {
    const finding = explainFinding('explain.external-name-unknown', {
      about,
      path,
      message: `externalName ${target} is in the zone ${input.clusterDomain} of the cluster, where no Service has that name: NXDOMAIN`,
      evidence: [`zone ${input.clusterDomain} is answered by the cluster itself and asked nowhere else`],
      hint: 'name a Service that exists, or a name outside the zone',
    })
    return { facts, findings: [finding] }
  }
  const finding = explainFinding('explain.external-name-inside', {
    about,
    path,
    message: `externalName ${target} is Service ${keyOf(inside.meta)} of this cluster: DNS follows it inside and answers ${listOf(inside.clusterIPs)}`,
    evidence: [`Service ${keyOf(inside.meta)}: ${listOf(inside.clusterIPs)}`],
    hint: 'ports are not translated: a client must use those of the Service it leads to',
  })
  return { facts, findings: [finding] }
}

function serviceNamed({ input }: ServiceView, target: string): Service | undefined {
  const labels = target.slice(0, -input.clusterDomain.length - 1).split('.')
  if (labels.length !== 3 || labels[2] !== 'svc') return undefined
  return input.cluster.services.get(`${labels[1]}/${labels[0]}`)
}

/** Every cluster labels the Service of its DNS server this way, whatever server it is. */
function explainServer({ input, service }: ServiceView): Told {
  const isDns = ({ meta }: Service): boolean =>
    meta.namespace === 'kube-system' && meta.labels['k8s-app'] === 'kube-dns'
  const server = [...input.cluster.services.values()].find(isDns)
  if (server === undefined || keyOf(server.meta) === keyOf(service.meta)) return { facts: [], findings: [] }
  const { used, given } = serviceSlices(focusOn(input.cluster, server), server, input.slices)
  const hasPods = [...input.cluster.pods.values()].some(({ meta }) => meta.namespace === server.meta.namespace)
  if (!hasPods && given.length === 0) return { facts: [], findings: [] }
  const ready = [...endpointsOf(used)].filter(({ endpoint }) => stateOf(endpoint).isReady).length
  const name = keyOf(server.meta)
  if (ready > 0) {
    const at = server.clusterIPs[0] === undefined ? '' : ` at ${server.clusterIPs[0]}`
    return { facts: [`names are resolved by ${name}${at}, ${countOf(ready, 'ready endpoint')}`], findings: [] }
  }
  const finding = explainFinding('explain.dns-without-endpoints', {
    about: server.meta,
    message: `the cluster's DNS Service ${name} has no ready endpoint: no name resolves`,
    evidence: [`${countOf(used.length, 'slice')} of ${name} without a ready endpoint`],
    hint: `explain ${name} first`,
  })
  return { facts: [], findings: [finding] }
}

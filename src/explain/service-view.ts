/** One Service as every layer looks at it: its pods, slices, planned ports, and what other rooms found about it. */
import type { Finding } from '#base/finding'
import { type Family, familyOf } from '#base/ip'
import { proxySettingsOf } from '#compile/node/node-iptables'
import { planServices, proxyNodeOf } from '#compile/services/plan-services'
import type { ProxySettings } from '#compile/services/proxy-settings'
import type { ServicePlan } from '#compile/services/service-plan'
import type { Cluster } from '#model/cluster'
import type { AddressType, EndpointSlice } from '#model/endpoint-slice'
import { keyOf, selects } from '#model/meta'
import type { Pod } from '#model/pod'
import { isHeadless, type Service } from '#model/service'
import { endpointsOf, stateOf } from './describe-endpoint'
import type { ExplainInput } from './explain-input'
import { type Holders, indexHolders } from './index-holders'
import { focusOn, type ServiceSlices, serviceSlices } from './service-slices'

export type ServiceView = {
  readonly input: ExplainInput
  readonly service: Service
  /** `namespace/name`. */
  readonly key: string
  readonly families: readonly Family[]
  /** The cluster with this Service alone. */
  readonly focus: Cluster
  readonly settings: Partial<ProxySettings>
  /** Every pod that the selector picks, by name. */
  readonly pods: readonly Pod[]
  readonly slices: ServiceSlices
  /** Of `--node`, or of no node in particular. */
  readonly plans: readonly ServicePlan[]
  readonly holders: Holders
  /** Of reading, slices and planning, about this Service and what belongs to it. */
  readonly findings: readonly Finding[]
}

export function viewService(input: ExplainInput): ServiceView {
  const { cluster, service } = input
  const focus = focusOn(cluster, service)
  const slices = serviceSlices(focus, service, input.slices)
  const found = proxySettingsOf(cluster)
  const settings = { ...found.value, ...input.settings }
  const families = input.families ?? familiesOf(service, slices.used)
  const pods = podsOf(cluster, service)
  const node = input.node === undefined ? undefined : proxyNodeOf(cluster, input.node)
  const planned = families.map((family) =>
    planServices(focus, slices.used, { family, settings, ...(node !== undefined && { node }) }),
  )
  const own = input.findings.filter(isAbout(service, pods, slices.given))
  const told = [...slices.findings, ...found.findings, ...planned.flatMap((plan) => plan.findings)]
  return {
    input,
    service,
    key: keyOf(service.meta),
    families,
    focus,
    settings,
    pods,
    slices,
    plans: planned.map((plan) => plan.value),
    holders: indexHolders(cluster),
    findings: withoutDoubles([...own, ...told.filter((finding) => isNews(finding, slices))]),
  }
}

/** What a finding of this room tells with more, or what holds no longer when every node is looked at. */
const toldBetter = new Set(['endpointslices.named-port-missing', 'services.no-node'])

/** Hints that do not count for want of one are told with the endpoint that lacks it. */
function isNews({ code }: Finding, { used }: ServiceSlices): boolean {
  if (code !== 'services.hints-ignored') return !toldBetter.has(code)
  return [...endpointsOf(used)].every(({ endpoint }) => !stateOf(endpoint).isReady || endpoint.forZones !== undefined)
}

/** A family that only slices show counts where the Service itself says none. */
function familiesOf(service: Service, slices: readonly EndpointSlice[]): readonly Family[] {
  if (service.ipFamilies.length > 0) return [...new Set(service.ipFamilies)]
  const ofAddresses = service.clusterIPs.filter((ip) => ip !== 'None').map(familyOf)
  const ofSlices = isHeadless(service) ? slices.flatMap(({ addressType }) => familyOfType(addressType)) : []
  const families = [...new Set([...ofAddresses, ...ofSlices])]
  return families.length > 0 ? families : ['ipv4']
}

function familyOfType(type: AddressType): readonly Family[] {
  return type === 'IPv4' ? ['ipv4'] : type === 'IPv6' ? ['ipv6'] : []
}

function podsOf(cluster: Cluster, { meta, selector, type }: Service): readonly Pod[] {
  if (selector === undefined || type === 'ExternalName') return []
  const picked = [...cluster.pods.values()].filter(
    (pod) => pod.meta.namespace === meta.namespace && selects(selector, pod.meta.labels),
  )
  return picked.sort((a, b) => (a.meta.name < b.meta.name ? -1 : 1))
}

/** Findings of reading name their object; those of the Service, its pods and its slices matter here. */
function isAbout(
  { meta }: Service,
  pods: readonly Pod[],
  slices: readonly EndpointSlice[],
): (finding: Finding) => boolean {
  const podNames = new Set(pods.map((pod) => pod.meta.name))
  const sliceNames = new Set(slices.map((slice) => slice.meta.name))
  return ({ object }) => {
    if (object === undefined || object.namespace !== meta.namespace) return false
    if (object.kind === 'Service' || object.kind === 'Endpoints') return object.name === meta.name
    if (object.kind === 'EndpointSlice') return sliceNames.has(object.name)
    return object.kind === 'Pod' && podNames.has(object.name)
  }
}

/** Both families of a Service may tell the same. */
function withoutDoubles(findings: readonly Finding[]): readonly Finding[] {
  const texts = findings.map(({ code, message, path }) => `${code} ${path} ${message}`)
  return findings.filter((_, at) => texts.indexOf(texts[at] ?? '') === at)
}

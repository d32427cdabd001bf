/** What the API server chooses for a Service: its families, ClusterIPs and node ports. */
import { type Family, familyOf } from '#base/ip'
import { type Prefix, printPrefix } from '#base/prefix'
import { compareText, countOf, listOf } from '#base/text'
import { assume, type Draft } from '#manifests/draft'
import { manifestFinding } from '#manifests/findings'
import type { ServiceText } from '#manifests/kinds/service'
import { refOf } from '#model/meta'
import { otherFamily } from './families'
import { fillNodePorts, gatherNodePorts } from './node-ports'
import { chooseAddress, serviceRange } from './service-addresses'

/** What is taken, and what was assumed, while Services are filled one after another. */
type Filling = {
  readonly draft: Draft
  readonly families: readonly Family[]
  readonly ranges: Map<Family, Prefix>
  readonly taken: Map<string, string>
  readonly assumedIps: string[]
  readonly serviceCidrs: readonly Prefix[]
}

/** In order of namespace and name, so that the order of files does not matter. */
export function fillServices(draft: Draft, families: readonly Family[], serviceCidrs: readonly Prefix[]): void {
  const taken = gatherClusterIps(draft)
  const ports = gatherNodePorts(draft)
  const filling: Filling = { draft, families, ranges: new Map(), taken, assumedIps: [], serviceCidrs }
  const assumedPorts: string[] = []
  for (const [key, text] of [...draft.openServices].sort(([a], [b]) => compareText(a, b))) {
    if (text.service.type === 'ExternalName') continue
    text.service.ipFamilies = wantedFamilies(text, families)
    fillClusterIps(key, text, filling)
    if (fillNodePorts(draft, text, ports)) assumedPorts.push(key)
  }
  reportAssumed(filling, assumedPorts)
}

/** As the API server decides: one family unless the policy asks for both. */
function wantedFamilies({ service, familyPolicy }: ServiceText, cluster: readonly Family[]): readonly Family[] {
  const told = service.ipFamilies.length > 0 ? service.ipFamilies : cluster.slice(0, 1)
  const [first] = told
  // What a server has kept (it gives uids) it has decided already, perhaps before the cluster had a second family.
  const isKept = service.meta.uid !== undefined && service.clusterIPs.length > 0
  if (told.length > 1 || first === undefined || isKept) return told
  const isFree = service.clusterIPs[0] === 'None' && service.selector === undefined
  const policy = familyPolicy ?? (isFree ? 'RequireDualStack' : 'SingleStack')
  const wantsBoth = policy === 'RequireDualStack' || (policy === 'PreferDualStack' && cluster.length > 1)
  return wantsBoth ? [first, otherFamily(first)] : told
}

function fillClusterIps(key: string, { service, lacksClusterIp }: ServiceText, filling: Filling): void {
  const { clusterIPs, ipFamilies } = service
  const isPartial = clusterIPs.length > 0 && clusterIPs[0] !== 'None' && clusterIPs.length < ipFamilies.length
  if (!lacksClusterIp && !isPartial) return
  const added: string[] = []
  for (const family of ipFamilies.slice(clusterIPs.length)) {
    const range = filling.ranges.get(family) ?? serviceRange(filling.draft, family, filling.serviceCidrs)
    filling.ranges.set(family, range)
    const address = chooseAddress(key, range, filling.taken)
    if (address === undefined) {
      reportFull(filling.draft, service, `no address is left in ${printPrefix(range)}`)
      return
    }
    filling.taken.set(address, key)
    added.push(address)
  }
  service.clusterIPs = [...clusterIPs, ...added]
  assume(service, lacksClusterIp ? 'spec.clusterIP' : 'spec.clusterIPs')
  filling.assumedIps.push(key)
}

/** Every ClusterIP with the Service that holds it; a second holder is told. */
function gatherClusterIps(draft: Draft): Map<string, string> {
  const taken = new Map<string, string>()
  for (const [key, service] of draft.services) {
    for (const ip of service.clusterIPs) {
      if (ip === 'None') continue
      const holder = taken.get(ip)
      if (holder === undefined) taken.set(ip, key)
      else {
        draft.findings.push(
          manifestFinding('service.cluster-ip-taken', {
            message: `the ClusterIP ${ip} is that of Service ${holder} too`,
            object: refOf(service.meta),
            path: 'spec.clusterIP',
            origin: service.meta.origin,
            hint: 'give one of them another, or leave clusterIP out',
          }),
        )
      }
    }
  }
  return taken
}

export function reportFull(draft: Draft, { meta }: ServiceText['service'], message: string): void {
  draft.findings.push(manifestFinding('service.range-full', { message, object: refOf(meta), origin: meta.origin }))
}

function reportAssumed({ draft, ranges, assumedIps }: Filling, assumedPorts: readonly string[]): void {
  if (assumedIps.length > 0) {
    const from = listOf(
      [...ranges.values()]
        .sort((a, b) => compareText(familyOf(printPrefix(a)), familyOf(printPrefix(b))))
        .map(printPrefix),
    )
    const services = `${countOf(assumedIps.length, 'Service')} without a ClusterIP (${listOf(assumedIps, 5)})`
    draft.findings.push(
      manifestFinding('service.assumed-cluster-ip', { message: `${services} got assumed ones from ${from}` }),
    )
  }
  if (assumedPorts.length > 0) {
    const services = `${countOf(assumedPorts.length, 'Service')} without node ports (${listOf(assumedPorts, 5)})`
    draft.findings.push(manifestFinding('service.assumed-node-port', { message: `${services} got assumed ones` }))
  }
}

/** What cluster DNS answers when a pod asks for the full name of the Service. */
import type { Finding } from '#base/finding'
import type { Family } from '#base/ip'
import { buildDnsServer } from '#compile/dns/build-dns-server'
import { chooseClusterDomain, usualClusterDomain } from '#compile/dns/cluster-domain'
import { clusterNameservers } from '#compile/dns/cluster-nameservers'
import type { Reply } from '#compile/dns/record'
import type { Cluster } from '#model/cluster'
import { keyOf } from '#model/meta'
import type { Service } from '#model/service'
import { focusOn, serviceSlices } from './service-slices'
import type { ServiceView } from './service-view'

export type NameAnswer = { readonly type: 'A' | 'AAAA'; readonly reply: Reply; readonly addresses: readonly string[] }

export type NameAnswers = {
  /** Without the closing dot. */
  readonly name: string
  readonly domain: string
  /** One for each family of the Service. */
  readonly answers: readonly NameAnswer[]
  /** Of the Corefile and the zone; what is only assumed about them is left out. */
  readonly findings: readonly Finding[]
}

const types: Readonly<Record<Family, NameAnswer['type']>> = { ipv4: 'A', ipv6: 'AAAA' }

export function askDns(view: ServiceView): NameAnswers {
  const { input, service, families } = view
  const related = relatedServices(view)
  const slices = [
    ...view.slices.used,
    ...related.flatMap((one) => serviceSlices(focusOn(input.cluster, one), one, input.slices).used),
  ]
  const { value: server, findings } = buildDnsServer({
    cluster: smallCluster(input.cluster, [service, ...related]),
    slices,
    clusterDomain: input.clusterDomain ?? usualClusterDomain,
  })
  const domain = chooseClusterDomain(input.clusterDomain, server.clusterZones)
  const name = `${service.meta.name}.${service.meta.namespace}.svc.${domain.value}`
  const client = { namespace: service.meta.namespace }
  const answers = families.map((family): NameAnswer => {
    const reply = server.answer({ name: `${name}.`, type: types[family], client })
    const addresses = reply.answers.flatMap((record) => ('address' in record ? [record.address] : []))
    return { type: types[family], reply, addresses }
  })
  const told = [...findings, ...domain.findings].filter(({ severity }) => severity !== 'info')
  return { name, domain: domain.value, answers, findings: told }
}

/** Enough for the names at hand: an index over all Services would cost more than all other layers. */
function smallCluster(cluster: Cluster, services: readonly Service[]): Cluster {
  const server = clusterNameservers(cluster).service
  const dns = server === undefined ? undefined : cluster.services.get(`${server.namespace}/${server.name}`)
  const kept = dns === undefined ? services : [...services, dns]
  return { ...cluster, services: new Map(kept.map((one) => [keyOf(one.meta), one])), pods: new Map() }
}

/** CoreDNS follows so many names (plugin/pkg/upstream, 1.14). */
const mostSteps = 10

/** The Services that an ExternalName leads to, one after the other. */
function relatedServices({ input, service }: ServiceView): readonly Service[] {
  const found: Service[] = []
  let current: Service | undefined = service
  while (current?.externalName !== undefined && found.length < mostSteps) {
    const [name, namespace, svc]: readonly string[] = current.externalName.split('.')
    const next: Service | undefined = svc === 'svc' ? input.cluster.services.get(`${namespace}/${name}`) : undefined
    if (next === undefined || next === service || found.includes(next)) break
    found.push(next)
    current = next
  }
  return found
}

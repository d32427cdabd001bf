/** The resolv.conf that the kubelet gives a pod: policy, dnsConfig, limits (pkg/kubelet/network/dns, 1.34). */
import type { Finding, Parsed } from '#base/finding'
import type { DnsOption, PodDnsConfig } from '#model/pod'
import { dnsFinding } from './findings'
import { emptyResolvConf, mergeOptions, type ResolvConf } from './resolv-conf'

/** What of a pod the kubelet looks at. */
export type PodDns = {
  readonly namespace: string
  readonly dnsPolicy: string
  readonly hostNetwork: boolean
  readonly dnsConfig?: PodDnsConfig
}

/** What the kubelet is told: `clusterDNS`, `clusterDomain`, and the file of `resolvConf`, which may be none. */
export type KubeletDns = {
  readonly clusterDns: readonly string[]
  readonly clusterDomain: string
  readonly nodeResolvConf: ResolvConf | 'none'
  readonly nodeIps?: readonly string[]
}

/** Where a policy takes nameservers and search list from. */
export type DnsSource = 'cluster' | 'node' | 'none'

export type FormedResolvConf = { readonly conf: ResolvConf; readonly source: DnsSource }

export function formResolvConf(pod: PodDns, kubelet: KubeletDns): Parsed<FormedResolvConf> {
  const findings: Finding[] = []
  const source = chooseSource(pod, kubelet, findings)
  const base = baseOf(source, pod, kubelet)
  const conf = pod.dnsConfig === undefined ? base : addDnsConfig(base, pod.dnsConfig)
  if (source === 'none' && conf.nameservers.length === 0) {
    const message = 'dnsPolicy None, and dnsConfig names no nameserver: the API server refuses such a pod'
    findings.push(dnsFinding('dns.no-nameserver', { message, hint: 'name at least one in dnsConfig.nameservers' }))
  }
  return { value: { conf: cutToLimits(conf, findings), source }, findings }
}

function chooseSource({ dnsPolicy, hostNetwork }: PodDns, { clusterDns }: KubeletDns, findings: Finding[]): DnsSource {
  const wanted = sourceOf(dnsPolicy, hostNetwork)
  if (wanted === undefined) {
    const message = `dnsPolicy ${dnsPolicy} is none that Kubernetes knows; the kubelet takes it for ClusterFirst`
    findings.push(dnsFinding('dns.bad-policy', { message }))
  }
  const source = wanted ?? 'cluster'
  if (source !== 'cluster' || clusterDns.length > 0) return source
  const message =
    'the kubelet does not know the address of the cluster DNS (event MissingClusterDNS), so ClusterFirst becomes Default'
  findings.push(
    dnsFinding('dns.missing-cluster-dns', { message, hint: 'set clusterDNS in the kubelet’s configuration' }),
  )
  return 'node'
}

/** On the host's network ClusterFirst is Default. */
function sourceOf(policy: string, hostNetwork: boolean): DnsSource | undefined {
  switch (policy) {
    case 'None':
      return 'none'
    case 'ClusterFirstWithHostNet':
      return 'cluster'
    case 'ClusterFirst':
      return hostNetwork ? 'node' : 'cluster'
    case 'Default':
      return 'node'
    default:
      return undefined
  }
}

function baseOf(source: DnsSource, { namespace }: PodDns, kubelet: KubeletDns): ResolvConf {
  const { clusterDns, clusterDomain, nodeResolvConf, nodeIps = [] } = kubelet
  const node = nodeResolvConf === 'none' ? emptyResolvConf : nodeResolvConf
  switch (source) {
    case 'none':
      return emptyResolvConf
    case 'cluster': {
      const own =
        clusterDomain === '' ? [] : [`${namespace}.svc.${clusterDomain}`, `svc.${clusterDomain}`, clusterDomain]
      return { nameservers: clusterDns, searches: withoutDoubles([...own, ...node.searches]), options: ['ndots:5'] }
    }
    case 'node': {
      if (nodeResolvConf !== 'none') return node
      const loopbacks = nodeIps.map((ip) => (ip.includes(':') ? '::1' : '127.0.0.1'))
      return { nameservers: loopbacks.length === 0 ? ['127.0.0.1'] : loopbacks, searches: ['.'], options: [] }
    }
    default:
      return source satisfies never
  }
}

function addDnsConfig({ nameservers, searches, options }: ResolvConf, config: PodDnsConfig): ResolvConf {
  return {
    nameservers: withoutDoubles([...nameservers, ...config.nameservers]),
    searches: withoutDoubles([...searches, ...config.searches]),
    options: mergeOptions(options, config.options.map(printOption)),
  }
}

function printOption({ name, value = '' }: DnsOption): string {
  return value === '' ? name : `${name}:${value}`
}

function withoutDoubles(items: readonly string[]): readonly string[] {
  return [...new Set(items)]
}

const mostNameservers = 3
const mostSearches = 32
const longestSearchLine = 2048
const longestDomain = 253

function cutToLimits({ nameservers, searches, options }: ResolvConf, findings: Finding[]): ResolvConf {
  const kept = nameservers.slice(0, mostNameservers)
  if (kept.length < nameservers.length) {
    const message = `Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: ${kept.join(' ')}`
    findings.push(dnsFinding('dns.nameserver-limits', { message, hint: 'the pod gets the event DNSConfigForming' }))
  }
  const domains = cutSearches(searches)
  if (domains.length < searches.length) {
    const message = `Search Line limits were exceeded, some search paths have been omitted, the applied search line is: ${domains.join(' ')}`
    findings.push(dnsFinding('dns.search-limits', { message, hint: 'the pod gets the event DNSConfigForming' }))
  }
  return { nameservers: kept, searches: domains, options }
}

/** First the number, then domains that are too long, then from the end what is too much for the line. */
function cutSearches(searches: readonly string[]): readonly string[] {
  const domains = searches.slice(0, mostSearches).filter((domain) => domain.length <= longestDomain)
  let count = domains.length
  while (count > 0 && domains.slice(0, count).join(' ').length > longestSearchLine) count--
  return domains.slice(0, count)
}

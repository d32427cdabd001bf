/** Whose resolv.conf is meant: a pod's of the input, or that of any pod of a namespace, as the kubelet would write it. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import { Failure } from '#base/failure'
import type { Finding } from '#base/finding'
import { type Ip, printIp } from '#base/ip'
import { compareText, listOf } from '#base/text'
import { clusterNameservers } from '#compile/dns/cluster-nameservers'
import { explainBadName } from '#compile/dns/domain-name'
import { dnsFinding } from '#compile/dns/findings'
import { type FormedResolvConf, formResolvConf, type PodDns } from '#compile/dns/form-resolv-conf'
import { type HostsEntry, podHosts, usualEntries } from '#compile/dns/pod-hosts'
import type { Client } from '#compile/dns/record'
import { emptyResolvConf, mergeOptions, parseNodeResolvConf, type ResolvConf } from '#compile/dns/resolv-conf'
import type { Cluster } from '#model/cluster'
import type { Pod } from '#model/pod'
import { readText } from '#sources/read-text'
import type { Io } from './io'
import { asIp, asNamespace, asNumber, collect } from './options'

export type PodDnsOptions = {
  readonly namespace?: string
  readonly pod?: string
  readonly nameserver?: readonly Ip[]
  readonly search?: readonly string[]
  readonly ndots?: number
  readonly nodeResolvConf?: string
  readonly clusterDomain?: string
}

export function addPodDnsOptions(command: Command): Command {
  return command
    .option(
      '-n, --namespace <name>',
      'the namespace of the pod that asks (default: that of the context, else default)',
      asNamespace,
    )
    .option('--pod <ns/pod>', 'the pod that asks: its namespace, dnsPolicy and dnsConfig apply')
    .addOption(
      new Option('--nameserver <ip>', 'the kubelets’ clusterDNS; may repeat (default: the Service kube-dns)').argParser(
        collect(asIp),
      ),
    )
    .addOption(
      new Option('--search <domain>', 'a search domain of the nodes’ own resolv.conf; may repeat').argParser(
        collect(asDomain),
      ),
    )
    .option('--ndots <count>', 'the option ndots of the pod', asNumber(0, 1000))
    .option('--node-resolv-conf <file>', 'the nodes’ own resolv.conf, which dnsPolicy Default hands on')
    .option('--cluster-domain <domain>', 'the kubelets’ clusterDomain (default: cluster.local)', asDomain)
}

/** `.` is the root, which a search list may hold. */
export function asDomain(text: string): string {
  const problem = text === '.' ? undefined : explainBadName(text)
  if (problem !== undefined) throw new InvalidArgumentError(`${problem}.`)
  return text === '.' ? text : text.replace(/\.$/, '')
}

export type Asker = {
  readonly who: string
  readonly policy: string
  readonly client: Client
  readonly hosts: readonly HostsEntry[]
  readonly formed: FormedResolvConf
  readonly clusterDns: readonly string[]
  readonly findings: readonly Finding[]
}

/** With `assumesDns` a cluster whose DNS address nothing tells has the usual one. */
type Input = {
  readonly cluster: Cluster
  readonly clusterDomain: string
  readonly node: NodeResolvConf
  readonly assumesDns: boolean
}

export type NodeResolvConf = { readonly conf: ResolvConf; readonly findings: readonly Finding[] }

const usualDns = '10.96.0.10'

export function formAsker(options: PodDnsOptions, { cluster, clusterDomain, node, assumesDns }: Input): Asker {
  const pod = options.pod === undefined ? undefined : requirePod(cluster, options.pod, options.namespace)
  const dns = dnsOf(pod, options.namespace)
  const told = options.nameserver?.map(printIp) ?? clusterNameservers(cluster).service?.addresses ?? []
  const isAssumed = told.length === 0 && assumesDns
  const clusterDns = isAssumed ? [usualDns] : told
  const kubelet = { clusterDns, clusterDomain, nodeResolvConf: node.conf }
  const { value, findings } = formResolvConf(dns, kubelet)
  const ndots = options.ndots === undefined ? [] : [`ndots:${options.ndots}`]
  const conf = { ...value.conf, options: mergeOptions(value.conf.options, ndots) }
  const address = pod?.podIPs[0]
  return {
    who: pod === undefined ? `a pod of namespace ${dns.namespace}` : `pod ${dns.namespace}/${pod.meta.name}`,
    policy: `dnsPolicy ${dns.dnsPolicy}${dns.hostNetwork ? ', on the host’s network' : ''}`,
    client: { namespace: dns.namespace, ...(address !== undefined && { address }) },
    hosts: pod === undefined ? usualEntries : podHosts(pod, clusterDomain),
    formed: { ...value, conf },
    clusterDns,
    findings: [...node.findings, ...findings, ...(isAssumed ? [assumedDns] : [])],
  }
}

const assumedDns = dnsFinding('dns.cluster-dns-assumed', {
  message: `nothing tells the address of the cluster's DNS; pods are taken to ask ${usualDns}`,
  hint: 'add the Service kube-system/kube-dns, or say --nameserver',
})

function dnsOf(pod: Pod | undefined, namespace = 'default'): PodDns {
  if (pod === undefined) return { namespace, dnsPolicy: 'ClusterFirst', hostNetwork: false }
  const { meta, dnsPolicy, hostNetwork, dnsConfig } = pod
  return { namespace: meta.namespace, dnsPolicy, hostNetwork, ...(dnsConfig !== undefined && { dnsConfig }) }
}

/** Throws when no pod has that name, naming those that are near. */
function requirePod({ pods }: Cluster, text: string, namespace = 'default'): Pod {
  const parts = text.split('/')
  if (parts.length > 2 || parts.some((part) => part === '')) {
    throw new Failure('usage.bad-argument', `--pod ${text} is not a pod's name; write NAMESPACE/NAME`)
  }
  const key = parts.length === 2 ? text : `${namespace}/${text}`
  const found = pods.get(key)
  if (found !== undefined) return found
  const [place = ''] = key.split('/')
  const near = [...pods.keys()].filter((other) => other.startsWith(`${place}/`)).sort(compareText)
  const known =
    near.length > 0 ? `there are ${listOf(near)}` : `the input has ${pods.size} pods, none in namespace ${place}`
  throw new Failure('usage.not-found', `no pod is named ${key}: ${known}`)
}

/** `--search` stands for the file's search list, and for the file when none is named. */
export async function readNodeResolvConf(
  io: Io,
  { nodeResolvConf: file, search = [] }: PodDnsOptions,
): Promise<NodeResolvConf> {
  if (file === undefined) return { conf: { ...emptyResolvConf, searches: search }, findings: [] }
  const text = await readText(file, { stdin: io.stdin, say: (sentence) => io.err(`${sentence}\n`) })
  const { value, findings } = parseNodeResolvConf(text, file)
  return { conf: search.length === 0 ? value : { ...value, searches: search }, findings }
}

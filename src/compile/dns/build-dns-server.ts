/** CoreDNS as a value: the server blocks of the Corefile with their plugins over the cluster's objects, and one function that answers. */
import type { Finding, Origin, Parsed } from '#base/finding'
import { listOf } from '#base/text'
import type { Cluster, ConfigMap } from '#model/cluster'
import type { EndpointSlice } from '#model/endpoint-slice'
import { buildChain } from './build-chain'
import { clusterNameservers } from './cluster-nameservers'
import type { Corefile, ServerBlock } from './corefile'
import { foldName, isReverseZone, matchZone } from './domain-name'
import { corefileFinding } from './findings'
import { parseCorefile } from './parse-corefile'
import type { Handler } from './plugin'
import { takeNotes } from './plugin-notes'
import { emptyReply, type Question, type Reply, withDoubt } from './record'

export type DnsServerInput = {
  readonly cluster: Cluster
  readonly slices: readonly EndpointSlice[]
  /** The zone to serve when the input has no Corefile. */
  readonly clusterDomain: string
  /** The search list of the nodes, which CoreDNS has too. */
  readonly nodeSearch?: readonly string[]
}

export type DnsServer = {
  readonly answer: Handler
  /** The zones of cluster names, the reverse ones left out, folded. */
  readonly clusterZones: readonly string[]
  /** True when questions of other classes than IN reach the plugins. */
  readonly takesOtherClasses: boolean
}

/** Names within names are looked up so many times; then CoreDNS gives up. */
const mostLookups = 10

export function buildDnsServer(input: DnsServerInput): Parsed<DnsServer> {
  const { value: corefile, findings } = readCorefile(input)
  const origin = input.cluster.configMaps.get(corefileKey)?.meta.origin ?? { file: 'no Corefile' }
  const notes = takeNotes(origin)
  const blocks = servedBlocks(corefile, input.cluster)
  const chains = new Map<string, Handler>()
  const zones: string[] = []
  const isBroken = findings.some(({ code }) => code === 'dns.corefile-broken')
  const answer = (question: Question): Reply => {
    const reply = dispatch(question, chains)
    return isBroken ? withDoubt(reply, 'CoreDNS does not start with this Corefile') : reply
  }
  const lookUp = (question: Question): Reply => {
    const depth = (question.depth ?? 0) + 1
    return depth > mostLookups
      ? emptyReply('SERVFAIL', 'server', 'the names go round in a circle')
      : answer({ ...question, depth })
  }
  for (const block of blocks) {
    const built = buildChain(block, { ...input, notes, lookUp, readFile: fileReader(input.cluster) })
    for (const zone of block.zones) if (!chains.has(zone)) chains.set(zone, built.answer)
    zones.push(...built.zones)
  }
  const value = {
    answer,
    clusterZones: [...new Set(zones)].filter((zone) => !isReverseZone(zone)),
    takesOtherClasses: blocks.some((block) => block.directives.some(({ name }) => openers.has(name))),
  }
  return { value, findings: [...findings, ...notes.findings, ...missingPlugin(corefile, zones, origin)] }
}

/** With any of these CoreDNS lets other classes in (core/dnsserver/server.go, EnableChaos). */
const openers: ReadonlySet<string> = new Set(['chaos', 'forward', 'proxy'])

function dispatch(question: Question, chains: ReadonlyMap<string, Handler>): Reply {
  const zone = matchZone(foldName(question.name), [...chains.keys()])
  const chain = zone === undefined ? undefined : chains.get(zone)
  return (
    chain?.(question) ??
    emptyReply('REFUSED', 'server', `no server block of the Corefile has a zone for ${question.name}`)
  )
}

const corefileKey = 'kube-system/coredns'

function readCorefile({ cluster, clusterDomain }: DnsServerInput): Parsed<Corefile> {
  const map = cluster.configMaps.get(corefileKey)
  const text = map?.data.Corefile
  if (map !== undefined && text !== undefined) return parseCorefile(text, map.meta.origin, importReader(cluster, map))
  const usual = `. {\n kubernetes ${clusterDomain} in-addr.arpa ip6.arpa\n forward . /etc/resolv.conf\n}\n`
  const message = `the input has no Corefile; CoreDNS's own defaults are taken: zone ${clusterDomain}, ttl 5, pods disabled`
  const parsed = parseCorefile(usual, { file: 'no Corefile' })
  return {
    value: parsed.value,
    findings: [
      corefileFinding('dns.no-corefile', { message, hint: 'add kubectl -n kube-system get configmap coredns -o yaml' }),
    ],
  }
}

/**
 * A file is a key of the ConfigMap that CoreDNS mounts beside its Corefile; `/etc/coredns/custom` is ConfigMap coredns-custom in
 * AKS and k3s, where a pattern that finds nothing is no mistake.
 */
function importReader(cluster: Cluster, own: ConfigMap): (pattern: string) => readonly string[] | undefined {
  return (pattern) => {
    const name = pattern.split('/').at(-1) ?? ''
    const isGlob = /[*?[]/.test(name)
    const source = pattern.includes('custom') ? cluster.configMaps.get('kube-system/coredns-custom') : own
    if (source === undefined) return undefined
    const matches = globOf(name)
    const keys = Object.keys(source.data).filter((key) => key !== 'Corefile' && matches.test(key))
    return keys.length === 0 && !isGlob ? undefined : keys.sort().map((key) => source.data[key] ?? '')
  }
}

function globOf(name: string): RegExp {
  const source = [...name].map((letter) =>
    letter === '*' ? '.*' : letter === '?' ? '.' : letter.replace(/[^\w]/, '\\$&'),
  )
  return new RegExp(`^${source.join('')}$`)
}

function fileReader(cluster: Cluster): (path: string) => string | undefined {
  const data = cluster.configMaps.get(corefileKey)?.data ?? {}
  return (path) => data[path.split('/').at(-1) ?? '']
}

/** Blocks of plain DNS on the port that the DNS Service sends to: 53, unless no block has it. */
function servedBlocks({ blocks }: Corefile, cluster: Cluster): readonly ServerBlock[] {
  const plain = blocks.filter(({ transport }) => transport === 'dns')
  const target = clusterNameservers(cluster).port
  const port = [target, 53, plain[0]?.port].find((wanted) => plain.some((block) => block.port === wanted))
  return plain.filter((block) => block.port === port)
}

function missingPlugin(corefile: Corefile, zones: readonly string[], origin: Origin): readonly Finding[] {
  if (zones.length > 0) return []
  if (corefile.blocks.length === 0) {
    const message = 'the Corefile has no server block, so CoreDNS answers nothing'
    return [corefileFinding('dns.no-kubernetes-plugin', { origin, message })]
  }
  const names = corefile.blocks.flatMap((block) => block.zones)
  const message = `no server block has the kubernetes plugin (their zones are ${listOf(names)}), so no cluster name is served`
  return [corefileFinding('dns.no-kubernetes-plugin', { origin, message })]
}

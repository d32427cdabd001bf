/** SOURCE and TARGET of `portolan path` as the two ends of a packet: names, addresses, ports. */
import { Failure } from '#base/failure'
import { explainBadIp, type Family, type Ip, isSameIp, parseEndpoint, parseIp, printIp } from '#base/ip'
import { compareText, listOf } from '#base/text'
import type { Cluster } from '#model/cluster'
import { keyOf } from '#model/meta'
import { nodeIps } from '#model/node'
import { namedPorts, type Pod } from '#model/pod'
import { isHeadless, type Service } from '#model/service'
import type { WalkEnd, WalkInner, WalkProtocol, WalkQuestion } from '#model/walk'
import { hasEnded } from '#trace/policy/party-facts'
import { parseEnd } from './policy-parties'

export type PathWords = {
  readonly source: string
  readonly target: string
  readonly protocol: WalkProtocol
  readonly port?: string
  readonly sourcePort: number
  readonly namespace: string
  readonly entryNode?: string
  readonly backend?: string
  readonly isReplyWanted: boolean
  readonly about?: WalkInner
}

/** `notes` tell what was chosen where the words leave a choice. */
export type PathEnds = { readonly question: WalkQuestion; readonly notes: readonly string[] }

/** Ends with all their addresses, before one family is chosen. */
type Named = {
  readonly name: string
  readonly ips: readonly Ip[]
  readonly pod?: Pod
  readonly node?: string
  readonly service?: Service
  readonly isByName: boolean
}

/** Addresses of the internet where none is named: a public resolver's as a server, documentation's (RFC 5737, 3849) as a client. */
const outside = {
  server: ['8.8.8.8', '2001:4860:4860::8888'],
  client: ['198.51.100.7', '2001:db8::7'],
} as const

export function readEnds(cluster: Cluster, words: PathWords): PathEnds {
  const notes: string[] = []
  const { text, port } = splitPort(words.target)
  const source = endOf(cluster, words.source, { words, isTarget: false, notes })
  const home = source.pod?.meta.namespace
  const target = endOf(cluster, text, { words, isTarget: true, notes, ...(home !== undefined && { home }) })
  const family = familyBetween(source, target, words)
  const { port: numberOfPort, code } = portOf(target, words, port)
  const question: WalkQuestion = {
    source: atFamily(source, family),
    destination: atFamily(target, family),
    protocol: words.protocol,
    sourcePort: words.sourcePort,
    port: numberOfPort,
    ...(code !== undefined && { icmpCode: code }),
    isReplyWanted: words.isReplyWanted,
    ...(words.entryNode !== undefined && { entryNode: words.entryNode }),
    ...(words.backend !== undefined && { backend: words.backend }),
    ...(words.about !== undefined && { about: words.about }),
  }
  notes.push(...checkAbout(question), ...noteUnanswered(question))
  if (question.entryNode !== undefined && (source.pod !== undefined || source.node !== undefined)) {
    throw usage(`--node is where a packet from outside comes in, and ${source.name} is inside; leave it out`)
  }
  return { question, notes }
}

function noteUnanswered({ protocol, port, isReplyWanted }: WalkQuestion): readonly string[] {
  const isEcho =
    protocol === 'ICMP' ? [0, 8, 13, 14].includes(port) : protocol !== 'ICMPv6' || port === 128 || port === 129
  return isReplyWanted && !isEcho ? [`nobody answers ${protocol} type ${port}: --reply has nothing to walk`] : []
}

/** The packet inside is of the family of the error that carries it, and was sent by whoever the error goes to. */
function checkAbout({ about, protocol, port, destination: { ip } }: WalkQuestion): readonly string[] {
  if (about === undefined) return []
  const isError = protocol === 'ICMP' ? [3, 11, 12].includes(port) : protocol === 'ICMPv6' && port < 128
  if (!isError) {
    const of = ip.family === 'ipv4' ? '--proto icmp --port 3' : '--proto icmpv6 --port 2'
    throw usage(`--about is what an error of ICMP is about; add ${of} for one that says that a packet is too big`)
  }
  if (about.source.family !== ip.family || about.destination.family !== ip.family) {
    throw usage('--about tells a packet of another family than the error’s')
  }
  if (isSameIp(about.source, ip)) return []
  const [sender, receiver] = [printIp(about.source), printIp(ip)]
  return [`an error goes to whoever sent what it is about, which is ${sender} here, and not ${receiver}`]
}

function usage(sentence: string): Failure {
  return new Failure('usage.bad-argument', sentence)
}

/** An address of IPv6 has its port behind brackets. */
function splitPort(text: string): { readonly text: string; readonly port?: string } {
  if (parseIp(text) !== undefined) return { text }
  const [, inner = '', behind] = /^\[([^\]]*)\](?::(.*))?$/.exec(text) ?? []
  if (inner !== '') return behind === undefined ? { text: inner } : { text: inner, port: behind }
  const at = text.lastIndexOf(':')
  return at < 0 || text.indexOf(':') !== at ? { text } : { text: text.slice(0, at), port: text.slice(at + 1) }
}

type EndSetting = {
  readonly words: PathWords
  readonly isTarget: boolean
  readonly notes: string[]
  /** The namespace of SOURCE. */
  readonly home?: string
}

function endOf(cluster: Cluster, text: string, { words, isTarget, notes, home }: EndSetting): Named {
  const flag = isTarget ? 'TARGET' : 'SOURCE'
  if (/^(?:internet|outside|world)$/i.test(text)) return internet(isTarget)
  const endpoint = isTarget ? undefined : parseEndpoint(text)
  if (endpoint?.port !== undefined) throw usage(`SOURCE ${text} has a port; name it with --sport ${endpoint.port}`)
  const ip = parseIp(text)
  if (ip !== undefined) return holderOf(cluster, ip)
  if (/^[\d.]+$/.test(text) || text.includes(':')) throw usage(`${flag}: ${explainEnd(text, isTarget)}`)
  const setting = { cluster, semantics: 'k8s', namespace: words.namespace, flag, isTarget } as const
  const end = parseEnd(text, { ...setting, ...(home !== undefined && { home }) })
  if (end.kind === 'service') return serviceEnd(end.service)
  const [first, ...others] = end.parties
  if (others.length > 0) notes.push(`${end.name} has ${others.length + 1} pods; the packet is that of ${first.name}`)
  const { party } = first
  if (party.kind === 'pod') return podEnd(cluster, party.pod)
  if (party.kind === 'node') {
    const name = party.node.meta.name
    return { name: `node ${name}`, ips: ipsOf(nodeIps(party.node)), node: name, isByName: true }
  }
  throw usage(`${flag} ${text} is no pod, workload, Service, node or address`)
}

/** Why what has a colon, or nothing but digits, is no end. */
function explainEnd(text: string, isTarget: boolean): string {
  if (text.includes('://')) return `"${text}" is a URL; write the name or address alone, and the port behind it`
  const [, name, port] = /^([^:]*[a-z][^:]*):([^:]+)$/i.exec(text) ?? []
  if (name !== undefined) return `"${text}" has a port; write ${name}, and --sport ${port}`
  if (/[g-z/]/i.test(text)) {
    return `"${text}" is neither a name nor an address${isTarget ? '; write NAME:PORT, ADDRESS:PORT or [ADDRESS]:PORT' : ''}`
  }
  return explainBadIp(text)
}

function internet(isTarget: boolean): Named {
  return { name: 'the internet', ips: ipsOf(isTarget ? outside.server : outside.client), isByName: false }
}

function ipsOf(texts: readonly string[]): readonly Ip[] {
  return texts.flatMap((text) => parseIp(text) ?? [])
}

function podEnd(cluster: Cluster, pod: Pod): Named {
  const name = keyOf(pod.meta)
  const node = pod.nodeName === undefined ? undefined : cluster.nodes.get(pod.nodeName)
  const own = pod.podIPs.length > 0 || !pod.hostNetwork || node === undefined ? pod.podIPs : nodeIps(node)
  if (own.length === 0) throw usage(`pod ${name} has no address, so that no packet comes from it or reaches it`)
  return { name, ips: ipsOf(own), pod, isByName: true, ...(pod.nodeName !== undefined && { node: pod.nodeName }) }
}

function holderOf(cluster: Cluster, ip: Ip): Named {
  const text = printIp(ip)
  const node = [...cluster.nodes.values()].find((one) => nodeIps(one).includes(text))
  if (node !== undefined) return { name: text, ips: [ip], node: node.meta.name, isByName: false }
  const pod = [...cluster.pods.values()].find((one) => one.podIPs.includes(text) && !hasEnded(one))
  const router = [...cluster.ciliumNodes.values()].find(({ addresses }) =>
    addresses.some(({ address }) => address === text),
  )
  if (router !== undefined) return { name: text, ips: [ip], node: router.meta.name, isByName: false }
  if (pod === undefined) return { name: text, ips: [ip], isByName: false }
  return { name: text, ips: [ip], pod, isByName: false, ...(pod.nodeName !== undefined && { node: pod.nodeName }) }
}

function serviceEnd(service: Service): Named {
  const name = `Service ${keyOf(service.meta)}`
  if (service.type === 'ExternalName') throw usage(`${name} is of type ExternalName: it is a name alone`)
  if (isHeadless(service)) throw usage(`${name} is headless: it has no address; name one of its pods`)
  const ips = ipsOf(service.clusterIPs)
  if (ips.length === 0) throw usage(`${name} has no cluster IP in the input`)
  return { name, ips, service, isByName: false }
}

/** The source's first family that the target has too. */
function familyBetween(source: Named, target: Named, words: PathWords): Family {
  const { protocol } = words
  const asked = protocol === 'ICMP' ? 'ipv4' : protocol === 'ICMPv6' ? 'ipv6' : undefined
  const theirs = target.ips.map(({ family }) => family)
  const family = source.ips
    .map((one) => one.family)
    .find((one) => theirs.includes(one) && (asked === undefined || one === asked))
  if (family !== undefined) return family
  const what = asked === undefined ? 'of one family' : asked === 'ipv4' ? 'of IPv4' : 'of IPv6'
  const other = protocol === 'ICMP' ? 'ipv6' : 'ipv4'
  const isOther = asked !== undefined && [source, target].every(({ ips }) => ips.some((one) => one.family === other))
  const hint = isOther ? `; add --proto ${other === 'ipv6' ? 'icmpv6' : 'icmp'}` : hintBrackets(words.target)
  throw usage(`${source.name} and ${target.name} have no addresses ${what}, so that no packet goes between them${hint}`)
}

/** `fd00::1:80` is an address, too. */
function hintBrackets(target: string): string {
  const [, address = '', port] = /^(.+):(\d+)$/.exec(target) ?? []
  const isMeant = parseIp(target)?.family === 'ipv6' && parseIp(address)?.family === 'ipv6'
  return isMeant ? `; an address of IPv6 has its port behind brackets: [${address}]:${port}` : ''
}

function atFamily({ ips, pod, node, isByName }: Named, family: Family): WalkEnd {
  const ip = ips.find((one) => one.family === family) ?? ips[0]
  if (ip === undefined) throw usage('an end has no address')
  return {
    ip,
    isByName,
    ...(pod !== undefined && { pod }),
    ...(node !== undefined && { node }),
  }
}

/** Of ICMP the type, and the code where it is told. */
type Asked = { readonly port: number; readonly code?: number }

function portOf(target: Named, words: PathWords, behind: string | undefined): Asked {
  const { protocol, port: flag } = words
  if (behind !== undefined && flag !== undefined && behind !== flag) {
    throw usage(`TARGET names port ${behind} and --port ${flag}; leave one of them out`)
  }
  const text = behind ?? flag
  if (protocol === 'ICMP' || protocol === 'ICMPv6') return icmpType(text, protocol)
  if (text === undefined) return { port: onlyPort(target, words) }
  if (/^\d+$/.test(text)) {
    if (Number(text) >= 1 && Number(text) <= 65535) return { port: Number(text) }
    throw usage(`"${text}" is not a port from 1 to 65535`)
  }
  if (text === '') throw usage(`TARGET ${words.target} ends in a colon; write the port behind it, or leave it out`)
  const [, number, proto] = /^([^/]+)\/(tcp|udp|sctp)$/i.exec(text) ?? []
  if (proto !== undefined)
    throw usage(`port ${text} tells the protocol; write ${number}, and --proto ${proto.toLowerCase()}`)
  const named = namedPortsOf(target).find((one) => one.name === text && one.protocol === protocol)
  if (named !== undefined) return { port: named.port }
  const known = namedPortsOf(target).filter(({ name }) => name !== '')
  throw usage(
    `${target.name} has no port "${text}" over ${protocol}: ${known.length === 0 ? 'its ports have no names' : `it has ${listOf(known.map(({ name, port, protocol: own }) => `${name} ${port}/${own}`).sort(compareText))}`}`,
  )
}

function icmpType(text: string | undefined, protocol: WalkProtocol): Asked {
  if (text === undefined) return { port: protocol === 'ICMP' ? 8 : 128 }
  const [type, code] = text.split('/')
  const isCode = (part: string | undefined): part is string => /^\d+$/.test(part ?? '') && Number(part) <= 255
  if (isCode(type) && /^\d+(?:\/\d+)?$/.test(text) && (code === undefined || isCode(code))) {
    return { port: Number(type), ...(code !== undefined && { code: Number(code) }) }
  }
  throw usage(`port ${text}: of ICMP the port is the type, 0 to 255, and may have a code, as in 3/4`)
}

type KnownPort = { readonly name: string; readonly protocol: string; readonly port: number }

function namedPortsOf({ service, pod }: Named): readonly KnownPort[] {
  if (service !== undefined) return service.ports
  return pod === undefined ? [] : namedPorts(pod)
}

/** A Service's single port need not be named. */
function onlyPort({ name, service }: Named, { protocol, target }: PathWords): number {
  const [first, second] = (service?.ports ?? []).filter((one) => one.protocol === protocol)
  if (first !== undefined && second === undefined) return first.port
  const ports = (service?.ports ?? []).map(({ port, protocol: own }) => `${port}/${own}`)
  throw usage(
    ports.length === 0
      ? `no port is named; write TARGET:PORT, or --proto icmp for a ping${hintBrackets(target)}`
      : `${name} has ${listOf(ports)}; write which: TARGET:PORT`,
  )
}

/** The node that a save in test/saves was taken on, as far as its rules tell, and packets that are of interest there. */
import { parseEndpoint, parseIp } from '#base/ip'
import { containsIp, parsePrefix } from '#base/prefix'
import type { SurveyRow } from '#verify/survey-services'
import type { NodeSpec } from './kernel-node'
import type { RulesPlace } from './rules'
import { echoRequestType, fromLocal, type SentPacket } from './sent-packet'

type Family = RulesPlace['family']
type Link = NodeSpec['links'][number]

const usualLinks: readonly Link[] = [
  { name: 'eth0', addresses: ['192.168.50.11/24', 'fd00:192:168:50::11/64'], routes: ['default'] },
  { name: 'cni0', addresses: ['10.244.1.1/24', 'fd00:10:244:1::1/64'] },
]

/** What the makers put behind their links. */
const knownLinks: Readonly<Record<string, Omit<Link, 'name'>>> = {
  docker0: { addresses: ['172.17.0.1/16'] },
  'br-7d1f20c4be9a': { addresses: ['172.20.0.1/16'] },
  virbr0: { addresses: ['192.168.122.1/24'] },
  cali0ab12cd34ef: { addresses: [], routes: ['10.244.1.9/32'] },
  cali5f6071829ab: { addresses: [], routes: ['10.244.1.2/32'] },
  'vxlan.calico': { addresses: ['10.244.1.0/32'], routes: ['10.244.2.0/24'] },
  cilium_host: { addresses: ['10.244.1.254/32'] },
  lxc1: { addresses: [], routes: ['10.244.1.9/32'] },
  veth1: { addresses: [], routes: ['10.244.1.9/32'] },
  'kube-bridge': { addresses: ['10.244.1.254/32'], routes: ['10.244.1.8/29'] },
  weave: { addresses: ['10.244.1.254/32'], routes: ['10.244.1.8/29'] },
}

/** IPVS binds the addresses of all Services to the node. */
export function specOfSave(name: string, save: string): NodeSpec {
  const named = new Set([...save.matchAll(/ -[io] (\S+)/g)].map(([, link = '']) => link.replace('+', '1')))
  const extra = [...named].flatMap((link) => {
    const known = knownLinks[link]
    return known === undefined ? [] : [{ name: link, ...known }]
  })
  const localAddresses = name.includes('ipvs')
    ? ['10.96.0.1/32', '10.96.0.10/32', '10.96.10.1/32', '10.96.20.1/32']
    : []
  return {
    links: [...usualLinks, ...extra],
    localAddresses,
    sysctls: { 'net.ipv4.conf.all.route_localnet': '1' },
  }
}

export function addressesOf({ links, localAddresses = [] }: NodeSpec): readonly string[] {
  return [...links.flatMap((link) => link.addresses), ...localAddresses].map((text) => text.split('/')[0] ?? '')
}

/** The link that the longest range of an address lies behind. */
export function linkTo({ links }: NodeSpec, address: string): string {
  const ip = parseIp(address)
  let best = { name: 'eth0', length: -1 }
  for (const { name, addresses, routes = [] } of links) {
    for (const text of [...addresses, ...routes]) {
      const prefix = parsePrefix(text)?.prefix
      if (ip !== undefined && prefix !== undefined && containsIp(prefix, ip) && prefix.length > best.length) {
        best = { name, length: prefix.length }
      }
    }
  }
  return best.name
}

type Target = Pick<SentPacket, 'protocol' | 'destination' | 'destinationPort'>

/** To every destination that the rules are about and to some that they are not, from each kind of sender. */
export function packetsOfInterest(spec: NodeSpec, family: Family, rows: readonly SurveyRow[]): readonly SentPacket[] {
  const own = addressesOf(spec).filter((ip) => ip.includes(':') === (family === 'ipv6'))
  const targets = [...rows.flatMap((row) => targetOf(row, own[0] ?? '')), ...plainTargets(family, own)]
  const senders = sendersOf(spec, family, own)
  const packets: SentPacket[] = []
  for (const [at, target] of targets.entries()) {
    // Two senders for each target, in turn: each meets all of them over a few targets.
    for (const turn of [0, 1, 2]) {
      const sender = senders[(at * 2 + turn) % senders.length]
      const packet = sender && packetOf(sender, target, 10_000 + packets.length)
      if (packet !== undefined) packets.push(packet)
    }
  }
  return packets
}

function targetOf({ destination, protocol }: SurveyRow, nodeIp: string): Target[] {
  if (protocol !== 'tcp' && protocol !== 'udp' && protocol !== 'sctp') return []
  const isNode = destination.startsWith('this node:')
  const end = parseEndpoint(isNode ? `192.0.2.1:${destination.slice(10)}` : destination)
  const address = isNode ? nodeIp : destination.replace(/:\d+$/, '').replace(/^\[|\]$/g, '')
  return end?.port === undefined ? [] : [{ protocol, destination: address, destinationPort: end.port }]
}

function plainTargets(family: Family, own: readonly string[]): readonly Target[] {
  const isIpv4 = family === 'ipv4'
  const outside = isIpv4 ? '203.0.113.99' : '2001:db8:203::99'
  const pod = isIpv4 ? '10.244.1.9' : 'fd00:10:244:1::9'
  const far = isIpv4 ? '10.244.2.9' : 'fd00:10:244:2::9'
  const many = isIpv4 ? ['255.255.255.255', '224.0.0.1'] : ['ff02::1']
  const ports = [22, 53, 80, 443, 8080, 10250]
  return [
    ...own.flatMap((destination) =>
      ports.map((destinationPort) => ({ protocol: 'tcp', destination, destinationPort }) as const),
    ),
    ...[outside, pod, far].flatMap((destination) =>
      (['tcp', 'udp', 'icmp'] as const).map((protocol) => ({ protocol, destination, destinationPort: 80 })),
    ),
    ...many.map((destination) => ({ protocol: 'udp', destination, destinationPort: 67 }) as const),
    ...own.map((destination) => ({ protocol: 'icmp', destination }) as const),
    { protocol: 'udp', destination: own[0] ?? '', destinationPort: 4789 },
    { protocol: 'sctp', destination: own[0] ?? '', destinationPort: 3868 },
  ]
}

type Sender = Pick<SentPacket, 'from' | 'source'>

function sendersOf(spec: NodeSpec, family: Family, own: readonly string[]): readonly Sender[] {
  const isIpv4 = family === 'ipv4'
  const sources = isIpv4
    ? ['203.0.113.7', '10.244.1.9', '192.168.50.70', '10.244.2.3', '203.0.113.15', '10.244.1.30']
    : ['2001:db8:203::7', 'fd00:10:244:1::9', 'fd00:192:168:50::70', 'fd00:10:244:2::3', 'fd00:10:244:1::30']
  const neighbours = isIpv4 ? ['172.17.0.2', '172.20.0.3', '192.168.122.5', '10.244.1.2'] : []
  const behind = neighbours.filter((source) => linkTo(spec, source) !== 'eth0')
  return [
    ...[...sources, ...behind].map((source) => ({ from: linkTo(spec, source), source })),
    ...own.slice(0, 2).map((source) => ({ from: fromLocal, source })),
  ]
}

function packetOf(sender: Sender, target: Target, number: number): SentPacket | undefined {
  const isGroup = /^(255|224|ff)/.test(target.destination)
  if (sender.from === fromLocal && (isGroup || target.protocol === 'sctp')) return undefined
  const packet = { ...sender, ...target, sourcePort: number }
  if (target.protocol !== 'icmp') return packet
  const echo = { ...sender, protocol: target.protocol, destination: target.destination }
  return { ...echo, icmp: { type: echoRequestType(echo), code: 0, id: number } }
}

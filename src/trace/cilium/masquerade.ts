/** Whether a packet that leaves a node takes another source address, and which port. Mirrors snat_v4_needs_masquerade and snat_v4_new_mapping of bpf/lib/nat.h, Cilium 1.16 to 1.19. */
import { type Ip, isSameIp, printIp } from '#base/ip'
import { containsIp, printPrefix } from '#base/prefix'
import { podRanges } from '#compile/cilium/render-ipcache'
import { hostFlag } from '#compile/cilium/render-lxc'
import { isInCluster } from '#compile/identities/numbers'
import { isAtLeast } from '#model/cilium-version'
import type { MapLookup, WalkPlace } from '#model/walk'
import { isRemoteNode } from './find-service'
import { type FlowPacket, isIcmp, rewritePlace, rewriteSource } from './flow-packet'
import { isUnspecified, type NodeTables } from './node-tables'
import { isReply, lookUpNat, putNat } from './state-tables'
import { type Draft, drop, type Ending, stateOf, tellRewrite } from './walk-draft'

export type Masquerade =
  | { readonly kind: 'no'; readonly why: string; readonly lookups: readonly MapLookup[] }
  | {
      readonly kind: 'snat'
      readonly ip: Ip
      readonly needsCt: boolean
      readonly why: string
      readonly lookups: readonly MapLookup[]
    }
  | { readonly kind: 'no-address'; readonly why: string; readonly lookups: readonly MapLookup[] }

/** The first test that fits decides; an egress gateway comes before what is not to be masqueraded. */
export function needsMasquerade(draft: Draft, node: NodeTables): Masquerade {
  const { packet, net } = draft
  const { source, destination } = packet
  const { family } = source
  const own = net.internalIp(node.name, family)
  const no = (why: string, lookups: readonly MapLookup[] = []): Masquerade => ({ kind: 'no', why, lookups })
  if (!net.path.masquerades[family]) return no(`enable-${family}-masquerade is off`)
  const local = node.lxc(source)
  const isEndpoint = local.row !== undefined && (local.row.flags & hostFlag) === 0
  if (own !== undefined && isSameIp(source, own)) {
    if (packet.sourcePort < 32768 && !isIcmp(packet.protocol))
      return no('the source is the node’s own address, at a port that no translation uses', [local.lookup])
    const why = 'the source is the node’s own address: its port is reserved, so that no translation takes it'
    return { kind: 'snat', ip: own, needsCt: true, why, lookups: [local.lookup] }
  }
  if (isEndpoint && isReply(stateOf(draft, node), packet)) return no('it is an endpoint’s answer', [local.lookup])
  const gateway = egressAddress(draft, node)
  if (gateway !== undefined) return gateway
  return byDestination(draft, node, {
    own,
    isEndpoint,
    lookup: local.lookup,
    isHost: local.row !== undefined && !isEndpoint,
    destination,
  })
}

type Facts = {
  readonly own: Ip | undefined
  readonly isEndpoint: boolean
  readonly isHost: boolean
  readonly lookup: MapLookup
  readonly destination: Ip
}

function byDestination({ net }: Draft, node: NodeTables, facts: Facts): Masquerade {
  const { own, isEndpoint, isHost, lookup, destination } = facts
  const no = (why: string, lookups: readonly MapLookup[] = []): Masquerade => ({ kind: 'no', why, lookups })
  const excluded = excludedRange(net, node, destination)
  if (excluded !== undefined) return no(excluded)
  if (isHost) return no('the source is the host', [lookup])
  if (net.settings.hasIpMasqAgent) {
    const { row, lookup: asked } = node.ipMasq(destination)
    if (row !== undefined) return no(`ip-masq-agent keeps addresses towards ${printPrefix(row.prefix)}`, [asked])
  }
  const { row: there, lookup: cache } = node.ipcache(destination)
  if (there !== undefined && isRemoteNode(there.identity)) {
    if (!net.settings.isTunnel) return no('the destination is a node, which pods’ addresses reach', [cache])
    if ((there.flags & 1) !== 0) return no('the destination is a node that is reached without the tunnel', [cache])
  }
  if (!isEndpoint) return no('the source is no endpoint of this node', [lookup])
  if (own === undefined) return no('the node has no address of this family', [lookup])
  return {
    kind: 'snat',
    ip: own,
    needsCt: false,
    why: `an endpoint’s address leaves as ${printIp(own)}`,
    lookups: [lookup],
  }
}

/** The native range, or else this node's own pod range; with ip-masq-agent only what is set. */
function excludedRange(net: Draft['net'], node: NodeTables, destination: Ip): string | undefined {
  const { family } = destination
  const told = net.path.nativeRanges[family]
  if (told !== undefined) {
    const key = `${family}-native-routing-cidr`
    return containsIp(told, destination) ? `the destination is in ${key} ${printPrefix(told)}` : undefined
  }
  if (net.settings.hasIpMasqAgent) return undefined
  const own = podRanges(net).find(({ name, prefix }) => name === node.name && containsIp(prefix, destination))
  return own === undefined ? undefined : `the destination is in the node’s own pod range ${printPrefix(own.prefix)}`
}

/** What the gateway lends; other nodes have sent such packets there before. */
function egressAddress({ packet, net }: Draft, node: NodeTables): Masquerade | undefined {
  const { source, destination } = packet
  if (!net.settings.hasEgressGateway) return undefined
  const { row, lookup } = node.egress(source, destination)
  if (row === undefined || net.nodeOfAddress(row.gatewayIp) !== node.name) return undefined
  const there = node.ipcache(destination)
  if (there.row !== undefined && isInCluster(there.row.identity)) return undefined
  const lookups = [there.lookup, lookup]
  if (isUnspecified(row.egressIp)) {
    return { kind: 'no-address', why: 'the gateway does not have the address that the policy asks for', lookups }
  }
  const why = `the egress gateway lends ${printIp(row.egressIp)}`
  return { kind: 'snat', ip: row.egressIp, needsCt: false, why, lookups }
}

export type Translation = {
  readonly ip: Ip
  readonly needsCt: boolean
  readonly why: string
  readonly lookups: readonly MapLookup[]
}

const lowestPort = 32768
const highestPort = 65535
const tries = 32

/** Keeps a mapping that is there; or else the source port where it can, and the reverse key decides what is free. */
export function translateSource(
  draft: Draft,
  node: NodeTables,
  at: WalkPlace,
  { ip, needsCt, why, lookups }: Translation,
): Ending | undefined {
  const state = stateOf(draft, node)
  const { packet } = draft
  const there = lookUpNat(state, packet, 'OUT')
  if (there.row !== undefined) {
    const written = rewriteSource(packet, there.row.to, rewritePlace(at))
    tellRewrite(draft, at, ['translated the source', `${why}; the connection has its mapping`], {
      ...written,
      lookups: [...lookups, there.lookup],
    })
    return undefined
  }
  const found = freePort(draft, node, ip)
  if (found.port === undefined) {
    const sentence = `no port of ${printIp(ip)} is free towards ${printIp(packet.destination)} after ${tries} tries: all connections to one destination share ${highestPort - lowestPort + 1} ports`
    return drop(draft, at, 167, { sentence })
  }
  const to = { ip, port: found.port }
  const translated = rewriteSource(packet, to, rewritePlace(at))
  const tuple = {
    protocol: packet.protocol,
    source: packet.source,
    sourcePort: packet.sourcePort,
    destination: packet.destination,
    port: packet.port,
  }
  putNat(state, { ...tuple, direction: 'OUT', to, needsCt })
  const back = {
    protocol: packet.protocol,
    source: packet.destination,
    sourcePort: packet.port,
    destination: ip,
    port: found.port,
  }
  putNat(state, { ...back, direction: 'IN', to: { ip: packet.source, port: packet.sourcePort }, needsCt })
  tellRewrite(draft, at, ['translated the source', `${why}; ${found.why}`], {
    ...translated,
    lookups: [...lookups, there.lookup, ...found.lookups],
  })
  return undefined
}

type PortChoice = { readonly port?: number; readonly why: string; readonly lookups: readonly MapLookup[] }

/** Where the datapath draws at random the mapping of the port itself stands for what is drawn. */
function freePort(draft: Draft, node: NodeTables, ip: Ip): PortChoice {
  const { packet } = draft
  const state = stateOf(draft, node)
  const lookups: MapLookup[] = []
  const isOpen = isIcmp(packet.protocol)
  const kept = isOpen || (packet.sourcePort >= lowestPort && packet.sourcePort <= highestPort)
  let port = kept ? packet.sourcePort : mapPort(draft, packet.sourcePort)
  for (let attempt = 0; attempt < tries; attempt++) {
    const { row, lookup } = lookUpNat(state, reverseOf(packet, ip, port), 'IN')
    lookups.push(lookup)
    if (row === undefined) return { port, why: whyPort({ attempt, kept, port, packet }), lookups: lookups.slice(-2) }
    port = isOpen ? (port + 1) % 65536 : mapPort(draft, (port + 1) % 65536)
  }
  return { why: '', lookups }
}

function reverseOf(packet: FlowPacket, ip: Ip, port: number): FlowPacket {
  return { ...packet, source: packet.destination, sourcePort: packet.port, destination: ip, port }
}

/** Into the range: by remainder until 1.16, by proportion since. */
function mapPort({ net }: Draft, value: number): number {
  if (isAtLeast(net.settings.policy.version, '1.17')) {
    return lowestPort + Math.floor((value * (highestPort - lowestPort + 1)) / 65536)
  }
  return (value % (highestPort - lowestPort)) + lowestPort
}

type Drawn = { readonly attempt: number; readonly kept: boolean; readonly port: number; readonly packet: FlowPacket }

function whyPort({ attempt, kept, port, packet }: Drawn): string {
  if (attempt === 0 && kept) return `${isIcmp(packet.protocol) ? 'identifier' : 'port'} ${port} is kept`
  if (attempt === 0)
    return `port ${packet.sourcePort} is below ${lowestPort}, so that one is drawn at random, for which ${port} stands here`
  const why = kept ? `port ${packet.sourcePort} is taken` : 'the first port that was drawn is taken'
  return `${why}: after ${attempt === 1 ? 'one more try' : `${attempt} more tries`}, the first at random, ${port} stands here for the port that is found`
}

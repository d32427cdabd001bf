/** Which Service a packet is for, as each hook asks. Mirrors lb4_lookup_service of bpf/lib/lb.h and sock4_wildcard_lookup of bpf/bpf_sock.c, Cilium 1.16 to 1.19. */
import { type Ip, isSameIp } from '#base/ip'
import type { ServiceRow } from '#compile/cilium/lb-rows'
import { serviceFlags } from '#compile/cilium/service-flags'
import { identityNumbers, scopeOf } from '#compile/identities/numbers'
import { isAtLeast } from '#model/cilium-version'
import type { MapLookup } from '#model/walk'
import type { CiliumNet } from './cilium-net'
import { type FlowPacket, numbers } from './flow-packet'
import type { NodeTables, ServiceKey } from './node-tables'

export type ServiceFound = { readonly row?: ServiceRow; readonly lookups: readonly MapLookup[] }

export function hasFlag({ flags }: ServiceRow, flag: number): boolean {
  return (flags & flag) !== 0
}

/** Traffic from inside asks again for the row of inside, where a frontend has two. */
export function findService(node: NodeTables, packet: FlowPacket, isEastWest: boolean): ServiceFound {
  return findByKey(node, { ip: packet.destination, port: packet.port, protocol: numbers[packet.protocol] }, isEastWest)
}

type Frontend = Omit<ServiceKey, 'scope'>

function findByKey(node: NodeTables, frontend: Frontend, isEastWest: boolean): ServiceFound {
  const { row, lookups } = findInScope(node, frontend, 'external')
  if (row === undefined || !isEastWest || !hasFlag(row, serviceFlags.twoScopes)) {
    return { lookups, ...(row !== undefined && { row }) }
  }
  const inner = findInScope(node, frontend, 'internal')
  return { lookups: [...lookups, ...inner.lookups], ...(inner.row !== undefined && { row: inner.row }) }
}

/** From 1.17 on by its protocol, then by any, for rows that tell none; before, by any. */
function findInScope(node: NodeTables, frontend: Frontend, scope: ServiceKey['scope']): ServiceFound {
  const { version } = node.maps.settings.policy
  const protocols = isAtLeast(version, '1.17') ? [frontend.protocol, 0] : [0]
  const lookups: MapLookup[] = []
  for (const protocol of protocols) {
    const { row, lookup } = node.service({ ...frontend, protocol, scope })
    if (row !== undefined || protocol !== 0 || protocols.length === 1) lookups.push(lookup)
    if (row !== undefined && !row.isWildcard) return { row, lookups }
  }
  return { lookups }
}

/** Other ports of a load balancer's address, which traffic from outside alone asks for. */
export function findWildcard(node: NodeTables, { destination }: FlowPacket): ServiceFound {
  const { row, lookup } = node.service({ ip: destination, port: 0, protocol: 0, scope: 'external' })
  return row === undefined ? { lookups: [lookup] } : { row, lookups: [lookup] }
}

type SocketQuestion = { readonly packet: FlowPacket; readonly isHost: boolean }

/** At a socket: the frontend itself, then a node port or host port at any node's address, which its surrogate answers for. */
export function findAtSocket(net: CiliumNet, node: NodeTables, { packet, isHost }: SocketQuestion): ServiceFound {
  const direct = findService(node, packet, true)
  if (direct.row !== undefined) return direct
  const { from, to } = net.path.nodePorts
  const isNodePort = packet.port >= from && packet.port <= to
  const { row, lookup } = node.ipcache(packet.destination)
  const identity = row?.identity ?? identityNumbers.world
  const isOwn = identity === identityNumbers.host || (isHost && isLoopback(packet.destination))
  if (!isOwn && !(isNodePort && isRemoteNode(identity))) return direct
  const any: Ip = { family: packet.destination.family, words: packet.destination.words.map(() => 0) }
  const wild = findByKey(node, { ip: any, port: packet.port, protocol: numbers[packet.protocol] }, true)
  return { ...wild, lookups: [...direct.lookups, lookup, ...wild.lookups] }
}

export function isRemoteNode(identity: number): boolean {
  return (
    identity === identityNumbers['remote-node'] ||
    identity === identityNumbers['kube-apiserver'] ||
    scopeOf(identity) === 'remote-node'
  )
}

export function isLoopback(ip: Ip): boolean {
  if (ip.family === 'ipv4') return (ip.words[0] ?? 0) >>> 24 === 127
  return isSameIp(ip, { family: 'ipv6', words: [0, 0, 0, 1] })
}

/** External addresses are not taken over at sockets unless they are this host's (CVE-2020-8554). */
export function isSkippedAtSocket(node: NodeTables, row: ServiceRow, { destination }: FlowPacket): boolean {
  const isHostPort = hasFlag(row, serviceFlags.hostPort) && !isLoopback(destination)
  if (!hasFlag(row, serviceFlags.externalIps) && !isHostPort) return false
  return node.ipcache(destination).row?.identity !== identityNumbers.host
}

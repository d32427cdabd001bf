/** Which node is behind an address: by the tunnel's rows, by routes, and on the wire. */
import type { Ip } from '#base/ip'
import { containsIp } from '#base/prefix'
import { isAtLeast } from '#model/cilium-version'
import type { MapLookup, WalkPlace } from '#model/walk'
import type { Next } from './next'
import { type NodeTables, worldOf } from './node-tables'
import type { Draft } from './walk-draft'

export type TunnelFound = { readonly to?: Ip; readonly lookups: readonly MapLookup[] }

/** The row of the ipcache names the node; until 1.17 the pod's range does where the row does not. */
export function tunnelTo(node: NodeTables, destination: Ip): TunnelFound {
  const { row, lookup } = node.ipcache(destination)
  if (row?.tunnel !== undefined && (row.flags & 1) === 0) return { to: row.tunnel, lookups: [lookup] }
  if (isAtLeast(node.maps.settings.policy.version, '1.18') || !node.maps.settings.isTunnel) return { lookups: [lookup] }
  const range = node.tunnel(destination)
  return range.row === undefined
    ? { lookups: [lookup, range.lookup] }
    : { to: range.row.nodeIp, lookups: [lookup, range.lookup] }
}

/** A route leads every address of a pod range that Cilium routes by itself to cilium_host. */
export function isOwnRange(node: NodeTables, destination: Ip): boolean {
  return node.maps.routes.some(
    ({ destination: range, device }) => device === 'cilium_host' && containsIp(range, destination),
  )
}

/** An answer with its frontend restored: to a client of this node, to one behind the tunnel, or out by the node's routes. */
export function backToClient({ packet, net }: Draft, node: NodeTables, at: WalkPlace): Next {
  const { destination } = packet
  const local = node.lxc(destination).row
  const from = node.ipcache(packet.source).row?.identity ?? worldOf(node, packet.source)
  if (local !== undefined)
    return (local.flags & 3) !== 0
      ? { kind: 'to-host', node, identity: from }
      : { kind: 'from-host', node, identity: from }
  const tunnel = net.settings.isTunnel ? tunnelTo(node, destination) : { lookups: [] }
  if (tunnel.to !== undefined) {
    const { device = '', hook, program = '' } = at
    const why = 'the client is behind the tunnel'
    return {
      kind: 'encapsulate',
      node,
      at: { device, hook, program },
      to: tunnel.to,
      identity: from,
      why,
      lookups: tunnel.lookups,
    }
  }
  const why = 'straight to the client, as the node’s routes say (fib lookup)'
  return {
    kind: 'leave',
    node,
    identity: worldOf(node, destination),
    isTranslated: true,
    isXdp: at.hook === 'xdp',
    why,
  }
}

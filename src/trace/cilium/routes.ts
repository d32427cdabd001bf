/** Which node is behind an address: by the tunnel's rows, by routes, and on the wire. */
import type { Ip } from '#base/ip'
import { containsIp } from '#base/prefix'
import { isAtLeast } from '#model/cilium-version'
import type { MapLookup } from '#model/walk'
import type { NodeTables } from './node-tables'

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

/** Maps and routes of other nodes: cilium_tunnel_map, cilium_node_map_v2 and the routes to their pods. Mirrors pkg/maps/tunnel, pkg/maps/nodemap and pkg/datapath/linux/node.go, Cilium 1.16 to 1.19. */
import { type Ip, printIp } from '#base/ip'
import { overlaps, type Prefix, printPrefix } from '#base/prefix'
import { compareText } from '#base/text'
import { isAtLeast } from '#model/cilium-version'
import { refOf } from '#model/meta'
import { mapsFinding } from './findings'
import { type RowSource, sourceOf } from './map-source'
import type { NodeWorld } from './node-world'
import { podRanges, tunnelAddress } from './render-ipcache'
import { nodeAddresses } from './render-lxc'

/** The key is the range's first address alone: the datapath masks what it asks for. */
export type TunnelRow = { readonly range: Prefix; readonly nodeIp: Ip; readonly source: RowSource }

/** Numbers of nodes are each agent's own; ours are in the order of names, and the node itself is 0. */
export type NodeIdRow = { readonly ip: Ip; readonly nodeId: number; readonly spi: number; readonly source: RowSource }

export type RouteRow = {
  readonly destination: Prefix
  readonly via?: Ip
  readonly device?: string
  readonly source: RowSource
}

/** Up to 1.17; later the ipcache holds the ranges. */
export function renderTunnels(world: NodeWorld): readonly TunnelRow[] {
  const { settings, node } = world
  if (!settings.isTunnel || isAtLeast(settings.policy.version, '1.18')) return []
  const rows = new Map<string, TunnelRow>()
  for (const { prefix, name, meta, path } of podRanges(world)) {
    const nodeIp = tunnelAddress(world, name)
    if (name === node || nodeIp === undefined || !settings.families.includes(prefix.ip.family)) continue
    rows.set(printIp(prefix.ip), { range: prefix, nodeIp, source: sourceOf('nodes', meta, { path }) })
  }
  return [...rows.values()]
}

export function renderNodeIds(world: NodeWorld): readonly NodeIdRow[] {
  const { cluster, node, settings } = world
  const names = [...new Set([...cluster.nodes.keys(), ...cluster.ciliumNodes.keys()])]
    .filter((name) => name !== node)
    .sort(compareText)
  const of = (name: string, nodeId: number): readonly NodeIdRow[] =>
    nodeAddresses(world, name)
      .filter(({ ip }) => settings.families.includes(ip.family))
      .map(({ ip, source }) => ({ ip, nodeId, spi: cluster.ciliumNodes.get(name)?.encryptionKey ?? 0, source }))
  return [...of(node, 0), ...names.flatMap((name, index) => of(name, index + 1))]
}

/** To pods of other nodes: through the tunnel's router, to the node itself with direct routes, or left to the network. */
export function renderRoutes(world: NodeWorld): readonly RouteRow[] {
  const { settings, node } = world
  const routers = nodeAddresses(world, node).filter(({ type }) => type === 'CiliumInternalIP')
  return podRanges(world).flatMap(({ prefix, name, meta, path }): readonly RouteRow[] => {
    const { family } = prefix.ip
    if (!settings.families.includes(family)) return []
    const router = routers.find(({ ip }) => ip.family === family)?.ip
    const source = sourceOf('nodes', meta, { path })
    const byRouter = {
      destination: prefix,
      device: 'cilium_host',
      source,
      ...(router !== undefined && { via: router }),
    }
    if (name === node || settings.isTunnel) return [byRouter]
    const via = nodeAddresses(world, name).find(({ ip, type }) => type === 'InternalIP' && ip.family === family)?.ip
    return settings.hasDirectRoutes && via !== undefined ? [{ destination: prefix, via, source }] : []
  })
}

/** Two nodes that answer for one address: packets go to one of them alone. */
export function tellOverlaps(world: NodeWorld): void {
  const ranges = podRanges(world)
  for (const [index, one] of ranges.entries()) {
    const other = ranges.slice(0, index).find(({ prefix, name }) => name !== one.name && overlaps(prefix, one.prefix))
    if (other === undefined) continue
    world.findings.push(
      mapsFinding('maps.pod-ranges-overlap', {
        message: `its range ${printPrefix(one.prefix)} overlaps ${printPrefix(other.prefix)} of ${other.name}; pods with a row of their own are reached all the same`,
        object: refOf(one.meta),
        origin: one.meta.origin,
        path: one.path,
      }),
    )
  }
}

/** All maps of one node, row by row, as its agent would write them for the objects of a cluster. */
import type { Finding } from '#base/finding'
import { printEndpoint, printIp } from '#base/ip'
import type { Cluster } from '#model/cluster'
import type { DatapathSettings } from './datapath-settings'
import type { ServiceRow } from './lb-rows'
import { maglevTable } from './maglev'
import { type NodeWorld, nodeWorld, type WorldOptions } from './node-world'
import { type EgressRow, renderEgress } from './render-egress'
import { type IpcacheRow, renderIpcache } from './render-ipcache'
import { type IpMasqRow, renderIpMasq } from './render-ipmasq'
import { type LxcRow, renderLxc } from './render-lxc'
import {
  type NodeIdRow,
  type RouteRow,
  renderNodeIds,
  renderRoutes,
  renderTunnels,
  type TunnelRow,
  tellOverlaps,
} from './render-nodes'
import { type EndpointPolicy, renderPolicyMaps } from './render-policy-maps'
import { type LbMaps, renderServices } from './render-services'

export type MaglevRow = {
  readonly service: ServiceRow
  /** An id of a backend for each row of the table. */
  readonly table: Uint32Array
}

export type NodeMaps = {
  readonly world: NodeWorld
  readonly settings: DatapathSettings
  readonly lxc: readonly LxcRow[]
  readonly ipcache: readonly IpcacheRow[]
  readonly policies: readonly EndpointPolicy[]
  readonly lb: LbMaps
  readonly maglev: readonly MaglevRow[]
  readonly egress: readonly EgressRow[]
  readonly tunnels: readonly TunnelRow[]
  readonly nodeIds: readonly NodeIdRow[]
  readonly ipMasq: readonly IpMasqRow[]
  readonly routes: readonly RouteRow[]
  readonly findings: readonly Finding[]
}

export function nodeMaps(cluster: Cluster, options: WorldOptions): NodeMaps {
  const world = nodeWorld(cluster, options)
  tellOverlaps(world)
  const lb = renderServices(world)
  const maps = {
    world,
    settings: world.settings,
    lxc: renderLxc(world),
    ipcache: renderIpcache(world),
    policies: renderPolicyMaps(world),
    lb,
    maglev: maglevRows(world.settings, lb.services),
    egress: renderEgress(world),
    tunnels: renderTunnels(world),
    nodeIds: renderNodeIds(world),
    ipMasq: renderIpMasq(world),
    routes: renderRoutes(world),
  }
  return { ...maps, findings: world.findings }
}

/** Tables are for what is met from outside; services with the same backends share one. */
function maglevRows(settings: DatapathSettings, services: readonly ServiceRow[]): readonly MaglevRow[] {
  const tables = new Map<string, Uint32Array>()
  return services.flatMap((service) => {
    const isAsked = service.algorithm === 0 ? settings.usesMaglev : service.algorithm === 2
    if (!isAsked || !hasTable(settings, service)) return []
    const suffix = service.scope === 'internal' ? '/i' : ''
    const key = `${service.slots.map(({ id }) => id).join()}${suffix}`
    const table = tables.get(key) ?? buildTable(settings, service, suffix)
    if (table === undefined) return []
    tables.set(key, table)
    return [{ service, table }]
  })
}

function hasTable({ hasExternalClusterIp }: DatapathSettings, { type, isSurrogate, isWildcard }: ServiceRow): boolean {
  if (isWildcard || isSurrogate || type === 'LocalRedirect') return false
  return type !== 'ClusterIP' || hasExternalClusterIp
}

function buildTable(
  { maglevSize, maglevSeed }: DatapathSettings,
  { slots }: ServiceRow,
  suffix: string,
): Uint32Array | undefined {
  const backends = slots.map(({ id, ip, port, protocol }) => ({
    id,
    address: `${printEndpoint(printIp(ip), port)}/${protocolName(protocol)}${suffix}`,
    weight: 100,
  }))
  return maglevTable(backends, { size: maglevSize, seed: maglevSeed })
}

/** Names of IP protocols as `pkg/u8proto` prints them. */
export function protocolName(protocol: number): string {
  const names: Readonly<Record<number, string>> = {
    0: 'ANY',
    1: 'ICMP',
    2: 'IGMP',
    6: 'TCP',
    17: 'UDP',
    58: 'ICMPv6',
    112: 'VRRP',
    132: 'SCTP',
  }
  return names[protocol] ?? String(protocol)
}

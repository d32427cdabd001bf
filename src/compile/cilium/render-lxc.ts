/** cilium_lxc: the endpoints of the node by address, and the node's own addresses. Mirrors pkg/maps/lxcmap, Cilium 1.16 to 1.19. */
import { type Ip, parseIp, printIp } from '#base/ip'
import { type RowSource, sourceOf } from './map-source'
import type { NodeWorld } from './node-world'

export type LxcRow = {
  readonly ip: Ip
  readonly endpointId: number
  readonly identity: number
  readonly flags: number
  readonly source: RowSource
}

/** An address of the node itself, and an endpoint in the host's own namespace: both go to the host's stack. */
export const hostFlag = 1
const atHostFlag = 2

export function renderLxc(world: NodeWorld): readonly LxcRow[] {
  const rows = new Map<string, LxcRow>()
  for (const { ip, source } of hostAddresses(world)) {
    rows.set(printIp(ip), { ip, endpointId: 0, identity: 0, flags: hostFlag, source })
  }
  for (const endpoint of world.endpoints) {
    const { id, identity, kind, meta } = endpoint
    for (const { ip, path } of endpoint.ips) {
      if (!world.settings.families.includes(ip.family)) continue
      const source = sourceOf('endpoints', meta, { path, ...(kind !== 'pod' && { note: `the ${kind} endpoint` }) })
      rows.set(printIp(ip), { ip, endpointId: id, identity, flags: kind === 'ingress' ? atHostFlag : 0, source })
    }
  }
  return [...rows.values()]
}

export type NodeAddress = { readonly ip: Ip; readonly type: string; readonly source: RowSource }

function hostAddresses(world: NodeWorld): readonly NodeAddress[] {
  return nodeAddresses(world, world.node).filter(({ ip }) => world.settings.families.includes(ip.family))
}

/** Those of the Node, then what its CiliumNode tells beyond: the router's. */
export function nodeAddresses({ cluster }: Pick<NodeWorld, 'cluster'>, name: string): readonly NodeAddress[] {
  const node = cluster.nodes.get(name)
  const object = cluster.ciliumNodes.get(name)
  const seen = new Set<string>()
  return [
    ...(node?.addresses ?? []).map((one, index) => ({ ...one, path: `status.addresses[${index}]`, meta: node?.meta })),
    ...(object?.addresses ?? []).map((one, index) => ({
      ...one,
      path: one.isAssumed === true ? 'spec.podCIDRs' : `spec.addresses[${index}]`,
      meta: object?.meta,
    })),
  ].flatMap(({ address, type, path, meta }) => {
    const ip = parseIp(address)
    if (ip === undefined || seen.has(address)) return []
    seen.add(address)
    return [{ ip, type, source: sourceOf('nodes', meta, { path }) }]
  })
}

/** Routers whose address no object tells: a pod's packet to a node's own pods has one all the same. */
import { type Family, type Ip, printIp } from '#base/ip'
import { podRanges } from '#compile/cilium/render-ipcache'
import type { CiliumNodeObject } from '#model/cilium-policy'
import type { Cluster } from '#model/cluster'

export type AssumedRouters = {
  /** With a CiliumNode for each node that lacks its router's address, so that each node's maps have rows of it. */
  readonly cluster: Cluster
  readonly isAssumed: (ip: Ip) => boolean
}

/** The first address of the node's range that nobody has, as the agent's own allocator often draws it. */
export function assumeRouters(cluster: Cluster): AssumedRouters {
  const taken = new Set([
    ...[...cluster.pods.values()].flatMap(({ podIPs }) => podIPs),
    ...[...cluster.nodes.values()].flatMap(({ addresses }) => addresses.map(({ address }) => address)),
  ])
  const assumed = new Set<string>()
  const ciliumNodes = new Map(cluster.ciliumNodes)
  for (const { name, prefix, meta } of podRanges({ cluster })) {
    const object = ciliumNodes.get(name) ?? bareNode(meta)
    if (hasRouter(object, prefix.ip.family)) continue
    const address = firstFree(prefix.ip, taken)
    if (address === undefined) continue
    assumed.add(address)
    ciliumNodes.set(name, {
      ...object,
      addresses: [...object.addresses, { type: 'CiliumInternalIP', address, isAssumed: true }],
    })
  }
  return { cluster: { ...cluster, ciliumNodes }, isAssumed: (ip) => assumed.has(printIp(ip)) }
}

function bareNode(meta: CiliumNodeObject['meta']): CiliumNodeObject {
  return { meta, addresses: [], podCIDRs: [], healthIps: [], ingressIps: [], encryptionKey: 0 }
}

function hasRouter({ addresses }: CiliumNodeObject, family: Family): boolean {
  return addresses.some(
    ({ type, address }) => type === 'CiliumInternalIP' && address.includes(':') === (family === 'ipv6'),
  )
}

function firstFree({ family, words }: Ip, taken: ReadonlySet<string>): string | undefined {
  for (let offset = 1; offset < 256; offset++) {
    const next = [...words]
    next[next.length - 1] = ((next[next.length - 1] ?? 0) + offset) >>> 0
    const text = printIp({ family, words: next })
    if (!taken.has(text)) return text
  }
  return undefined
}

/** Who holds an address of the cluster, and which node a packet for it has to reach. */
import { familyOf, type Ip, parseIp, printIp } from '#base/ip'
import { containsIp, type Prefix, parsePrefix } from '#base/prefix'
import type { Cluster } from '#model/cluster'
import { type ClusterNode, nodeIps } from '#model/node'
import type { Pod } from '#model/pod'
import type { Service } from '#model/service'
import { hasEnded } from '../policy/party-facts'

export type Place =
  /** `node` is absent where the input does not tell it. */
  | { readonly kind: 'pod'; readonly pod: Pod; readonly node?: string }
  | { readonly kind: 'node'; readonly node: string }
  /** In the pod range of a node, and no pod's. */
  | { readonly kind: 'range'; readonly node: string; readonly range: string }
  /** `isProxied`: clients of the cluster are not served here, but by what stands before it. */
  | { readonly kind: 'service'; readonly service: Service; readonly isProxied: boolean; readonly isClusterIp: boolean }
  | { readonly kind: 'outside' }

export type Places = {
  readonly holders: ReadonlyMap<string, Place>
  readonly ranges: readonly { readonly prefix: Prefix; readonly node: string; readonly text: string }[]
}

export function indexPlaces(cluster: Cluster): Places {
  const holders = new Map<string, Place>()
  const put = (ip: string, place: Place): void => {
    if (!holders.has(ip)) holders.set(ip, place)
  }
  for (const node of cluster.nodes.values())
    for (const ip of nodeIps(node)) put(ip, { kind: 'node', node: node.meta.name })
  for (const pod of cluster.pods.values()) {
    if (hasEnded(pod)) continue
    for (const ip of pod.podIPs) put(ip, placeOfPod(pod))
  }
  for (const service of cluster.services.values()) {
    for (const ip of service.clusterIPs)
      if (ip !== 'None') put(ip, { kind: 'service', service, isProxied: false, isClusterIp: true })
    const proxied = service.loadBalancerIngress.flatMap(({ ip, ipMode }) => (ipMode === 'Proxy' ? (ip ?? []) : []))
    const own = service.loadBalancerIngress.flatMap(({ ip, ipMode }) => (ipMode === 'VIP' ? (ip ?? []) : []))
    for (const ip of [...service.externalIPs, ...own])
      put(ip, { kind: 'service', service, isProxied: false, isClusterIp: false })
    for (const ip of proxied) put(ip, { kind: 'service', service, isProxied: true, isClusterIp: false })
  }
  const ranges = [...cluster.nodes.values()].flatMap(({ meta, podCIDRs }) =>
    podCIDRs.flatMap((text) => {
      const prefix = parsePrefix(text)?.prefix
      return prefix === undefined ? [] : [{ prefix, node: meta.name, text }]
    }),
  )
  return { holders, ranges }
}

/** A host-networked pod is found where its node is. */
export function placeOfPod(pod: Pod): Place {
  if (pod.hostNetwork && pod.nodeName !== undefined) return { kind: 'node', node: pod.nodeName }
  return { kind: 'pod', pod, ...(pod.nodeName !== undefined && { node: pod.nodeName }) }
}

export function placeOf({ holders, ranges }: Places, ip: Ip): Place {
  const held = holders.get(printIp(ip))
  if (held !== undefined) return held
  const range = ranges.find(({ prefix }) => containsIp(prefix, ip))
  return range === undefined ? { kind: 'outside' } : { kind: 'range', node: range.node, range: range.text }
}

/** The address that other nodes and the world outside see of it: its first InternalIP of the family. */
export function nodeAddress(node: ClusterNode | undefined, family: Ip['family']): Ip | undefined {
  const text = node === undefined ? undefined : nodeIps(node).find((one) => familyOf(one) === family)
  return text === undefined ? undefined : parseIp(text)
}

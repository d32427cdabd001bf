/** Who has an address now: pods and nodes by address. */
import type { Cluster } from '#model/cluster'
import { nodeIps } from '#model/node'
import type { Pod } from '#model/pod'

export type Holders = {
  readonly pods: ReadonlyMap<string, readonly Pod[]>
  readonly nodes: ReadonlyMap<string, string>
}

/** A finished pod has given its address back. */
export function indexHolders(cluster: Cluster): Holders {
  const pods = new Map<string, Pod[]>()
  for (const pod of cluster.pods.values()) {
    if (pod.phase === 'Succeeded' || pod.phase === 'Failed') continue
    for (const ip of pod.podIPs) {
      const list = pods.get(ip)
      if (list === undefined) pods.set(ip, [pod])
      else list.push(pod)
    }
  }
  const nodes = new Map<string, string>()
  for (const node of cluster.nodes.values()) for (const ip of nodeIps(node)) nodes.set(ip, node.meta.name)
  return { pods, nodes }
}

/** Pods of the host network share the node's address, which is then told as the node's. */
export function holderOf({ pods, nodes }: Holders, ip: string): string | undefined {
  const node = nodes.get(ip)
  if (node !== undefined) return `node ${node}`
  const [first] = pods.get(ip) ?? []
  return first === undefined ? undefined : `pod ${first.meta.namespace}/${first.meta.name}`
}

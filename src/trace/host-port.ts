/** Ports of a node that lead to its pods. */
import type { Cluster } from '#model/cluster'
import type { Pod } from '#model/pod'
import { hasEnded } from './policy/party-facts'

export type NodePort = { readonly node: string; readonly port: number; readonly protocol: string }

/** The pod that has the port as a hostPort; of a pod on the host's network its own process listens there. */
export function podBehindHostPort({ pods }: Cluster, { node, port, protocol }: NodePort): Pod | undefined {
  for (const pod of pods.values()) {
    if (pod.nodeName !== node || pod.hostNetwork || hasEnded(pod)) continue
    const isIts = pod.containers.some(({ ports }) =>
      ports.some((one) => one.hostPort === port && one.protocol === protocol),
    )
    if (isIts) return pod
  }
  return undefined
}

/** The cluster's DNS as a Service: where pods send their questions. */
import type { Cluster } from '#model/cluster'
import { isHeadless, type Service } from '#model/service'

export type ClusterNameservers = {
  readonly service?: { readonly name: string; readonly namespace: string; readonly addresses: readonly string[] }
  /** The port of CoreDNS itself that the Service sends UDP to. */
  readonly port: number
}

/** Named kube-dns by long custom, or marked by its label. */
export function clusterNameservers({ services }: Cluster): ClusterNameservers {
  const found = services.get('kube-system/kube-dns') ?? services.get('kube-system/coredns') ?? findLabelled(services)
  if (found === undefined || isHeadless(found) || found.clusterIPs.length === 0) return { port: 53 }
  const udp = found.ports.find(({ port, protocol }) => port === 53 && protocol === 'UDP')
  const port = typeof udp?.targetPort === 'number' ? udp.targetPort : 53
  const { name, namespace } = found.meta
  return { service: { name, namespace, addresses: found.clusterIPs }, port }
}

function findLabelled(services: Cluster['services']): Service | undefined {
  for (const service of services.values()) {
    if (service.meta.namespace === 'kube-system' && service.meta.labels['k8s-app'] === 'kube-dns') return service
  }
  return undefined
}

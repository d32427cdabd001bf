/** The directory that a cluster's objects make. */
import { type Cluster, emptyCluster } from '#model/cluster'
import { type EndpointSlice, serviceNameLabel } from '#model/endpoint-slice'
import type { Meta } from '#model/meta'
import { nodeIps } from '#model/node'
import type { Container, Pod } from '#model/pod'
import { isHeadless, type Service } from '#model/service'
import type { Directory, KnownPod, KnownPort, KnownService } from './directory'
import { ownerOf } from './owner'

/** Pods that have ended hold no address; when pods started the objects do not tell. */
export function directoryOfCluster(cluster: Cluster = emptyCluster): Directory {
  const pods = [...cluster.pods.values()].filter(({ phase }) => phase !== 'Succeeded' && phase !== 'Failed')
  return {
    pods: pods.map(knownPod),
    services: [...cluster.services.values()]
      .filter(({ type }) => type !== 'ExternalName')
      .map((service) => knownService(cluster, service)),
    nodes: [...cluster.nodes.values()].map((node) => ({
      name: node.meta.name,
      addresses: isAssumed(node.meta) ? [] : nodeIps(node),
    })),
    workloads: [...cluster.workloads.values()].map(({ kind, meta, selector, template }) => ({
      kind,
      namespace: meta.namespace,
      name: meta.name,
      ...(selector !== undefined && { selector }),
      labels: template.labels,
      isHostNetwork: template.spec.hostNetwork,
      ports: portsOf(template.spec),
    })),
  }
}

/** An address that Portolan made up was never seen in a flow. */
function isAssumed({ assumed }: Meta): boolean {
  return assumed.some((path) => path === '*' || /IPs?$|addresses/.test(path))
}

function knownPod(pod: Pod): KnownPod {
  const { meta, hostNetwork, podIPs, hostIPs, nodeName, serviceAccountName } = pod
  const owners = meta.ownerReferences.map(({ kind, name, controller }) => ({
    kind,
    name,
    isController: controller === true,
  }))
  return {
    namespace: meta.namespace,
    name: meta.name,
    uid: meta.uid ?? null,
    labels: meta.labels,
    hasAllLabels: true,
    addresses: isAssumed(meta) ? [] : podIPs.length > 0 || !hostNetwork ? podIPs : hostIPs,
    isHostNetwork: hostNetwork,
    nodeName: nodeName ?? null,
    ...(serviceAccountName !== undefined && { serviceAccount: serviceAccountName }),
    workload: ownerOf({ owners, labels: meta.labels }),
    startedAt: null,
    lastSeen: null,
    isDead: false,
    diedAt: null,
    deathReason: null,
    ports: portsOf(pod),
  }
}

type Containers = { readonly containers: readonly Container[]; readonly initContainers: readonly Container[] }

function portsOf({ containers, initContainers }: Containers): readonly KnownPort[] {
  const running = initContainers.filter(({ restartPolicy }) => restartPolicy === 'Always')
  return [...containers, ...running].flatMap(({ ports }) =>
    ports.map(({ name, protocol, containerPort }) => ({
      ...(name !== undefined && { name }),
      protocol,
      port: containerPort,
    })),
  )
}

function knownService(cluster: Cluster, service: Service): KnownService {
  const { meta, clusterIPs, externalIPs, loadBalancerIngress, selector, ports } = service
  const balanced = loadBalancerIngress.flatMap(({ ip }) => (ip === undefined ? [] : [ip]))
  return {
    namespace: meta.namespace,
    name: meta.name,
    uid: meta.uid ?? null,
    addresses: [...(isHeadless(service) || isAssumed(meta) ? [] : clusterIPs), ...externalIPs, ...balanced],
    selector: selector ?? null,
    ports: ports.map(({ protocol, port, targetPort, nodePort }) => ({ protocol, port, targetPort, nodePort })),
    endpoints: selector === undefined ? endpointsOf(cluster, service) : [],
    createdAt: null,
    deletedAt: null,
  }
}

function endpointsOf(cluster: Cluster, { meta }: Service): KnownService['endpoints'] {
  const isOwn = (slice: EndpointSlice): boolean =>
    slice.meta.namespace === meta.namespace && slice.meta.labels[serviceNameLabel] === meta.name
  const slices = [...cluster.slices.values()]
    .filter(isOwn)
    .flatMap(({ endpoints, ports }) =>
      endpoints.flatMap(({ addresses }) => addresses.map((address) => ({ address, ports: ports.flatMap(plainPort) }))),
    )
  if (slices.length > 0) return slices
  const subsets = cluster.endpoints.get(`${meta.namespace}/${meta.name}`)?.subsets ?? []
  return subsets.flatMap(({ addresses, ports }) =>
    addresses.map(({ ip }) => ({ address: ip, ports: ports.flatMap(plainPort) })),
  )
}

function plainPort(port: {
  readonly port?: number | undefined
  readonly protocol?: string | undefined
}): readonly KnownPort[] {
  return port.port === undefined ? [] : [{ protocol: port.protocol ?? 'TCP', port: port.port }]
}

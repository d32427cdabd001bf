/** The addresses that a node answers for Services: which frontends a Service port has. Mirrors pkg/k8s/watchers and pkg/loadbalancer, Cilium 1.16 to 1.19. */
import { type Family, type Ip, parseIp, printIp } from '#base/ip'
import { containsIp, type Prefix, parsePrefix } from '#base/prefix'
import type { ServicePortPlan } from '#compile/services/service-plan'
import type { DatapathSettings } from './datapath-settings'
import type { NodeWorld } from './node-world'
import { nodeAddresses } from './render-lxc'
import type { FrontendType } from './service-flags'

export type FrontendAddress = {
  readonly type: FrontendType
  readonly ip: Ip
  readonly port: number
  /** 0.0.0.0 or ::, which stands for every address of the node and is never met itself. */
  readonly isSurrogate: boolean
  readonly path: string
}

/** `service.cilium.io/type` limits the kinds of frontends. */
const typeAnnotation = 'service.cilium.io/type'

export function frontendsOf(
  plan: ServicePortPlan,
  nodeIps: readonly Ip[],
  settings: DatapathSettings,
): readonly FrontendAddress[] {
  const { service, servicePort, clusterIP, port, nodePort, externalIPs, loadBalancerVIPs } = plan
  const index = service.ports.indexOf(servicePort)
  const at = (type: FrontendType, text: string, path: string): readonly FrontendAddress[] => {
    const ip = parseIp(text)
    return ip === undefined ? [] : [{ type, ip, port, isSurrogate: false, path }]
  }
  const cluster = at('ClusterIP', clusterIP, `spec.clusterIPs[${service.clusterIPs.indexOf(clusterIP)}]`)
  if (!settings.replacesKubeProxy) return wanted(plan, cluster)
  const nodePorts =
    nodePort === 0 ? [] : addressesOfNode('NodePort', nodePort, { nodeIps, path: `spec.ports[${index}].nodePort` })
  return wanted(plan, [
    ...cluster,
    ...nodePorts.filter(({ ip }) => ip.family === cluster[0]?.ip.family),
    ...externalIPs.flatMap((text) => at('ExternalIPs', text, `spec.externalIPs[${service.externalIPs.indexOf(text)}]`)),
    ...loadBalancerVIPs.flatMap((text) => {
      const place = service.loadBalancerIngress.findIndex(({ ip }) => ip === text)
      return at('LoadBalancer', text, `status.loadBalancer.ingress[${place}].ip`)
    }),
  ])
}

function wanted({ service }: ServicePortPlan, all: readonly FrontendAddress[]): readonly FrontendAddress[] {
  const limit = service.meta.annotations[typeAnnotation]
  if (limit === undefined) return all
  const types = limit.split(',').map((text) => text.trim())
  return all.filter(({ type }) => types.includes(type) || (type === 'ExternalIPs' && types.includes('LoadBalancer')))
}

type NodePortPlace = { readonly nodeIps: readonly Ip[]; readonly path: string }

/** The surrogate first, then each address of the node. */
export function addressesOfNode(
  type: 'NodePort' | 'HostPort',
  port: number,
  { nodeIps, path }: NodePortPlace,
): readonly FrontendAddress[] {
  const families = [...new Set(nodeIps.map(({ family }) => family))]
  const surrogates = families.map((family) => ({ type, ip: unspecified(family), port, isSurrogate: true, path }))
  return [...surrogates, ...nodeIps.map((ip) => ({ type, ip, port, isSurrogate: false, path }))]
}

export function unspecified(family: Family): Ip {
  return { family, words: family === 'ipv4' ? [0] : [0, 0, 0, 0] }
}

/** Addresses of devices: the Node's InternalIPs and what the caller tells; an ExternalIP may be a router's. */
export function nodePortIps(world: NodeWorld, family: Family): readonly Ip[] {
  const ranges = world.settings.nodePortAddresses.flatMap((text) => parsePrefix(text)?.prefix ?? [])
  const ofNode = nodeAddresses(world, world.node)
    .filter(({ type }) => type === 'InternalIP')
    .map(({ ip }) => ip)
  const ofDevices = [...world.devices.values()].flat().flatMap((text) => parseIp(text) ?? [])
  const all = new Map([...ofNode, ...ofDevices].map((ip) => [printIp(ip), ip]))
  return [...all.values()].filter((ip) => ip.family === family && isWanted(ip, ranges))
}

function isWanted(ip: Ip, ranges: readonly Prefix[]): boolean {
  return ranges.length === 0 || ranges.some((range) => containsIp(range, ip))
}

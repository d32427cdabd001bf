/** Random clusters as sketches: little enough to be printed and shrunk, and enough to make every object from. */
import type { Family } from '#base/ip'
import type { DetectLocal, ProxySettings } from '#compile/services/proxy-settings'
import { bridgeLink, nodeName, otherNodeName, outsideLink, places } from './node-layout'
import { type Random, randomOf } from './random'

export type PodSketch = {
  readonly host: number
  readonly node: typeof nodeName | typeof otherNodeName
  readonly usesHostNetwork: boolean
  readonly state: 'ready' | 'unready' | 'terminating' | 'terminating-unready'
  /** What the container port of each name is: pods of one Service may differ. */
  readonly basePort: number
}

export type PortSketch = {
  readonly protocol: 'TCP' | 'UDP' | 'SCTP'
  readonly port: number
  readonly nodePort: number
  readonly target: 'same' | 'number' | 'name'
}

export type ServiceSketch = {
  readonly name: string
  readonly type: 'ClusterIP' | 'NodePort' | 'LoadBalancer'
  readonly clusterIP: string
  readonly ports: readonly PortSketch[]
  readonly externalIPs: readonly string[]
  readonly vips: readonly string[]
  readonly sourceRanges: readonly string[]
  readonly isInternalLocal: boolean
  readonly isExternalLocal: boolean
  readonly healthCheckNodePort: number
  readonly affinitySeconds: number | undefined
  readonly publishesNotReady: boolean
  readonly pods: readonly PodSketch[]
}

export type ClusterSketch = {
  readonly seed: number
  readonly family: Family
  readonly settings: Partial<ProxySettings>
  readonly services: readonly ServiceSketch[]
}

export function randomCluster(seed: number, family: Family): ClusterSketch {
  const random = randomOf(seed)
  const settings = randomSettings(random, family)
  const count = random.between(1, 8)
  const services = Array.from({ length: count }, (_, at) => randomService(random, { family, at }))
  return { seed, family, settings, services }
}

/** Each Service alone and each cluster without one of its Services: the ways a failing case is made smaller. */
export function smallerClusters(sketch: ClusterSketch): readonly ClusterSketch[] {
  const { services } = sketch
  if (services.length < 2) return []
  const alone = services.map((service) => ({ ...sketch, services: [service] }))
  if (services.length === 2) return alone
  return [...alone, ...services.map((gone) => ({ ...sketch, services: services.filter((one) => one !== gone) }))]
}

function randomSettings(random: Random, family: Family): Partial<ProxySettings> {
  const place = places[family]
  const addresses: readonly [readonly string[], ...(readonly string[])[]] = [
    [],
    ['primary'],
    [`${place.nodeIps[0]}/${place.hostBits}`],
    [place.nodeCidr, `${place.loopback}/${family === 'ipv4' ? 8 : 128}`],
    [family === 'ipv4' ? '0.0.0.0/0' : '::/0'],
  ]
  return {
    masqueradeAll: random.chance(0.2),
    masqueradeBit: random.chance(0.7) ? 14 : random.below(32),
    localhostNodePorts: random.chance(0.7),
    nodePortAddresses: random.chance(0.5) ? [] : random.pick(addresses),
    detectLocal: randomDetector(random, family),
    largeClusterEndpoints: random.chance(0.2) ? 2 : 1000,
    nfacct: random.chance(0.2),
    randomFully: random.chance(0.8),
    conntrackTcpBeLiberal: random.chance(0.2),
  }
}

function randomDetector(random: Random, family: Family): DetectLocal {
  const { clusterCidr, nodeCidr } = places[family]
  if (random.chance(0.4)) return { kind: 'ClusterCIDR', cidrs: [clusterCidr] }
  return random.pick<DetectLocal>([
    { kind: 'ClusterCIDR', cidrs: [] },
    { kind: 'ClusterCIDR', cidrs: [nodeCidr] },
    { kind: 'NodeCIDR' },
    { kind: 'BridgeInterface', name: bridgeLink },
    { kind: 'InterfaceNamePrefix', prefix: 'veth' },
    { kind: 'BridgeInterface', name: outsideLink },
  ])
}

type ServicePlace = { readonly family: Family; readonly at: number }

function randomService(random: Random, { family, at }: ServicePlace): ServiceSketch {
  const place = places[family]
  const type = random.pick(['ClusterIP', 'NodePort', 'LoadBalancer', 'LoadBalancer'] as const)
  const isExternalLocal = type !== 'ClusterIP' && random.chance(0.4)
  const vips = [place.vip(20 + at), place.vip(19), place.boundVip]
  return {
    name: random.pick([`web-${at}`, `a-rather-long-name-of-a-service-${at}`, `s${at}`]),
    type,
    clusterIP: place.serviceIp(at * 16 + random.between(1, 9)),
    ports: randomPorts(random, { hasNodePorts: type !== 'ClusterIP', at }),
    externalIPs: random.chance(0.3) ? random.some([place.outsideIp(70 + at), ...vips], 2) : [],
    vips: type === 'LoadBalancer' && random.chance(0.8) ? random.some(vips, 3) : [],
    sourceRanges: type === 'LoadBalancer' && random.chance(0.5) ? randomRanges(random, family) : [],
    isInternalLocal: random.chance(0.25),
    isExternalLocal,
    healthCheckNodePort: isExternalLocal && type === 'LoadBalancer' ? 32_000 + at : 0,
    affinitySeconds: random.chance(0.25) ? random.between(600, 86_400) : undefined,
    publishesNotReady: random.chance(0.1),
    pods: randomPods(random),
  }
}

function randomPorts(random: Random, { hasNodePorts, at }: { hasNodePorts: boolean; at: number }): PortSketch[] {
  const count = random.pick([1, 1, 1, 2, 3])
  return Array.from({ length: count }, (_, index) => ({
    protocol: random.pick(['TCP', 'TCP', 'UDP', 'SCTP'] as const),
    port: random.pick([80, 443, 53, 8080]) + index,
    // Now and then a Service asks for no node port.
    nodePort: hasNodePorts && random.chance(0.9) ? 30_000 + at * 10 + index : 0,
    target: random.pick(['same', 'number', 'name'] as const),
  }))
}

/** Some hold the node's own address, some nothing that a packet of the tests comes from. */
function randomRanges(random: Random, family: Family): string[] {
  const place = places[family]
  const length = (bits: number): string => `/${place.hostBits - 32 + bits}`
  return random.some(
    [
      `${place.outsideIp(0)}${length(25)}`,
      `${place.nodeIps[0]}${length(32)}`,
      `${place.neighbourIp(64)}${length(26)}`,
      place.clusterCidr,
      `${place.localPodIp(8)}${length(29)}`,
    ],
    3,
  )
}

function randomPods(random: Random): PodSketch[] {
  const kind = random.pick(['none', 'remote', 'local', 'mixed', 'mixed', 'mixed', 'mixed'] as const)
  if (kind === 'none') return []
  const hosts = new Set(Array.from({ length: random.between(1, 6) }, () => random.pick([2, 9, 10, 11, 12, 130, 131])))
  return [...hosts].map((host) => {
    const isLocal = kind === 'local' || (kind === 'mixed' && random.chance(0.5))
    return {
      host,
      node: isLocal ? nodeName : otherNodeName,
      usesHostNetwork: random.chance(0.08),
      state: random.chance(0.7) ? 'ready' : random.pick(['unready', 'terminating', 'terminating-unready'] as const),
      basePort: random.pick([8000, 8000, 9000]),
    }
  })
}

/** One example for each class of clients: a pod, the node itself, a client outside the cluster. */
import { type Family, familyOf, type Ip, ipFromBigint, ipToBigint, parseIp, printIp } from '#base/ip'
import { parsePrefix } from '#base/prefix'
import type { Cluster } from '#model/cluster'
import { nodeIps } from '#model/node'
import type { ServiceView } from './service-view'

export const sourceClasses = ['pod', 'node', 'outside'] as const

export type SourceClass = (typeof sourceClasses)[number]

/** Absent for the node, whose address depends on where it sends; for a pod, that no pod address is known. */
export type Sources = Readonly<Record<SourceClass, Ip | undefined>>

export const sourceWords: Readonly<Record<SourceClass, string>> = {
  pod: 'a pod',
  node: 'the node',
  outside: 'outside',
}

/** RFC 5737 and RFC 3849: addresses that no client has. */
const outsiders: Readonly<Record<Family, readonly string[]>> = {
  ipv4: ['203.0.113.250', '198.51.100.250', '192.0.2.250'],
  ipv6: ['2001:db8:ffff::fa'],
}

export function chooseSources(view: ServiceView, family: Family, node: string | undefined): Sources {
  return { pod: podSource(view, family, node), node: undefined, outside: outsideSource(view, family) }
}

/** A pod that is no endpoint of the Service, of that node where there is one; else a free address beside a known pod. */
function podSource({ input, pods, holders }: ServiceView, family: Family, node: string | undefined): Ip | undefined {
  const own = new Set(pods.flatMap(({ podIPs }) => podIPs))
  let near: string | undefined
  let other: string | undefined
  for (const pod of input.cluster.pods.values()) {
    if (pod.hostNetwork) continue
    const ip = pod.podIPs.find((one) => familyOf(one) === family && !holders.nodes.has(one))
    if (ip === undefined) continue
    near ??= ip
    if (own.has(ip)) continue
    if (node === undefined || pod.nodeName === node) return parseIp(ip)
    other ??= ip
  }
  if (other !== undefined) return parseIp(other)
  const range = podRange(input.cluster, family, node)
  const start = near === undefined ? range : parseIp(near)
  return start === undefined
    ? undefined
    : freeBeside(start, (text) => holders.pods.has(text) || holders.nodes.has(text))
}

function podRange({ nodes }: Cluster, family: Family, node: string | undefined): Ip | undefined {
  const known = node === undefined ? [...nodes.values()] : [nodes.get(node)]
  for (const cidr of known.flatMap((one) => one?.podCIDRs ?? [])) {
    const prefix = parsePrefix(cidr)?.prefix
    if (prefix?.ip.family === family) return prefix.ip
  }
  return undefined
}

function freeBeside(start: Ip, isTaken: (text: string) => boolean): Ip | undefined {
  const first = ipToBigint(start)
  for (let step = 1n; step < 256n; step++) {
    const ip = ipFromBigint(start.family, first ^ step)
    if (!isTaken(printIp(ip))) return ip
  }
  return undefined
}

/** A client that the load balancer's source ranges let in, where there are any. */
function outsideSource({ service, input }: ServiceView, family: Family): Ip | undefined {
  const taken = new Set([
    ...service.externalIPs,
    ...service.clusterIPs,
    ...service.loadBalancerIngress.flatMap(({ ip }) => (ip === undefined ? [] : [ip])),
    ...[...input.cluster.nodes.values()].flatMap((one) => nodeIps(one)),
  ])
  const ranges = service.loadBalancerSourceRanges.flatMap((text) => {
    const prefix = parsePrefix(text)?.prefix
    return prefix?.ip.family === family && prefix.length > 0 ? [prefix] : []
  })
  const [range] = ranges
  if (range !== undefined) return freeBeside(range.ip, (text) => taken.has(text))
  const free = outsiders[family].find((text) => !taken.has(text))
  return free === undefined ? undefined : parseIp(free)
}

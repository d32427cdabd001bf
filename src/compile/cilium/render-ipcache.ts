/** cilium_ipcache: which identity every prefix has, and the node behind it. Mirrors pkg/ipcache and pkg/node/manager, Cilium 1.16 to 1.19. */
import { type Family, type Ip, parseIp, printIp } from '#base/ip'
import { hostPrefix, type Prefix, parsePrefix, printPrefix } from '#base/prefix'
import { compareText } from '#base/text'
import { identityNumbers } from '#compile/identities/numbers'
import { isAtLeast } from '#model/cilium-version'
import { type Meta, refOf } from '#model/meta'
import { mapsFinding } from './findings'
import { type RowSource, sourceOf } from './map-source'
import type { NodeWorld } from './node-world'
import { nodeAddresses } from './render-lxc'

export type IpcacheRow = {
  readonly prefix: Prefix
  readonly identity: number
  /** Absent for what is reached without a tunnel: 0.0.0.0 in the map. */
  readonly tunnel?: Ip
  readonly key: number
  readonly flags: number
  readonly source: RowSource
}

export const ipcacheFlags = { skipTunnel: 1, hasTunnel: 2, ipv6Tunnel: 4, remoteCluster: 8 } as const

type Facts = {
  readonly prefix: Prefix
  readonly identity: number
  readonly tunnel?: Ip | undefined
  readonly key?: number
  readonly source: RowSource
}

/** The later of two counts: a prefix of a policy never takes the place of a node or a pod. */
export function renderIpcache(world: NodeWorld): readonly IpcacheRow[] {
  const { families } = world.settings
  const rows = new Map<string, IpcacheRow>()
  const facts = [
    ...worldRows(world),
    ...fallbackRows(world),
    ...prefixRows(world),
    ...nodeRows(world),
    ...podRows(world),
  ]
  for (const { prefix, identity, tunnel, key = 0, source } of facts) {
    if (!families.includes(prefix.ip.family)) continue
    const flags = flagsOf(world, tunnel)
    const row =
      tunnel === undefined ? { prefix, identity, key, flags, source } : { prefix, identity, tunnel, key, flags, source }
    rows.set(printPrefix(prefix), row)
  }
  // By code units, as `sort` does of itself.
  return [...rows.keys()].sort().flatMap((text) => rows.get(text) ?? [])
}

/** With native routing the node stands there all the same, and a datapath built without encapsulation passes it over. */
function flagsOf({ settings }: NodeWorld, tunnel: Ip | undefined): number {
  if (!isAtLeast(settings.policy.version, '1.18') || tunnel === undefined) return 0
  return ipcacheFlags.hasTunnel | (tunnel.family === 'ipv6' ? ipcacheFlags.ipv6Tunnel : 0)
}

function worldRows({ settings }: NodeWorld): readonly Facts[] {
  return settings.families.flatMap((family) => {
    const prefix = parsePrefix(family === 'ipv4' ? '0.0.0.0/0' : '::/0')?.prefix
    if (prefix === undefined) return []
    const identity = worldNumber(settings.policy.isDualStack, family)
    return [{ prefix, identity, source: sourceOf('ipcache', undefined, { note: 'everything else is the world' }) }]
  })
}

export function worldNumber(isDualStack: boolean, family: Family): number {
  if (!isDualStack) return identityNumbers.world
  return identityNumbers[family === 'ipv4' ? 'world-ipv4' : 'world-ipv6']
}

/** From 1.18 on: until a pod's own row is there, its packets find its node by the range. */
function fallbackRows(world: NodeWorld): readonly Facts[] {
  const { settings, node } = world
  if (!settings.isTunnel || !isAtLeast(settings.policy.version, '1.18')) return []
  return podRanges(world).flatMap(({ prefix, name, meta, path }) => {
    const tunnel = tunnelAddress(world, name)
    if (name === node || tunnel === undefined) return []
    const identity = worldNumber(settings.policy.isDualStack, prefix.ip.family)
    const source = sourceOf('nodes', meta, { path, note: 'until the pod’s own row is there' })
    return [{ prefix, identity, tunnel, key: encryptionKey(world, name), source }]
  })
}

export type PodRange = {
  readonly prefix: Prefix
  readonly name: string
  readonly meta: Meta
  readonly path: string
}

/** A CiliumNode tells its ranges before the Node does. */
export function podRanges({ cluster }: Pick<NodeWorld, 'cluster'>): readonly PodRange[] {
  const names = [...new Set([...cluster.nodes.keys(), ...cluster.ciliumNodes.keys()])].sort(compareText)
  return names.flatMap((name) => {
    const object = cluster.ciliumNodes.get(name)
    const node = cluster.nodes.get(name)
    const isObject = (object?.podCIDRs.length ?? 0) > 0
    const [meta, texts, at] = isObject
      ? [object?.meta, object?.podCIDRs, 'spec.ipam.podCIDRs']
      : [node?.meta, node?.podCIDRs, 'spec.podCIDRs']
    return (texts ?? []).flatMap((text, index) => {
      const prefix = parsePrefix(text)?.prefix
      return prefix === undefined || meta === undefined ? [] : [{ prefix, name, meta, path: `${at}[${index}]` }]
    })
  })
}

function prefixRows({ identities }: NodeWorld): readonly Facts[] {
  const { apiServers } = identities
  return identities.prefixes.identities.map(({ prefix, number, names }) => {
    const isServer = prefix.length === hostPrefix(prefix.ip).length && apiServers.has(printIp(prefix.ip))
    const learned = names.length > 0 ? `learned for ${names.join(', ')}` : 'a policy names it'
    const note = isServer ? 'an API server outside the cluster' : learned
    return { prefix, identity: number, source: sourceOf('ipcache', undefined, { note }) }
  })
}

function nodeRows(world: NodeWorld): readonly Facts[] {
  const { cluster, node } = world
  const names = [...new Set([...cluster.nodes.keys(), ...cluster.ciliumNodes.keys()])].sort(compareText)
  return names.flatMap((name) => {
    const isOwn = name === node
    const tunnel = tunnelAddress(world, name)
    const addresses = nodeAddresses(world, name).map(({ ip, type, source }): Facts => {
      const isReached = !isOwn && hasTunnel(world, type)
      return {
        prefix: hostPrefix(ip),
        identity: isOwn ? identityNumbers.host : remoteNumber(world, name),
        ...(isReached && { tunnel, key: encryptionKey(world, name) }),
        source,
      }
    })
    return [...addresses, ...roleRows(world, name, isOwn ? undefined : tunnel)]
  })
}

/** The router's address stands behind the tunnel; others do only where the nodes' own traffic is encrypted or filtered. */
function hasTunnel({ settings }: NodeWorld, type: string): boolean {
  return type === 'CiliumInternalIP' || settings.encryptsNodes || (settings.isTunnel && settings.policy.hasHostFirewall)
}

function remoteNumber({ identities, settings }: NodeWorld, name: string): number {
  const { cluster, apiServers, nodeNumbers } = identities
  const own = settings.policy.hasNodeLabels || settings.policy.cidrMatchesNodes ? nodeNumbers.get(name) : undefined
  if (own !== undefined) return own
  const isServer = nodeAddresses({ cluster }, name).some(({ ip }) => apiServers.has(printIp(ip)))
  return identityNumbers[isServer ? 'kube-apiserver' : 'remote-node']
}

function roleRows(world: NodeWorld, name: string, tunnel: Ip | undefined): readonly Facts[] {
  const object = world.cluster.ciliumNodes.get(name)
  const roles = [
    { texts: object?.healthIps ?? [], path: 'spec.health', identity: identityNumbers.health },
    { texts: object?.ingressIps ?? [], path: 'spec.ingress', identity: identityNumbers.ingress },
  ]
  return roles.flatMap(({ texts, path, identity }) =>
    texts.flatMap((text) => {
      const ip = parseIp(text)
      if (ip === undefined) return []
      return [{ prefix: hostPrefix(ip), identity, tunnel, source: sourceOf('nodes', object?.meta, { path }) }]
    }),
  )
}

function podRows(world: NodeWorld): readonly Facts[] {
  const { cluster } = world
  const nodes = new Map<string, { tunnel: Ip | undefined; key: number }>()
  const reached = (name: string): { tunnel: Ip | undefined; key: number } => {
    const known = nodes.get(name)
    if (known !== undefined) return known
    const found = { tunnel: tunnelAddress(world, name), key: encryptionKey(world, name) }
    nodes.set(name, found)
    return found
  }
  return world.pods.flatMap(({ pod, ips, identity }) => {
    const { nodeName } = pod
    const isLocal = nodeName === world.node || nodeName === undefined
    const { tunnel, key } = isLocal ? { tunnel: undefined, key: 0 } : reached(nodeName)
    if (!isLocal && tunnel === undefined) tellLost(world, pod.meta, nodeName)
    const object = cluster.ciliumEndpoints.get(`${pod.meta.namespace}/${pod.meta.name}`)
    return ips.map(({ ip, path }) => {
      const source =
        object === undefined
          ? sourceOf('ipcache', pod.meta, { path })
          : sourceOf('ipcache', object.meta, { path: 'status.networking.addressing' })
      return { prefix: hostPrefix(ip), identity, tunnel, key, source }
    })
  })
}

function tellLost({ findings }: NodeWorld, meta: Meta, nodeName: string): void {
  const message = `its node ${nodeName} is not in the input or has no address, so that its row has no tunnel endpoint`
  findings.push(
    mapsFinding('maps.node-unknown', { message, object: refOf(meta), origin: meta.origin, path: 'spec.nodeName' }),
  )
}

/** The node's InternalIP, of IPv4 unless the node has none; before 1.18 there is no room for another. */
export function tunnelAddress(world: Pick<NodeWorld, 'cluster' | 'settings'>, name: string): Ip | undefined {
  const own = nodeAddresses(world, name).filter(({ type }) => type === 'InternalIP')
  const ipv4 = own.find(({ ip }) => ip.family === 'ipv4')?.ip
  if (ipv4 !== undefined || !isAtLeast(world.settings.policy.version, '1.18')) return ipv4
  return own[0]?.ip
}

function encryptionKey({ cluster }: NodeWorld, name: string): number {
  return cluster.ciliumNodes.get(name)?.encryptionKey ?? 0
}

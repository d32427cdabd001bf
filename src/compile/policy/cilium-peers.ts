/** The peers of an element of a Cilium policy. Mirrors pkg/policy/api ingress.go, egress.go and cidr.go, Cilium 1.16 to 1.19. */
import { parseIp } from '#base/ip'
import {
  bitsOf,
  hostPrefix,
  overlaps,
  type Prefix,
  parsePrefix,
  parsePrefixOrIp,
  prefixOf,
  printPrefix,
} from '#base/prefix'
import { listOf } from '#base/text'
import { addRequirement, endpointSelector } from '#compile/identities/endpoint-selector'
import { entitySelectors, isEntity } from '#compile/identities/entities'
import { worldName } from '#compile/identities/prefix-identities'
import type { CidrRule, CiliumElement, CiliumText, ServiceRef } from '#model/cilium-policy'
import { isAtLeast } from '#model/cilium-version'
import type { Cluster } from '#model/cluster'
import { serviceNameLabel } from '#model/endpoint-slice'
import { keyOf } from '#model/meta'
import { matchesSelector } from '#model/selector'
import type { Service } from '#model/service'
import type { CiliumSettings } from './cilium-options'
import { ownPeer, peerOf } from './cilium-rule'
import { inNamespace, peerSelector, type SelectorScope } from './cilium-selectors'
import type { PeerMatch } from './policy-rule'

export type PeerContext = {
  readonly cluster: Cluster
  readonly settings: CiliumSettings
  readonly scope: SelectorScope
}

/** Without any list of peers it holds for all, if it has ports; a list that is empty selects nobody. */
export function peersOf(element: CiliumElement, context: PeerContext): 'any' | readonly PeerMatch[] {
  const { path, endpoints, cidrs, cidrSets, entities, nodes, groups, services, fqdns } = element
  const lists = [endpoints, cidrs, cidrSets, entities, nodes, groups, services, fqdns]
  if (lists.every((list) => list === undefined)) return peersOfNoList(element)
  if (lists.every((list) => list === undefined || list.length === 0)) {
    return [{ kind: 'nobody', path, why: 'its list of peers is empty, which selects nobody' }]
  }
  return [
    ...(endpoints ?? []).map(({ path: at, selector }) =>
      ownPeer(at, { kind: 'endpoints', selector: peerSelector(selector, context.scope) }),
    ),
    ...(cidrs ?? []).flatMap((cidr) => prefixPeers(cidr.path, parsePrefixOrIp(cidr.text), context)),
    ...(cidrSets ?? []).flatMap((rule) => cidrRulePeers(rule, context)),
    ...(entities ?? []).flatMap((entity) => entityPeers(entity, context)),
    ...(nodes ?? []).map(({ path: at, selector }) =>
      ownPeer(at, { kind: 'labels', selector: addRequirement(endpointSelector(selector), aRemoteNode) }),
    ),
    ...(groups ?? []).map(({ path: at, text }) => ({
      kind: 'unknown' as const,
      path: at,
      why: `only AWS knows the addresses of ${text}`,
      isOutside: true,
    })),
    ...(services ?? []).flatMap((service) => servicePeers(service, context)),
    ...(fqdns ?? []).map((fqdn) => ownPeer(fqdn.path, { kind: 'name', fqdn })),
  ]
}

const aRemoteNode = { source: 'reserved', key: 'remote-node', operator: 'Exists', values: [] } as const

function peersOfNoList({ path, toPorts, icmps }: CiliumElement): 'any' | readonly PeerMatch[] {
  if ((toPorts ?? []).length > 0 || (icmps ?? []).length > 0) return 'any'
  return [{ kind: 'nobody', path, why: 'it names neither peers nor ports, which matches nothing' }]
}

function entityPeers({ path, text }: CiliumText, { settings }: PeerContext): readonly PeerMatch[] {
  if (!isEntity(text)) return []
  const title = `the entity ${text}`
  return entitySelectors(text, settings.clusterName).map((selector) =>
    ownPeer(path, { kind: 'labels', selector }, title),
  )
}

function cidrRulePeers(rule: CidrRule, context: PeerContext): readonly PeerMatch[] {
  const except = rule.except.flatMap(({ text }) => parsePrefix(text)?.prefix ?? [])
  if (rule.cidr !== undefined) return rangePeers(rule.path, parsePrefix(rule.cidr)?.prefix, except, context)
  const groups = [...context.cluster.cidrGroups.values()].filter(({ meta }) => {
    if (rule.groupRef !== undefined) return meta.name === rule.groupRef
    return rule.groupSelector !== undefined && matchesSelector(rule.groupSelector, meta.labels)
  })
  if (groups.length === 0 && rule.groupRef !== undefined) {
    const why = `the input has no CiliumCIDRGroup ${rule.groupRef}`
    return [{ kind: 'unknown', path: rule.path, why, isOutside: true }]
  }
  const peers = groups.flatMap(({ cidrs }) =>
    cidrs.flatMap(({ text }) => rangePeers(rule.path, parsePrefixOrIp(text), except, context)),
  )
  if (peers.length > 0) return peers
  const why = groups.length === 0 ? 'no CiliumCIDRGroup has these labels' : 'the CiliumCIDRGroup has no ranges'
  return [{ kind: 'nobody', path: rule.path, why }]
}

function rangePeers(
  path: string,
  cidr: Prefix | undefined,
  except: readonly Prefix[],
  context: PeerContext,
): readonly PeerMatch[] {
  if (cidr === undefined) return []
  const title = except.length === 0 ? undefined : rangeTitle(cidr, except)
  return subtractPrefixes(cidr, except).flatMap((prefix) => prefixPeers(path, prefix, context, title))
}

/** Cut into many prefixes it is still one range to whoever wrote it. */
export function rangeTitle(cidr: Prefix, except: readonly Prefix[]): string {
  return `addresses in ${printPrefix(cidr)} but ${listOf(except.map(printPrefix))}`
}

/** A range of every address means the world, and with it every prefix outside the cluster. */
function prefixPeers(
  path: string,
  prefix: Prefix | undefined,
  { settings }: PeerContext,
  title?: string,
): readonly PeerMatch[] {
  if (prefix === undefined) return []
  if (prefix.length > 0) return [ownPeer(path, { kind: 'prefix', prefix }, title)]
  const world = worldName(prefix.ip, settings.isDualStack)
  const isWorld = { source: 'reserved', key: world, operator: 'Exists', values: [] } as const
  return [ownPeer(path, { kind: 'labels', selector: { requirements: [isWorld] } })]
}

/** What is left of a range without others, as the fewest prefixes. */
export function subtractPrefixes(from: Prefix, removed: readonly Prefix[]): readonly Prefix[] {
  const near = removed.filter((one) => overlaps(from, one))
  if (near.length === 0) return [from]
  if (near.some((one) => one.length <= from.length) || from.length === bitsOf(from.ip.family)) return []
  return halves(from).flatMap((half) => subtractPrefixes(half, near))
}

function halves({ ip, length }: Prefix): readonly Prefix[] {
  const words = [...ip.words]
  const at = Math.floor(length / 32)
  words[at] = ((words[at] ?? 0) | (1 << (31 - (length % 32)))) >>> 0
  return [prefixOf(ip, length + 1), prefixOf({ family: ip.family, words }, length + 1)]
}

function servicePeers(ref: ServiceRef, context: PeerContext): readonly PeerMatch[] {
  const { cluster, scope } = context
  const namespace = ref.namespace ?? (ref.name === undefined ? undefined : scope.namespace)
  const services = [...cluster.services.values()].filter(({ meta }) => {
    if (namespace !== undefined && meta.namespace !== namespace) return false
    if (ref.name !== undefined) return meta.name === ref.name
    return ref.selector !== undefined && matchesSelector(ref.selector, meta.labels)
  })
  if (services.length > 0) return services.flatMap((service) => peersOfService(ref.path, service, context))
  if (ref.name === undefined)
    return [{ kind: 'nobody', path: ref.path, why: 'no Service of the input has these labels' }]
  return [{ kind: 'unknown', path: ref.path, why: `the input has no Service ${namespace ?? ''}/${ref.name}` }]
}

/** Its selector is copied, or where it has none the addresses of its endpoints are. */
function peersOfService(path: string, service: Service, context: PeerContext): readonly PeerMatch[] {
  const { meta, selector } = service
  if (selector !== undefined) {
    if (!isAtLeast(context.settings.version, '1.17')) {
      return [
        { kind: 'nobody', path, why: `up to 1.16 only Services without selector count, and ${keyOf(meta)} has one` },
      ]
    }
    const pods = endpointSelector({ matchLabels: selector, matchExpressions: [] }, 'k8s')
    return [ownPeer(path, { kind: 'labels', selector: addRequirement(pods, inNamespace(meta.namespace)) })]
  }
  const addresses = endpointAddresses(service, context.cluster)
  if (addresses.length === 0) return [{ kind: 'nobody', path, why: `the Service ${keyOf(meta)} has no endpoints` }]
  return addresses.flatMap((address) => {
    const ip = parseIp(address)
    return ip === undefined ? [] : [ownPeer(path, { kind: 'prefix', prefix: hostPrefix(ip) })]
  })
}

function endpointAddresses({ meta }: Service, cluster: Cluster): readonly string[] {
  const slices = [...cluster.slices.values()].filter(
    (slice) => slice.meta.namespace === meta.namespace && slice.meta.labels[serviceNameLabel] === meta.name,
  )
  const inSlices = slices.flatMap(({ endpoints }) => endpoints.flatMap(({ addresses }) => addresses))
  const inEndpoints = (cluster.endpoints.get(keyOf(meta))?.subsets ?? []).flatMap(({ addresses }) =>
    addresses.map(({ ip }) => ip),
  )
  return [...new Set([...inSlices, ...inEndpoints])]
}

/** The prefixes that peers name, which all get identities. */
export function prefixesOf(peers: 'any' | readonly PeerMatch[]): readonly Prefix[] {
  if (peers === 'any') return []
  return peers.flatMap((peer) => {
    if (peer.kind !== 'own') return []
    const detail = peerOf(peer)
    return detail.kind === 'prefix' ? [detail.prefix] : []
  })
}

/** cilium_egress_gw_policy: which traffic of which pod leaves through which gateway. Mirrors pkg/egressgateway and pkg/maps/egressmap, Cilium 1.16 to 1.19. */
import { type Family, type Ip, printIp } from '#base/ip'
import { type Prefix, parsePrefix, printPrefix } from '#base/prefix'
import { compareText, listOf } from '#base/text'
import { type EndpointSelector, endpointSelector, selectsLabels } from '#compile/identities/endpoint-selector'
import type { LabelSet } from '#compile/identities/label'
import { networkPolicyPeer } from '#compile/policy/cilium-selectors'
import type { CiliumEgressGatewayPolicy, EgressSelector } from '#model/cilium-network'
import { isAtLeast } from '#model/cilium-version'
import { refOf } from '#model/meta'
import { matchesSelector } from '#model/selector'
import { type ChosenGateway, gatewaysOf } from './egress-gateways'
import { mapsFinding } from './findings'
import { unspecified } from './frontends'
import { type RowSource, sourceOf } from './map-source'
import type { NodeWorld, PodEndpoint } from './node-world'

export type EgressRow = {
  readonly sourceIp: Ip
  readonly destination: Prefix
  /** Unspecified on every node but the gateway, and there where no device has the address. */
  readonly egressIp: Ip
  readonly gatewayIp: Ip
  /** Of several gateways any may be this pod's. */
  readonly otherGateways: readonly Ip[]
  /** Nothing of the input tells the address that the gateway lends. */
  readonly isEgressUnknown: boolean
  readonly source: RowSource
}

/** In place of a gateway: none was found, and the range is excluded. */
export const gatewayNotFound: Ip = { family: 'ipv4', words: [0] }
export const excludedRange: Ip = { family: 'ipv4', words: [1] }

/** Of two policies for one pod and range the later one by name stays, which upstream leaves to chance. */
export function renderEgress(world: NodeWorld): readonly EgressRow[] {
  const { cluster, settings, findings } = world
  const policies = [...cluster.egressGatewayPolicies.values()].sort((a, b) => compareText(a.meta.name, b.meta.name))
  if (policies.length > 0 && !settings.hasEgressGateway) {
    for (const { meta } of policies) {
      const message = 'enable-egress-gateway is not set, so that the policy does nothing'
      findings.push(mapsFinding('maps.feature-off', { message, object: refOf(meta), origin: meta.origin }))
    }
    return []
  }
  const rows = new Map<string, EgressRow>()
  for (const policy of policies) {
    for (const row of rowsOf(world, policy)) {
      const key = `${printIp(row.sourceIp)} ${printPrefix(row.destination)}`
      const earlier = rows.get(key)
      if (earlier !== undefined && earlier.source.object?.name !== policy.meta.name) tellTwice(world, policy, earlier)
      rows.set(key, row)
    }
  }
  return [...rows.values()]
}

function tellTwice(
  { findings }: NodeWorld,
  { meta }: CiliumEgressGatewayPolicy,
  { source, sourceIp, destination }: EgressRow,
): void {
  findings.push(
    mapsFinding('maps.egress-twice', {
      message: `${source.object?.name} selects ${printIp(sourceIp)} to ${printPrefix(destination)} as well; which of the two stays is left to chance`,
      object: refOf(meta),
      origin: meta.origin,
    }),
  )
}

function rowsOf(world: NodeWorld, policy: CiliumEgressGatewayPolicy): readonly EgressRow[] {
  if (isInvalid(world, policy)) return []
  const selectors = policy.selectors.map((selector) => ({ nodes: selector.nodes, wanted: wantedLabels(selector) }))
  const asksNodes = policy.selectors.some(({ nodes }) => nodes !== undefined)
  const known = new Map<LabelSet, boolean>()
  const isSelected = (pod: PodEndpoint): boolean => {
    const asked = asksNodes ? undefined : known.get(pod.labels)
    if (asked !== undefined) return asked
    const found = selectors.some((selector) => selects(world, selector, pod))
    if (!asksNodes) known.set(pod.labels, found)
    return found
  }
  const pods = world.pods.filter(isSelected)
  return families(world).flatMap((family) => {
    const ranges = rangesOf(policy, family)
    if (!ranges.some(({ isExcluded }) => !isExcluded)) return []
    const gateways = gatewaysOf(world, policy, family)
    return pods.flatMap((pod) =>
      pod.ips
        .filter(({ ip }) => ip.family === family)
        .flatMap(({ ip }) => ranges.map((range) => rowOf(policy, { pod, ip, range, gateways }))),
    )
  })
}

/** Rows of IPv6 came with 1.18. */
function families({ settings }: NodeWorld): readonly Family[] {
  const hasIpv6 = isAtLeast(settings.policy.version, '1.18')
  return settings.families.filter((family) => family === 'ipv4' || hasIpv6)
}

/** What the agent refuses of a policy that the API server took. */
function isInvalid({ findings, settings }: NodeWorld, policy: CiliumEgressGatewayPolicy): boolean {
  const { gateway, selectors, meta } = policy
  const gateways = isAtLeast(settings.policy.version, '1.18') ? policy.gateways : []
  const both = [...(gateway === undefined ? [] : [gateway]), ...gateways].find(
    (one) => one.interface !== undefined && one.egressIp !== undefined,
  )
  const open = selectors.find(({ pods, namespaces }) => pods === undefined && namespaces === undefined)
  const why =
    both !== undefined
      ? ([`${both.path} names both an interface and an egressIP`, both.path] as const)
      : open !== undefined
        ? (['a selector names neither pods nor namespaces', open.path] as const)
        : gateway === undefined && gateways.length === 0
          ? (['it names no gateway', 'spec.egressGateway'] as const)
          : undefined
  if (why === undefined) return false
  const [message, path] = why
  findings.push(
    mapsFinding('maps.egress-invalid', {
      message: `${message}: the agent refuses the policy, and no row comes of it`,
      object: refOf(meta),
      origin: meta.origin,
      path,
    }),
  )
  return true
}

type Wanted = { readonly nodes: EgressSelector['nodes']; readonly wanted: EndpointSelector }

function selects({ cluster }: NodeWorld, { nodes, wanted }: Wanted, { pod, labels }: PodEndpoint): boolean {
  if (nodes !== undefined) {
    const node = pod.nodeName === undefined ? undefined : cluster.nodes.get(pod.nodeName)
    if (node === undefined || !matchesSelector(nodes, node.meta.labels)) return false
  }
  return selectsLabels(wanted, labels)
}

function wantedLabels({ pods, namespaces }: EgressSelector): EndpointSelector {
  if (namespaces !== undefined) return networkPolicyPeer(pods, namespaces, '')
  return endpointSelector(pods ?? { matchLabels: {}, matchExpressions: [] }, 'k8s')
}

type Range = { readonly prefix: Prefix; readonly isExcluded: boolean; readonly path: string }

/** An excluded range that is a destination too stays excluded. */
function rangesOf({ destinations, excluded }: CiliumEgressGatewayPolicy, family: Family): readonly Range[] {
  const ranges = new Map<string, Range>()
  const lists = [
    { texts: destinations, isExcluded: false },
    { texts: excluded, isExcluded: true },
  ]
  for (const { texts, isExcluded } of lists) {
    for (const { text, path } of texts) {
      const prefix = parsePrefix(text)?.prefix
      if (prefix?.ip.family === family) ranges.set(printPrefix(prefix), { prefix, isExcluded, path })
    }
  }
  return [...ranges.values()]
}

type RowFacts = {
  readonly pod: PodEndpoint
  readonly ip: Ip
  readonly range: Range
  readonly gateways: readonly ChosenGateway[]
}

function rowOf(policy: CiliumEgressGatewayPolicy, { pod, ip, range, gateways }: RowFacts): EgressRow {
  const { prefix: destination, isExcluded, path } = range
  const [first, ...others] = gateways
  const plain = { sourceIp: ip, destination }
  const nobody = unspecified(ip.family)
  const note = `for ${pod.pod.meta.namespace}/${pod.pod.meta.name}`
  if (isExcluded || first?.gatewayIp === undefined) {
    return {
      ...plain,
      egressIp: nobody,
      gatewayIp: isExcluded ? excludedRange : gatewayNotFound,
      otherGateways: [],
      isEgressUnknown: false,
      source: sourceOf('egress', policy.meta, { path, note }),
    }
  }
  const names = gateways.flatMap(({ node }) => node ?? [])
  return {
    ...plain,
    egressIp: first.egressIp ?? nobody,
    gatewayIp: first.gatewayIp,
    otherGateways: others.flatMap(({ gatewayIp }) => gatewayIp ?? []),
    isEgressUnknown: first.isUnknown || (others.length > 0 && gateways.some(({ egressIp }) => egressIp !== undefined)),
    source: sourceOf('egress', policy.meta, {
      path,
      note: others.length === 0 ? note : `${note}; by a hash of its endpoint’s uid one of ${listOf(names)}`,
    }),
  }
}

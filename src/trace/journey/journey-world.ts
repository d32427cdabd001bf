/** What a journey needs of a cluster, made once for many packets: rules by node, policies, and who holds which address. */
import type { Finding } from '#base/finding'
import { type Family, type Ip, printIp } from '#base/ip'
import type { Prefix } from '#base/prefix'
import { compareText } from '#base/text'
import { rangesWithoutMasquerade } from '#compile/cilium/render-ipmasq'
import type { Layout } from '#compile/nftables/layout'
import { nodeRules } from '#compile/node/node-rules'
import type { ProxySettings } from '#compile/services/proxy-settings'
import type { Cluster } from '#model/cluster'
import { type EndpointSlice, serviceNameLabel } from '#model/endpoint-slice'
import { keyOf } from '#model/meta'
import { nodeIps } from '#model/node'
import type { Service } from '#model/service'
import type { StateRow } from '#model/walk'
import type { ConntrackEntry } from '../conntrack-entry'
import { kubernetesSemantics } from '../policy/k8s-semantics'
import type { PolicyWorld } from '../policy/policy-world'
import { preparePolicies } from '../policy/world'
import type { RulesetTraceInput } from '../trace-ruleset'
import { indexPlaces, type Places } from './places'

/** Rules as they were read from a node. */
export type GivenRules = Pick<RulesetTraceInput, 'rulesets' | 'nft' | 'sets'>

export type JourneySetting = {
  readonly cluster: Cluster
  readonly slices: readonly EndpointSlice[]
  readonly datapath: 'iptables' | 'nftables'
  /** Of nftables mode; left out: 1.34. */
  readonly layout?: Layout
  /** What the user set of kube-proxy; it wins over its ConfigMap. */
  readonly settings: Partial<ProxySettings>
  readonly serviceCidrs?: readonly string[]
  /** By node: they take the place of the computed ones. */
  readonly rulesets?: ReadonlyMap<string, GivenRules>
  /** Connections that nodes track already, by node. */
  readonly conntrack?: ReadonlyMap<string, readonly ConntrackEntry[]>
  /** Clients that nodes remember already: rows of `xt_recent` lists or of affinity sets. */
  readonly remembered?: readonly StateRow[]
  /** For what the kernel draws at random: translated ports. */
  readonly seed: number
}

export type StandingRules = GivenRules & {
  readonly nodeIps: readonly string[]
  /** They are kube-proxy's alone, so that what the network plugin adds is not in them. */
  readonly isComputed: boolean
  readonly findings: readonly Finding[]
}

export type RulesAsked = { readonly destination: Ip; readonly port: number }

export type JourneyWorld = {
  readonly setting: JourneySetting
  readonly places: Places
  readonly policies: PolicyWorld
  /** Destinations that the masquerade agent leaves alone; absent where the input has none. */
  readonly unmasked: readonly Prefix[] | undefined
  /** Computed rules are those that a packet to the destination can meet: kube-proxy's for other Services ask for other addresses. */
  readonly rulesOf: (node: string, to: RulesAsked) => StandingRules
  /** The node's rules are computed, and none of them asks for the destination. */
  readonly isPlain: (node: string, to: RulesAsked) => boolean
}

export function journeyWorld(setting: JourneySetting): JourneyWorld {
  const { cluster } = setting
  const known = new Map<string, StandingRules>()
  const places = indexPlaces(cluster)
  const focus = focusOf(setting, places)
  return {
    setting,
    places,
    policies: preparePolicies(cluster, { semantics: kubernetesSemantics }),
    unmasked: rangesWithoutMasquerade(cluster),
    isPlain: (node, to) => setting.rulesets?.has(node) !== true && focus(to).text === '',
    rulesOf: (node, to) => {
      const { family } = to.destination
      const { text, ...focused } = focus(to)
      const key = `${family} ${node} ${setting.rulesets?.has(node) === true ? '' : text}`
      const rules = known.get(key) ?? standingRules({ ...setting, ...focused }, node, family)
      known.set(key, rules)
      return rules
    },
  }
}

type Focus = Pick<JourneySetting, 'cluster' | 'slices'> & { readonly text: string }

/** The Services that have the address, or the node port where it is a node's; and those that share addresses with pods or nodes. */
function focusOf({ cluster, slices }: JourneySetting, places: Places): (to: RulesAsked) => Focus {
  const byAddress = new Map<string, Service[]>()
  const byNodePort = new Map<number, Service[]>()
  for (const service of cluster.services.values()) {
    for (const ip of addressesOf(service)) put(byAddress, ip, service)
    for (const { nodePort } of service.ports) if (nodePort !== 0) put(byNodePort, nodePort, service)
  }
  const shared = [...cluster.services.values()].filter((service) =>
    addressesOf(service).some((ip) => ['pod', 'node'].includes(places.holders.get(ip)?.kind ?? '')),
  )
  const slicesOf = new Map<string, EndpointSlice[]>()
  for (const slice of slices) put(slicesOf, `${slice.meta.namespace}/${slice.meta.labels[serviceNameLabel]}`, slice)
  return ({ destination, port }) => {
    const ip = printIp(destination)
    const isNode = places.holders.get(ip)?.kind === 'node' || ip === '::1' || ip.startsWith('127.')
    const wanted = [...(byAddress.get(ip) ?? []), ...(isNode ? (byNodePort.get(port) ?? []) : []), ...shared]
    const services = new Map(wanted.map((service) => [keyOf(service.meta), service]))
    const keys = [...services.keys()]
    return {
      cluster: { ...cluster, services },
      slices: keys.flatMap((key) => slicesOf.get(key) ?? []),
      text: keys.sort(compareText).join(' '),
    }
  }
}

function addressesOf({ clusterIPs, externalIPs, loadBalancerIngress }: Service): readonly string[] {
  return [...clusterIPs, ...externalIPs, ...loadBalancerIngress.flatMap(({ ip }) => ip ?? [])]
}

function put<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const there = map.get(key)
  if (there === undefined) map.set(key, [value])
  else there.push(value)
}

function standingRules(setting: JourneySetting, node: string, family: Family): StandingRules {
  const { cluster, slices, datapath, layout = '1.34', settings, serviceCidrs } = setting
  const own = cluster.nodes.get(node)
  const ips = own === undefined ? [] : nodeIps(own)
  const given = setting.rulesets?.get(node)
  if (given !== undefined) return { ...given, nodeIps: ips, isComputed: false, findings: [] }
  const { rulesets, nft, findings } = nodeRules(cluster, slices, {
    family,
    node,
    settings: { mode: datapath, ...settings },
    ...(datapath === 'nftables' && { layout }),
    ...(serviceCidrs !== undefined && { serviceCidrs }),
  })
  return { rulesets, ...(nft !== undefined && { nft }), nodeIps: ips, isComputed: true, findings }
}

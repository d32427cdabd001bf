/** What a journey needs of a cluster, made once for many packets: rules by node, policies, and who holds which address. */
import type { Finding } from '#base/finding'
import type { Family } from '#base/ip'
import type { Prefix } from '#base/prefix'
import { rangesWithoutMasquerade } from '#compile/cilium/render-ipmasq'
import type { Layout } from '#compile/nftables/layout'
import { nodeRules } from '#compile/node/node-rules'
import type { ProxySettings } from '#compile/services/proxy-settings'
import type { Cluster } from '#model/cluster'
import type { EndpointSlice } from '#model/endpoint-slice'
import { nodeIps } from '#model/node'
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

export type JourneyWorld = {
  readonly setting: JourneySetting
  readonly places: Places
  readonly policies: PolicyWorld
  /** Destinations that the masquerade agent leaves alone; absent where the input has none. */
  readonly unmasked: readonly Prefix[] | undefined
  readonly rulesOf: (node: string, family: Family) => StandingRules
}

export function journeyWorld(setting: JourneySetting): JourneyWorld {
  const { cluster } = setting
  const known = new Map<string, StandingRules>()
  return {
    setting,
    places: indexPlaces(cluster),
    policies: preparePolicies(cluster, { semantics: kubernetesSemantics }),
    unmasked: rangesWithoutMasquerade(cluster),
    rulesOf: (node, family) => {
      const key = `${family} ${node}`
      const rules = known.get(key) ?? standingRules(setting, node, family)
      known.set(key, rules)
      return rules
    },
  }
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

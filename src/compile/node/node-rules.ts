/** The rules that kube-proxy writes on a node, as a tracer reads them: through text and back, so that each rule has its words. */
import type { Finding } from '#base/finding'
import { parseSave } from '#compile/iptables/parse-save'
import { printSave } from '#compile/iptables/print-save'
import { savedRuleset } from '#compile/iptables/render-iptables'
import type { Ruleset } from '#compile/iptables/rule'
import type { Layout } from '#compile/nftables/layout'
import { parseNftList } from '#compile/nftables/parse-list'
import { printList } from '#compile/nftables/print-list'
import { type Ruleset as NftRuleset, rulesetOf } from '#compile/nftables/ruleset'
import type { ServicePlan } from '#compile/services/service-plan'
import type { Cluster } from '#model/cluster'
import type { EndpointSlice } from '#model/endpoint-slice'
import { type NodeIptablesOptions, nodeIptables } from './node-iptables'
import { nodeNftables } from './node-nftables'

export type NodeRules = {
  readonly plan: ServicePlan
  readonly rulesets: readonly Ruleset[]
  readonly nft?: NftRuleset
  readonly findings: readonly Finding[]
}

/** `layout` is that of nftables mode; without it the rules are iptables'. */
export type NodeRulesOptions = Pick<NodeIptablesOptions, 'family' | 'node' | 'settings'> & {
  readonly layout?: Layout
  readonly serviceCidrs?: readonly string[]
}

export function nodeRules(cluster: Cluster, slices: readonly EndpointSlice[], options: NodeRulesOptions): NodeRules {
  const { layout, serviceCidrs, ...rest } = options
  if (layout === undefined) {
    const { value, findings } = nodeIptables(cluster, slices, rest)
    const { rulesets } = parseSave(printSave(savedRuleset(value.sync), { date: 'now' }), 'computed rules')
    return { plan: value.plan, rulesets, findings }
  }
  const { value, findings } = nodeNftables(cluster, slices, {
    ...rest,
    layout,
    ...(serviceCidrs !== undefined && { serviceCidrs }),
  })
  const nft = parseNftList(printList(rulesetOf([value.table])), 'computed rules').ruleset
  return { plan: value.plan, rulesets: [], nft, findings }
}

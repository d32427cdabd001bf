/** The rules that kube-proxy would write on a node now, with the engine and layout that the node uses. */
import type { Family } from '#base/ip'
import type { Layout } from '#compile/nftables/layout'
import { nodeRules } from '#compile/node/node-rules'
import type { ServicePlan } from '#compile/services/service-plan'
import { makersOf } from '#verify/recognise-node'
import type { NodeRuleset } from './explain-input'
import type { ServiceView } from './service-view'
import type { TracedRules } from './trace-node'

export type ComputeOptions = {
  readonly family: Family
  readonly node: string | undefined
  /** Left out: iptables mode. */
  readonly layout?: Layout
}

export type ComputedRules = { readonly plan: ServicePlan; readonly rules: Pick<TracedRules, 'rulesets' | 'nft'> }

export function computeRules(view: ServiceView, { family, node, layout }: ComputeOptions): ComputedRules {
  const { plan, rulesets, nft } = nodeRules(view.focus, view.slices.used, {
    family,
    settings: view.settings,
    ...(node !== undefined && { node }),
    ...(layout !== undefined && { layout }),
  })
  return { plan, rules: { rulesets, ...(nft !== undefined && { nft }) } }
}

/** The layout of kube-proxy's nftables table, undefined where its rules are iptables' or not there. */
export function layoutOf({ rulesets, nft }: NodeRuleset, family: Family): Layout | undefined {
  const own = family === 'ipv4' ? 'ip' : 'ip6'
  const table = [...(nft?.tables.values() ?? [])].find((one) => one.name === 'kube-proxy' && one.family === own)
  if (table === undefined || makersOf(rulesets).includes('kube-proxy')) return undefined
  if (table.chains.has('filter-output-post-dnat')) return '1.31'
  return table.sets.has('hairpin-connections') ? '1.36' : '1.34'
}

/** The rules that kube-proxy would write on a node now, with the engine and layout that the node uses. */
import type { Family } from '#base/ip'
import { parseSave } from '#compile/iptables/parse-save'
import { printSave } from '#compile/iptables/print-save'
import { savedRuleset } from '#compile/iptables/render-iptables'
import type { Layout } from '#compile/nftables/layout'
import { parseNftList } from '#compile/nftables/parse-list'
import { printList } from '#compile/nftables/print-list'
import { rulesetOf } from '#compile/nftables/ruleset'
import { nodeIptables } from '#compile/node/node-iptables'
import { nodeNftables } from '#compile/node/node-nftables'
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

/** Through text and back, so that a trace has the words of each rule. */
export function computeRules(view: ServiceView, { family, node, layout }: ComputeOptions): ComputedRules {
  const options = { family, settings: view.settings, ...(node !== undefined && { node }) }
  if (layout === undefined) {
    const { plan, sync } = nodeIptables(view.focus, view.slices.used, options).value
    const { rulesets } = parseSave(printSave(savedRuleset(sync), { date: 'now' }), 'computed rules')
    return { plan, rules: { rulesets } }
  }
  const { plan, table } = nodeNftables(view.focus, view.slices.used, { ...options, layout }).value
  const nft = parseNftList(printList(rulesetOf([table])), 'computed rules').ruleset
  return { plan, rules: { rulesets: [], nft } }
}

/** The layout of kube-proxy's nftables table, undefined where its rules are iptables' or not there. */
export function layoutOf({ rulesets, nft }: NodeRuleset, family: Family): Layout | undefined {
  const own = family === 'ipv4' ? 'ip' : 'ip6'
  const table = [...(nft?.tables.values() ?? [])].find((one) => one.name === 'kube-proxy' && one.family === own)
  if (table === undefined || makersOf(rulesets).includes('kube-proxy')) return undefined
  if (table.chains.has('filter-output-post-dnat')) return '1.31'
  return table.sets.has('hairpin-connections') ? '1.36' : '1.34'
}

/** What kube-proxy in nftables mode holds on one node: settings found in the input, the plan, and the table. */
import type { Parsed } from '#base/finding'
import type { Family } from '#base/ip'
import type { Layout } from '#compile/nftables/layout'
import { renderNftables } from '#compile/nftables/render-nftables'
import type { Table } from '#compile/nftables/ruleset'
import { planServices, proxyNodeOf } from '#compile/services/plan-services'
import type { ProxySettings } from '#compile/services/proxy-settings'
import type { ServicePlan } from '#compile/services/service-plan'
import type { Cluster } from '#model/cluster'
import type { EndpointSlice } from '#model/endpoint-slice'
import { type Assumption, assumptionsBehind } from './assumptions'
import { proxySettingsOf } from './node-iptables'

export type NodeNftablesOptions = {
  readonly family: Family
  /** Left out: no endpoint is local. */
  readonly node?: string
  /** What the user set; it wins over the kube-proxy ConfigMap of the input. */
  readonly settings: Partial<ProxySettings>
  readonly layout?: Layout
  /** The ranges of the ServiceCIDR objects; left out, traffic to unallocated cluster IPs is not dropped. */
  readonly serviceCidrs?: readonly string[]
}

export type NodeNftables = {
  readonly plan: ServicePlan
  readonly table: Table
  readonly assumptions: readonly Assumption[]
}

export function nodeNftables(
  cluster: Cluster,
  slices: readonly EndpointSlice[],
  options: NodeNftablesOptions,
): Parsed<NodeNftables> {
  const { family, layout, serviceCidrs = [] } = options
  const found = proxySettingsOf(cluster)
  const plan = planServices(cluster, slices, {
    family,
    settings: { ...found.value, ...options.settings },
    ...(options.node === undefined ? {} : { node: proxyNodeOf(cluster, options.node) }),
  })
  const table = renderNftables(plan.value, { serviceCidrs, ...(layout === undefined ? {} : { layout }) })
  const assumptions = assumptionsBehind(plan.value, slices)
  return {
    value: { plan: plan.value, table: table.value, assumptions },
    findings: [...found.findings, ...plan.findings, ...table.findings],
  }
}

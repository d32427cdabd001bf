/** What kube-proxy in iptables mode holds on one node: settings found in the input, the plan, and the rules. */
import type { Finding, Parsed } from '#base/finding'
import type { Family } from '#base/ip'
import type { ChainNaming } from '#compile/iptables/chain-names'
import { type IptablesSync, renderIptables } from '#compile/iptables/render-iptables'
import { findingAt } from '#compile/services/findings'
import { parseProxyConfigMap } from '#compile/services/parse-proxy-config'
import { planServices, proxyNodeOf } from '#compile/services/plan-services'
import type { ProxySettings } from '#compile/services/proxy-settings'
import type { ServicePlan } from '#compile/services/service-plan'
import type { Cluster, ConfigMap } from '#model/cluster'
import type { EndpointSlice } from '#model/endpoint-slice'
import { type Assumption, assumptionsBehind } from './assumptions'

export type NodeIptablesOptions = {
  readonly family: Family
  /** Left out: no endpoint is local. */
  readonly node?: string
  /** What the user set; it wins over the kube-proxy ConfigMap of the input. */
  readonly settings: Partial<ProxySettings>
  readonly chainNames?: ChainNaming
  /** Chains the node holds already: those that are no longer wanted are deleted. */
  readonly previousChains?: Iterable<string>
}

export type NodeIptables = {
  readonly plan: ServicePlan
  readonly sync: IptablesSync
  readonly assumptions: readonly Assumption[]
}

export function nodeIptables(
  cluster: Cluster,
  slices: readonly EndpointSlice[],
  options: NodeIptablesOptions,
): Parsed<NodeIptables> {
  const found = proxySettingsOf(cluster)
  const node = options.node === undefined ? undefined : proxyNodeOf(cluster, options.node)
  const plan = planServices(cluster, slices, {
    family: options.family,
    settings: { ...found.value, ...options.settings },
    ...(node === undefined ? {} : { node }),
  })
  const sync = renderIptables(plan.value, {
    ...(options.chainNames === undefined ? {} : { chainNames: options.chainNames }),
    ...(options.previousChains === undefined ? {} : { previousChains: options.previousChains }),
  })
  const assumptions = assumptionsBehind(plan.value, slices)
  const findings = [...found.findings, ...noteMode(cluster, plan.value.settings), ...plan.findings]
  return { value: { plan: plan.value, sync, assumptions }, findings }
}

/** Of ipvs mode the reader of the ConfigMap tells already. */
function noteMode(cluster: Cluster, { mode }: ProxySettings): readonly Finding[] {
  const configMap = proxyConfigMapOf(cluster)
  if (configMap === undefined || mode !== 'nftables') return []
  const message = 'kube-proxy runs in nftables mode; the iptables rules are those it would write in iptables mode'
  const hint = 'take portolan nftables for the rules of the node'
  return [findingAt(configMap.meta, 'proxy-config.other-mode', { message, path: 'mode', hint })]
}

function proxyConfigMapOf(cluster: Cluster): ConfigMap | undefined {
  return cluster.configMaps.get('kube-system/kube-proxy')
}

/** The settings in the kube-proxy ConfigMap that kubeadm and others write, empty when the input has none. */
export function proxySettingsOf(cluster: Cluster): Parsed<Partial<ProxySettings>> {
  const findings: Finding[] = []
  const configMap = proxyConfigMapOf(cluster)
  if (configMap === undefined) return { value: {}, findings }
  return parseProxyConfigMap(configMap)
}

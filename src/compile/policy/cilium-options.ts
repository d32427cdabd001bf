/** How Cilium is configured, as far as policies depend on it: what is asked for, then the ConfigMap cilium-config, then defaults. */

import { type CiliumVersion, defaultCiliumVersion } from '#model/cilium-version'
import type { Cluster } from '#model/cluster'
import type { DnsCache } from './cilium-dns-cache'
import { readEnforcement, readFlag } from './config-words'

export type EnforcementMode = 'default' | 'always' | 'never'

export type CiliumSettings = {
  readonly version: CiliumVersion
  /** `enable-policy`. */
  readonly enforcement: EnforcementMode
  readonly clusterName: string
  /** `cluster-id` of a mesh, 0 without; `max-connected-clusters` is how many it may have. */
  readonly clusterId: number
  readonly mostClusters: 255 | 511
  /** `allow-localhost`: under Kubernetes `auto` means always. */
  readonly allowsLocalhost: boolean
  readonly isDualStack: boolean
  /** `policy-cidr-match-mode` lists `nodes`. */
  readonly cidrMatchesNodes: boolean
  /** `enable-node-selector-labels`, without which fromNodes and toNodes are refused. */
  readonly hasNodeLabels: boolean
  readonly hasHostFirewall: boolean
  readonly hasL7Proxy: boolean
  readonly hasIcmpRules: boolean
  /** `policy-audit-mode`: what policy would drop is forwarded and told. */
  readonly isAudit: boolean
  /** `enable-non-default-deny-policies`. */
  readonly hasDefaultDenySwitch: boolean
  /** The option `labels`: which labels make an identity. */
  readonly labels: string
  /** Pods may not send UDP to it, where nodes encapsulate; absent with native routing, and where nothing tells the routing. */
  readonly tunnelPort?: number
  /** `allow-icmp-frag-needed`. */
  readonly allowsFragmentationNeeded: boolean
  /** Without it no name of the DNS has addresses. */
  readonly dnsCache?: DnsCache
  /** Whether peers that must authenticate have done so; absent when nobody can tell. */
  readonly isAuthenticated?: boolean
}

export type CiliumOptions = Partial<CiliumSettings>

export function settingsOf(cluster: Cluster, options: CiliumOptions = {}): CiliumSettings {
  return { ...defaults(cluster), ...configured(cluster), ...options }
}

function defaults(cluster: Cluster): CiliumSettings {
  return {
    version: defaultCiliumVersion,
    enforcement: 'default',
    clusterName: 'default',
    clusterId: 0,
    mostClusters: 255,
    allowsLocalhost: true,
    isDualStack: hasBothFamilies(cluster),
    cidrMatchesNodes: false,
    hasNodeLabels: false,
    hasHostFirewall: false,
    hasL7Proxy: true,
    hasIcmpRules: true,
    isAudit: false,
    hasDefaultDenySwitch: true,
    labels: '',
    allowsFragmentationNeeded: true,
  }
}

function ciliumConfig(cluster: Cluster): Readonly<Record<string, string>> | undefined {
  return [...cluster.configMaps.values()].find(({ meta }) => meta.name === 'cilium-config')?.data
}

function configured(cluster: Cluster): CiliumOptions {
  const data = ciliumConfig(cluster)
  if (data === undefined) return {}
  const flag = (key: string): boolean | undefined => readFlag(data[key])
  const { 'enable-policy': enforcement, 'cluster-name': clusterName, labels, 'allow-localhost': localhost } = data
  const families = [flag('enable-ipv4'), flag('enable-ipv6')]
  return withoutUndefined({
    enforcement: readEnforcement(enforcement),
    clusterName: clusterName === '' ? undefined : clusterName,
    clusterId: clusterIdOf(data['cluster-id']),
    mostClusters: data['max-connected-clusters'] === '511' ? 511 : undefined,
    allowsLocalhost: localhost === undefined ? undefined : localhost !== 'policy',
    isDualStack: families.includes(undefined) ? undefined : families.every((on) => on === true),
    cidrMatchesNodes: data['policy-cidr-match-mode']?.split(/[\s,]+/).includes('nodes'),
    hasNodeLabels: flag('enable-node-selector-labels'),
    hasHostFirewall: flag('enable-host-firewall'),
    hasL7Proxy: flag('enable-l7-proxy'),
    hasIcmpRules: flag('enable-icmp-rules'),
    isAudit: flag('policy-audit-mode'),
    hasDefaultDenySwitch: flag('enable-non-default-deny-policies'),
    labels,
    tunnelPort: tunnelPort(data),
    allowsFragmentationNeeded: flag('allow-icmp-frag-needed'),
  })
}

function clusterIdOf(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,3}$/.test(text) && Number(text) <= 511 ? Number(text) : undefined
}

function tunnelPort(data: Readonly<Record<string, string>>): number | undefined {
  const protocol = data['tunnel-protocol']
  if (data['routing-mode'] === 'native') return undefined
  if (protocol === undefined && data['routing-mode'] !== 'tunnel') return undefined
  const own = Number(data['tunnel-port'] ?? '0')
  if (own > 0) return own
  return protocol === 'geneve' ? 6081 : 8472
}

function withoutUndefined(
  options: { readonly [K in keyof CiliumOptions]: CiliumOptions[K] | undefined },
): CiliumOptions {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
}

/** Pods tell which families the cluster has. */
function hasBothFamilies(cluster: Cluster): boolean {
  let hasIpv4 = false
  let hasIpv6 = false
  for (const { podIPs } of cluster.pods.values()) {
    for (const ip of podIPs) {
      if (ip.includes(':')) hasIpv6 = true
      else hasIpv4 = true
    }
    if (hasIpv4 && hasIpv6) return true
  }
  return false
}

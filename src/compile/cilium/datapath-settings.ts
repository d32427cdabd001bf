/** How a node's datapath is set: the ConfigMap cilium-config, then the agent's defaults. Mirrors pkg/option and pkg/loadbalancer/config.go, Cilium 1.16 to 1.19. */
import type { Finding } from '#base/finding'
import { type Family, familyOf } from '#base/ip'
import { type CiliumOptions, type CiliumSettings, settingsOf } from '#compile/policy/cilium-options'
import { badWords, readFlag } from '#compile/policy/config-words'
import { isAtLeast } from '#model/cilium-version'
import type { Cluster, ConfigMap } from '#model/cluster'
import { refOf } from '#model/meta'
import { nodeIps } from '#model/node'
import { mapsFinding } from './findings'
import { defaultMaglevSeed, maglevSizes, parseMaglevSeed } from './maglev'

export type DatapathSettings = {
  readonly policy: CiliumSettings
  /** IPv4 before IPv6. */
  readonly families: readonly Family[]
  readonly isTunnel: boolean
  readonly tunnelProtocol: string
  /** Node ports, external addresses and host ports are Cilium's own. */
  readonly replacesKubeProxy: boolean
  readonly usesMaglev: boolean
  readonly maglevSize: number
  /** Twelve bytes. */
  readonly maglevSeed: Uint8Array
  readonly hasAffinity: boolean
  readonly hasExternalClusterIp: boolean
  readonly checksSourceRanges: boolean
  readonly checksRangesOfAllTypes: boolean
  /** Keys of services hold the protocol; without it TCP and UDP share one row. */
  readonly tellsProtocols: boolean
  readonly hasServiceTopology: boolean
  readonly hasEgressGateway: boolean
  readonly hasIpMasqAgent: boolean
  readonly hasLocalRedirects: boolean
  readonly hasDirectRoutes: boolean
  readonly encryptsNodes: boolean
  /** CIDRs, or empty for all addresses of the node. */
  readonly nodePortAddresses: readonly string[]
  readonly policyMapMax: number
  readonly lbMapMax: number
}

export type SettingsParse = { readonly settings: DatapathSettings; readonly findings: readonly Finding[] }

export function datapathSettings(cluster: Cluster, options: CiliumOptions = {}): SettingsParse {
  const config = [...cluster.configMaps.values()].find(({ meta }) => meta.name === 'cilium-config')
  const policy = settingsOf(cluster, options)
  const findings: Finding[] = [...tellWords(config)]
  const data = config?.data ?? {}
  const flag = (key: string, otherwise: boolean): boolean => readFlag(data[key]) ?? otherwise
  const isProxy = replacement(config)
  const settings: DatapathSettings = {
    policy,
    families: familiesOf(cluster, data),
    isTunnel: data['routing-mode'] !== 'native',
    tunnelProtocol: data['tunnel-protocol'] === 'geneve' ? 'geneve' : 'vxlan',
    replacesKubeProxy: isProxy || flag('enable-node-port', false),
    usesMaglev: data['bpf-lb-algorithm'] === 'maglev' || data['node-port-algorithm'] === 'maglev',
    ...maglevOf(config, findings),
    hasAffinity: flag('enable-session-affinity', isProxy),
    hasExternalClusterIp: flag('bpf-lb-external-clusterip', false),
    checksSourceRanges: flag('enable-svc-source-range-check', true),
    checksRangesOfAllTypes: flag('bpf-lb-source-range-all-types', false),
    tellsProtocols: isAtLeast(policy.version, '1.17') && flag('bpf-lb-proto-diff', true),
    hasServiceTopology: flag('enable-service-topology', false),
    hasEgressGateway: flag('enable-egress-gateway', flag('enable-ipv4-egress-gateway', config === undefined)),
    hasIpMasqAgent: flag('enable-ip-masq-agent', false),
    hasLocalRedirects: flag('enable-local-redirect-policy', config === undefined),
    hasDirectRoutes: flag('auto-direct-node-routes', false),
    encryptsNodes: flag('encrypt-node', false),
    nodePortAddresses: (data['nodeport-addresses'] ?? '').split(/[\s,]+/).filter((text) => text !== ''),
    policyMapMax: sizeOf(data['bpf-policy-map-max'], 16384),
    lbMapMax: sizeOf(data['bpf-lb-map-max'], 65536),
  }
  return { settings, findings: [...(config === undefined ? [noConfig()] : []), ...findings] }
}

/** The agent knows `tunnel` no more (cilium/cilium#29053), and what it does not know it passes over. */
function tellWords(config: ConfigMap | undefined): readonly Finding[] {
  if (config === undefined) return []
  const about = { object: refOf(config.meta), origin: config.meta.origin }
  const bad = badWords(config.data).map(({ key, message }) =>
    mapsFinding('maps.bad-config', {
      message: `${message}; the agent does not start, and the default is taken here`,
      path: `data["${key}"]`,
      ...about,
    }),
  )
  if ((config.data.tunnel ?? '') === '') return bad
  const message = 'tunnel is no option since 1.15, and the agent passes it over'
  const hint = 'use routing-mode and tunnel-protocol'
  return [...bad, mapsFinding('maps.old-config', { message, path: 'data["tunnel"]', hint, ...about })]
}

function noConfig(): Finding {
  return mapsFinding('maps.no-config', {
    message:
      'the input has no ConfigMap cilium-config: VXLAN tunnels, kube-proxy replacement, no masquerade agent and the default sizes are taken',
    hint: 'add kubectl -n kube-system get configmap cilium-config -o yaml',
  })
}

/** `true`, and the words of releases before 1.14. */
function replacement(config: ConfigMap | undefined): boolean {
  if (config === undefined) return true
  return ['true', 'strict', 'probe'].includes(config.data['kube-proxy-replacement'] ?? 'false')
}

/** Without a word on it the addresses of pods and nodes tell. */
function familiesOf(cluster: Cluster, data: ConfigMap['data']): readonly Family[] {
  const seen = new Set<Family>()
  for (const { podIPs } of cluster.pods.values()) for (const ip of podIPs) seen.add(familyOf(ip))
  for (const node of cluster.nodes.values()) for (const ip of nodeIps(node)) if (seen.size === 0) seen.add(familyOf(ip))
  const families: readonly Family[] = ['ipv4', 'ipv6']
  return families.filter((family) => {
    return readFlag(data[family === 'ipv4' ? 'enable-ipv4' : 'enable-ipv6']) ?? seen.has(family)
  })
}

function maglevOf(
  config: ConfigMap | undefined,
  findings: Finding[],
): Pick<DatapathSettings, 'maglevSize' | 'maglevSeed'> {
  const sizeText = config?.data['bpf-lb-maglev-table-size'] ?? '16381'
  const seedText = config?.data['bpf-lb-maglev-hash-seed'] ?? defaultMaglevSeed
  const size = maglevSizes.find((one) => String(one) === sizeText)
  const seed = parseMaglevSeed(seedText)
  const refuse = (key: string, message: string): void => {
    findings.push(
      mapsFinding('maps.bad-config', {
        message: `${message}; the agent does not start, and the default is taken here`,
        path: `data["${key}"]`,
        ...(config !== undefined && { object: refOf(config.meta), origin: config.meta.origin }),
      }),
    )
  }
  if (size === undefined) {
    refuse('bpf-lb-maglev-table-size', `"${sizeText}" is no size of a Maglev table: ${maglevSizes.join(', ')} are`)
  }
  if (seed === undefined) {
    refuse('bpf-lb-maglev-hash-seed', `"${seedText}" is no seed: twelve bytes in base64 are wanted`)
  }
  return { maglevSize: size ?? 16381, maglevSeed: seed ?? parseMaglevSeed(defaultMaglevSeed) ?? new Uint8Array(12) }
}

function sizeOf(text: string | undefined, otherwise: number): number {
  return text !== undefined && /^[1-9]\d{0,8}$/.test(text) ? Number(text) : otherwise
}

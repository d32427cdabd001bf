/** Settings that only packets meet: masquerading, forwarding of Services, socket LB, encryption. Mirrors pkg/option and the Helm chart's cilium-config, Cilium 1.16 to 1.19. */
import { type Family, type Ip, parseIp } from '#base/ip'
import { type Prefix, parsePrefix } from '#base/prefix'
import type { DatapathSettings } from '#compile/cilium/datapath-settings'
import { readFlag } from '#compile/policy/config-words'
import { isAtLeast } from '#model/cilium-version'
import type { Cluster } from '#model/cluster'

export type ForwardingMode = 'snat' | 'dsr' | 'hybrid'

export type PathSettings = {
  readonly masquerades: Readonly<Record<Family, boolean>>
  /** By BPF; otherwise iptables does it, whose rules the maps do not hold. */
  readonly isBpfMasquerade: boolean
  /** `ipv4-native-routing-cidr` and its like; absent: the node's own pod range. */
  readonly nativeRanges: Readonly<Partial<Record<Family, Prefix>>>
  /** Sockets of pods are translated at connect; of the host always where kube-proxy is replaced. */
  readonly hasSocketLb: boolean
  readonly isSocketLbForHostOnly: boolean
  readonly mode: ForwardingMode
  readonly dispatch: 'opt' | 'ipip' | 'geneve'
  readonly isXdp: boolean
  readonly encryption: 'none' | 'wireguard' | 'ipsec'
  readonly encryptsNodes: boolean
  /** Pod to pod in this range must be encrypted. */
  readonly strictRange?: Prefix
  /** Local delivery and forwarding go through the host's stack. */
  readonly isLegacyRouting: boolean
  readonly hasEndpointRoutes: boolean
  readonly tunnelPort: number
  readonly nodePorts: { readonly from: number; readonly to: number }
  /** From where a pod reaches itself through a Service; of IPv6 from 1.19 on (cilium#39594). */
  readonly loopbacks: Readonly<Partial<Record<Family, Ip>>>
  /** The host answers for a Service without backends. */
  readonly rejectsNoBackend: boolean
}

/** An absent ConfigMap means what `cilium-config` has where the maps assume it absent: kube-proxy replacement, and masquerading by BPF. */
export function pathSettings(cluster: Cluster, settings: DatapathSettings): PathSettings {
  const data = [...cluster.configMaps.values()].find(({ meta }) => meta.name === 'cilium-config')?.data
  const told = (key: string): string | undefined => (data?.[key] === '' ? undefined : data?.[key])
  const flag = (key: string, otherwise: boolean): boolean => readFlag(data?.[key]) ?? otherwise
  const native4 = rangeOf(told('ipv4-native-routing-cidr'))
  const native6 = rangeOf(told('ipv6-native-routing-cidr'))
  const strict = flag('enable-encryption-strict-mode', false) ? rangeOf(told('encryption-strict-mode-cidr')) : undefined
  const encryption = flag('enable-wireguard', false) ? 'wireguard' : flag('enable-ipsec', false) ? 'ipsec' : 'none'
  return {
    masquerades: { ipv4: flag('enable-ipv4-masquerade', true), ipv6: flag('enable-ipv6-masquerade', true) },
    isBpfMasquerade: flag('enable-bpf-masquerade', data === undefined),
    nativeRanges: { ...(native4 && { ipv4: native4 }), ...(native6 && { ipv6: native6 }) },
    // Replacing kube-proxy switches it on, whatever the option says.
    hasSocketLb: isReplaced(data) || flag('bpf-lb-sock', false),
    isSocketLbForHostOnly: flag('bpf-lb-sock-hostns-only', false),
    mode: modeOf(told('bpf-lb-mode') ?? told('node-port-mode')),
    dispatch: dispatchOf(told('bpf-lb-dsr-dispatch')),
    isXdp: ['native', 'best-effort', 'testing-only'].includes(told('bpf-lb-acceleration') ?? 'disabled'),
    encryption,
    encryptsNodes: flag('encrypt-node', false),
    ...(strict !== undefined && { strictRange: strict }),
    isLegacyRouting: flag('enable-host-legacy-routing', !flag('enable-bpf-masquerade', data === undefined)),
    hasEndpointRoutes: flag('enable-endpoint-routes', false),
    tunnelPort: portOf(told('tunnel-port')) ?? (settings.tunnelProtocol === 'geneve' ? 6081 : 8472),
    nodePorts: rangeOfPorts(told('node-port-range')),
    loopbacks: loopbacksOf(told, settings),
    rejectsNoBackend: (told('service-no-backend-response') ?? 'reject') === 'reject',
  }
}

function loopbacksOf(
  told: (key: string) => string | undefined,
  { policy: { version } }: DatapathSettings,
): PathSettings['loopbacks'] {
  const ipv4 = parseIp(told('ipv4-service-loopback-address') ?? '169.254.42.1')
  const ipv6 = isAtLeast(version, '1.19') ? parseIp(told('ipv6-service-loopback-address') ?? 'fe80::1') : undefined
  return { ...(ipv4 && { ipv4 }), ...(ipv6 && { ipv6 }) }
}

function isReplaced(data: Readonly<Record<string, string>> | undefined): boolean {
  return data === undefined || ['true', 'strict', 'probe'].includes(data['kube-proxy-replacement'] ?? 'false')
}

function rangeOf(text: string | undefined): Prefix | undefined {
  return text === undefined ? undefined : parsePrefix(text)?.prefix
}

function modeOf(text: string | undefined): ForwardingMode {
  return text === 'dsr' || text === 'hybrid' ? text : 'snat'
}

function dispatchOf(text: string | undefined): PathSettings['dispatch'] {
  return text === 'ipip' || text === 'geneve' ? text : 'opt'
}

function portOf(text: string | undefined): number | undefined {
  return text !== undefined && /^[1-9]\d{0,4}$/.test(text) ? Number(text) : undefined
}

function rangeOfPorts(text: string | undefined): PathSettings['nodePorts'] {
  const [, from, to] = /^(\d+)[,-](\d+)$/.exec(text ?? '') ?? []
  return from === undefined || to === undefined ? { from: 30000, to: 32767 } : { from: Number(from), to: Number(to) }
}

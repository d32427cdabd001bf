/** Options that several commands share, and the checks of their values. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import { Failure } from '#base/failure'
import { explainBadIp, type Family, familyOf, type Ip, parseIp } from '#base/ip'
import { parsePrefix, printPrefix } from '#base/prefix'
import type { ProxySettings } from '#compile/services/proxy-settings'
import { explainBadNamespace, isNamespace } from './namespace-name'
import type { ObjectFlags } from './read-inputs-objects'

export function collect<T>(
  parse: (text: string) => T,
): (text: string, earlier: readonly T[] | undefined) => readonly T[] {
  return (text, earlier) => [...(earlier ?? []), parse(text)]
}

export const asText = (text: string): string => text

export function asIp(text: string): Ip {
  const ip = parseIp(text)
  if (ip === undefined) throw new InvalidArgumentError(explainBadIp(text))
  return ip
}

export function asCidr(text: string): string {
  const parsed = parsePrefix(text)
  if (parsed === undefined) throw new InvalidArgumentError(`"${text}" is not a CIDR such as 10.244.0.0/16.`)
  if (parsed.hasHostBits)
    throw new InvalidArgumentError(`"${text}" has bits beyond its length; write ${printPrefix(parsed.prefix)}.`)
  return printPrefix(parsed.prefix)
}

export function asCidrs(text: string): readonly string[] {
  return text.split(',').map((one) => asCidr(one.trim()))
}

/** A whole number between two bounds. */
export function asNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN
    if (!(value >= least && value <= most)) {
      throw new InvalidArgumentError(`"${text}" is not a whole number from ${least} to ${most}.`)
    }
    return value
  }
}

export function asNamespace(text: string): string {
  if (isNamespace(text)) return text
  throw new InvalidArgumentError(`${explainBadNamespace(text)}.`)
}

/** The kernel's rule for interface names (dev_valid_name): 15 characters, no blank, no slash. */
export function asInterface(text: string): string {
  if (/^[^\s/:]{1,15}$/.test(text) && text !== '.' && text !== '..') return text
  throw new InvalidArgumentError(`"${text}" is not an interface's name: 1 to 15 characters, no blank and no slash.`)
}

export function asBoolean(text: string): boolean {
  if (text === 'true' || text === 'false') return text === 'true'
  throw new InvalidArgumentError(`"${text}" is neither true nor false.`)
}

export type FromOptions = ObjectFlags & { readonly slices: 'computed' | 'input' }

export function addFromOption(command: Command): Command {
  return command.addOption(
    new Option('-f, --from <path>', 'objects: a file, a folder, or - for standard input; may repeat').argParser(
      collect(asText),
    ),
  )
}

/** For commands that read a cluster where no file is named. */
export function addObjectOptions(command: Command): Command {
  return addFromOption(command)
    .option(
      '--kubeconfig <file>',
      'without --from: the kubeconfig of the cluster to read (default: as kubectl finds it)',
    )
    .option('--context <name>', 'without --from: the context of the kubeconfig (default: the current one)')
}

export function addSlicesOption(command: Command): Command {
  const option = new Option('--slices <which>', 'EndpointSlices to work with')
    .choices(['computed', 'input'])
    .default('computed')
  return command.addOption(option)
}

export type ProxyOptions = {
  readonly node?: string
  readonly family: Family
  readonly clusterCidr?: readonly string[]
  readonly masqueradeAll?: boolean
  readonly iptablesMasqueradeBit?: number
  readonly iptablesLocalhostNodeports?: boolean
  readonly nodeportAddresses?: readonly string[]
  readonly detectLocalMode?: 'ClusterCIDR' | 'NodeCIDR' | 'BridgeInterface' | 'InterfaceNamePrefix'
  readonly podBridgeInterface?: string
  readonly podInterfaceNamePrefix?: string
  readonly conntrackTcpBeLiberal?: boolean
  readonly largeClusterEndpoints?: number
  readonly nfacct?: boolean
  readonly randomFully?: boolean
}

/** kube-proxy's flags under its own names, and three facts of a node that it finds out by itself. */
export function addProxyOptions(command: Command): Command {
  return addSharedProxyOptions(command)
    .option(
      '--iptables-localhost-nodeports <true|false>',
      'kube-proxy: node ports on 127.0.0.1 (default true)',
      asBoolean,
    )
    .option('--conntrack-tcp-be-liberal', 'the node has nf_conntrack_tcp_be_liberal set')
    .option(
      '--large-cluster-endpoints <count>',
      'above so many endpoints comments are left out (default 1000)',
      asNumber(0, 1e9),
    )
    .option('--nfacct', 'the kernel of the node has nfacct counters')
    .option('--no-random-fully', 'the iptables of the node is older than 1.6.2')
}

/** Those that change the rules of either mode. */
export function addSharedProxyOptions(command: Command): Command {
  return command
    .option('--node <name>', 'the node whose rules these are; without it no endpoint is local')
    .addOption(new Option('--family <family>', 'address family').choices(['ipv4', 'ipv6']).default('ipv4'))
    .option('--cluster-cidr <cidr[,cidr]>', 'the range of pod addresses', asCidrs)
    .option('--masquerade-all', 'kube-proxy: masquerade all traffic to ClusterIPs')
    .option('--iptables-masquerade-bit <bit>', 'kube-proxy: the bit of the mark (default 14)', asNumber(0, 31))
    .option('--nodeport-addresses <cidr[,cidr]>', 'kube-proxy: addresses that take node ports', asAddresses)
    .addOption(
      new Option('--detect-local-mode <mode>', 'kube-proxy: how it knows local pods').choices([
        'ClusterCIDR',
        'NodeCIDR',
        'BridgeInterface',
        'InterfaceNamePrefix',
      ]),
    )
    .option('--pod-bridge-interface <name>', 'kube-proxy: the bridge, with mode BridgeInterface', asInterface)
    .option(
      '--pod-interface-name-prefix <prefix>',
      'kube-proxy: the prefix, with mode InterfaceNamePrefix',
      asInterface,
    )
}

type Flag = { readonly name: string; readonly flag: string }

/** What the rules of a node are computed by, beside which node it is. */
export const settingFlags: readonly Flag[] = [
  { name: 'clusterCidr', flag: '--cluster-cidr' },
  { name: 'masqueradeAll', flag: '--masquerade-all' },
  { name: 'iptablesMasqueradeBit', flag: '--iptables-masquerade-bit' },
  { name: 'iptablesLocalhostNodeports', flag: '--iptables-localhost-nodeports' },
  { name: 'nodeportAddresses', flag: '--nodeport-addresses' },
  { name: 'detectLocalMode', flag: '--detect-local-mode' },
  { name: 'podBridgeInterface', flag: '--pod-bridge-interface' },
  { name: 'podInterfaceNamePrefix', flag: '--pod-interface-name-prefix' },
  { name: 'conntrackTcpBeLiberal', flag: '--conntrack-tcp-be-liberal' },
  { name: 'largeClusterEndpoints', flag: '--large-cluster-endpoints' },
  { name: 'nfacct', flag: '--nfacct' },
  { name: 'randomFully', flag: '--no-random-fully' },
]

export const proxyFlags: readonly Flag[] = [
  { name: 'node', flag: '--node' },
  { name: 'slices', flag: '--slices' },
  ...settingFlags,
]

/** Throws where settings contradict each other, or say nothing about the family asked for. */
export function checkProxyOptions(options: ProxyOptions, family: Family): void {
  const usage = (sentence: string): Failure => new Failure('usage.bad-argument', sentence)
  const { detectLocalMode: mode, clusterCidr, podBridgeInterface: bridge, podInterfaceNamePrefix: prefix } = options
  if (mode === 'BridgeInterface' && bridge === undefined) {
    throw usage('--detect-local-mode BridgeInterface needs the bridge; add --pod-bridge-interface NAME')
  }
  if (mode === 'InterfaceNamePrefix' && prefix === undefined) {
    throw usage('--detect-local-mode InterfaceNamePrefix needs the prefix; add --pod-interface-name-prefix PREFIX')
  }
  if (bridge !== undefined && mode !== undefined && mode !== 'BridgeInterface') {
    throw usage(`--pod-bridge-interface is for mode BridgeInterface, not ${mode}; leave one of them out`)
  }
  if (prefix !== undefined && mode !== undefined && mode !== 'InterfaceNamePrefix') {
    throw usage(`--pod-interface-name-prefix is for mode InterfaceNamePrefix, not ${mode}; leave one of them out`)
  }
  if (clusterCidr?.some((cidr) => familyOf(cidr) === family) === false) {
    const name = family === 'ipv4' ? 'IPv4' : 'IPv6'
    throw usage(
      `--cluster-cidr ${clusterCidr.join(',')} has no ${name} range, and ${name} rules are asked for; add one`,
    )
  }
}

function asAddresses(text: string): readonly string[] {
  return text === 'primary' ? ['primary'] : asCidrs(text)
}

type Draft = { -readonly [Key in keyof ProxySettings]?: ProxySettings[Key] }

/** Only what the user set: the rest comes from a ConfigMap or kube-proxy's defaults. */
export function settingsOf(options: ProxyOptions): Partial<ProxySettings> {
  const draft: Draft = {}
  if (options.masqueradeAll === true) draft.masqueradeAll = true
  if (options.iptablesMasqueradeBit !== undefined) draft.masqueradeBit = options.iptablesMasqueradeBit
  if (options.iptablesLocalhostNodeports !== undefined) draft.localhostNodePorts = options.iptablesLocalhostNodeports
  if (options.nodeportAddresses !== undefined) draft.nodePortAddresses = options.nodeportAddresses
  if (options.conntrackTcpBeLiberal === true) draft.conntrackTcpBeLiberal = true
  if (options.largeClusterEndpoints !== undefined) draft.largeClusterEndpoints = options.largeClusterEndpoints
  if (options.nfacct === true) draft.nfacct = true
  if (options.randomFully === false) draft.randomFully = false
  const detectLocal = detectLocalOf(options)
  if (detectLocal !== undefined) draft.detectLocal = detectLocal
  return draft
}

function detectLocalOf(options: ProxyOptions): ProxySettings['detectLocal'] | undefined {
  const { detectLocalMode, clusterCidr, podBridgeInterface, podInterfaceNamePrefix } = options
  if (detectLocalMode === 'NodeCIDR') return { kind: 'NodeCIDR' }
  if (detectLocalMode === 'BridgeInterface' || (detectLocalMode === undefined && podBridgeInterface !== undefined)) {
    return { kind: 'BridgeInterface', name: podBridgeInterface ?? '' }
  }
  if (
    detectLocalMode === 'InterfaceNamePrefix' ||
    (detectLocalMode === undefined && podInterfaceNamePrefix !== undefined)
  ) {
    return { kind: 'InterfaceNamePrefix', prefix: podInterfaceNamePrefix ?? '' }
  }
  return clusterCidr === undefined ? undefined : { kind: 'ClusterCIDR', cidrs: clusterCidr }
}

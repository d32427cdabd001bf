/** On which of the node's addresses node ports answer. */
import { type Family, parseIp } from '#base/ip'
import { containsIp, overlaps, type Prefix, parsePrefix } from '#base/prefix'
import { compareText } from '#base/text'
import type { ProxySettings } from './proxy-settings'

export type NodePortAddresses = { readonly kind: 'all' } | { readonly kind: 'some'; readonly ips: readonly string[] }

export type NodeAddresses = {
  readonly family: Family
  /** Addresses of the node's interfaces in both families, the primary ones first; loopback need not be named. */
  readonly ips: readonly string[]
}

const everything: Readonly<Record<Family, string>> = { ipv4: '0.0.0.0/0', ipv6: '::/0' }
const loopbackIps: Readonly<Record<Family, string>> = { ipv4: '127.0.0.1', ipv6: '::1' }
const ipv4Loopback = parsePrefix('127.0.0.0/8')?.prefix

/** `fallback` is what an empty setting means: `all` in iptables mode, `primary` in nftables mode. */
export function nodePortAddresses(
  settings: ProxySettings,
  addresses: NodeAddresses,
  fallback: 'all' | 'primary',
): NodePortAddresses {
  const { family, ips } = addresses
  const ranges = rangesOf(settings, addresses, fallback)
  if (ranges.some((range) => range.length === 0)) return { kind: 'all' }
  const known = [...new Set([...ips, loopbackIps[family]])]
  const chosen = known.filter((text) => {
    const ip = parseIp(text)
    return ip !== undefined && ranges.some((range) => containsIp(range, ip))
  })
  return { kind: 'some', ips: chosen.sort(compareText) }
}

/**
 * pkg/proxy/util/nodeport_addresses.go (1.34): a range that holds the start of 127.0.0.0/8, or lies in it, is enough;
 * and no range of the family stands for all.
 */
export function hasIpv4Loopback(settings: ProxySettings, { ips }: Pick<NodeAddresses, 'ips'>): boolean {
  const ranges = rangesOf(settings, { family: 'ipv4', ips }, 'all')
  return ipv4Loopback !== undefined && ranges.some((range) => overlaps(range, ipv4Loopback))
}

function rangesOf(
  settings: ProxySettings,
  { family, ips }: NodeAddresses,
  fallback: 'all' | 'primary',
): readonly Prefix[] {
  const setting = settings.nodePortAddresses
  const isPrimary = setting.length === 0 ? fallback === 'primary' : setting.length === 1 && setting[0] === 'primary'
  const primary = ips.find((text) => parseIp(text)?.family === family)
  const bits = family === 'ipv4' ? 32 : 128
  const texts = isPrimary ? (primary === undefined ? [] : [`${primary}/${bits}`]) : setting
  const ranges = texts.flatMap((text) => {
    const prefix = parsePrefix(text)?.prefix
    return prefix?.ip.family === family ? [prefix] : []
  })
  if (ranges.length > 0 || isPrimary) return ranges
  const all = parsePrefix(everything[family])?.prefix
  return all === undefined ? [] : [all]
}

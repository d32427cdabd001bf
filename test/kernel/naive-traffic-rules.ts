/**
 * A traffic policy as nftables rules, written out in the most naive way: one rule for each way to fill a rule's lists, each
 * with its rule's counter. Shares nothing with the product, so that both are wrong together only by chance.
 */
import type { TrafficMatch, TrafficPolicySpec } from '#model/traffic-policy-schema'

export const noMatchCounter = 'no-match'

/** On the ingress hook of a device, after the datapath's programs; nothing is dropped, all is counted. */
export function naiveTrafficRules({ rules }: TrafficPolicySpec, device: string): string {
  const names = [...rules.map(({ name }) => name), noMatchCounter]
  const lines = rules.flatMap(({ name, match = {} }) =>
    waysOf(match).map((way) => `${way} counter name "${name}" accept`),
  )
  return [
    'table netdev naive {',
    ...names.map((name) => `counter ${name} { }`),
    `chain first { type filter hook ingress device "${device}" priority 0; policy accept;`,
    ...lines,
    `counter name "${noMatchCounter}" accept`,
    '}',
    '}',
  ].join('\n')
}

function waysOf(match: TrafficMatch): readonly string[] {
  const { ipFamily, sources = [], destinations = [], protocols = [], sourcePorts = [], destinationPorts = [] } = match
  const family = ipFamily === undefined ? [''] : [`meta protocol ${ipFamily === 'IPv4' ? 'ip' : 'ip6'}`]
  const ends = [sources.map((one) => address(one, 'saddr')), destinations.map((one) => address(one, 'daddr'))]
  const withPorts = sourcePorts.length > 0 || destinationPorts.length > 0
  const words = protocols.map((one) => one.toLowerCase())
  const named = words.length > 0 ? words : withPorts ? ['tcp', 'udp', 'sctp'] : []
  const ports = [
    sourcePorts.map((one) => `th sport ${range(one)}`),
    destinationPorts.map((one) => `th dport ${range(one)}`),
  ]
  return product([family, ...ends, named.map(protocolMatch), ...ports, icmpWays(match, words)])
}

function icmpWays({ icmp = [] }: TrafficMatch, protocols: readonly string[]): readonly string[] {
  const word = protocols.includes('icmpv6') ? 'icmpv6' : 'icmp'
  return icmp.map(({ type, code }) => `${word} type ${type}${code === undefined ? '' : ` ${word} code ${code}`}`)
}

function address(cidr: string, field: 'saddr' | 'daddr'): string {
  const [family, any] = cidr.includes(':') ? ['ip6', '::/0'] : ['ip', '0.0.0.0/0']
  // nft takes a prefix of no bits for a mistake.
  return cidr === any ? `meta protocol ${family}` : `${family} ${field} ${cidr}`
}

/** ICMP of the other family is no protocol that a policy's rule takes. */
function protocolMatch(word: string): string {
  if (word === 'icmp') return 'meta protocol ip meta l4proto icmp'
  return word === 'icmpv6' ? 'meta protocol ip6 meta l4proto ipv6-icmp' : `meta l4proto ${word}`
}

function range({ from, to = from }: { readonly from: number; readonly to?: number | undefined }): string {
  return from === to ? String(from) : `${from}-${to}`
}

/** An empty list takes anything. */
function product(lists: readonly (readonly string[])[]): readonly string[] {
  return lists
    .filter((list) => list.length > 0)
    .reduce<readonly string[]>((found, list) => found.flatMap((one) => list.map((each) => `${one} ${each}`)), [''])
}

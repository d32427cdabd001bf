/** IPv4 addresses as NAT64 shows them to IPv6 hosts: in 64:ff9b::/96, RFC 6052's well-known prefix. */

import type { Finding } from '#base/finding'
import { type Ip, parseIp } from '#base/ip'
import { type Prefix, parsePrefix, printPrefix } from '#base/prefix'
import type { TrafficPolicy } from '#model/traffic-policy'
import type { TrafficRule } from '#model/traffic-policy-schema'
import { trafficFinding } from './findings'

const wellKnown = parseIp('64:ff9b::')

/** An IPv4 network of length n becomes one of length 96 + n. */
export function translated(prefix: Prefix): Prefix {
  const [a = 0, b = 0, c = 0] = wellKnown?.words ?? []
  const ip: Ip = { family: 'ipv6', words: [a, b, c, prefix.ip.words[0] ?? 0] }
  return { ip, length: 96 + prefix.length }
}

/**
 * Ingress is decided after translation, so that rules for IPv4 sources miss the clients of an IPv4 VIP. A rule whose paths
 * leave VIP out is about other traffic; one that a rule of the same action complements is known to its author.
 */
export function lintNat64({ meta, spec }: TrafficPolicy): readonly Finding[] {
  const rules = spec?.rules ?? []
  return rules.flatMap((rule, index) => {
    const { paths = [], sources = [], ipFamily } = rule.match ?? {}
    if (paths.length > 0 && !paths.includes('VIP')) return []
    const ipv4 = sources.filter((cidr) => !cidr.includes(':'))
    const lost = ipv4.length > 0 ? ipv4 : ipFamily === 'IPv4' ? ['0.0.0.0/0'] : []
    const wanted = lost.flatMap((cidr) => {
      const prefix = parsePrefix(cidr)?.prefix
      return prefix === undefined ? [] : [printPrefix(translated(prefix))]
    })
    const missing = wanted.filter((cidr) => !rules.some((other) => isNamed(other, rule, cidr)))
    if (missing.length === 0) return []
    const what =
      sources.length > 0 ? `its IPv4 ${ipv4.length === 1 ? 'source' : 'sources'} ${ipv4.join(', ')}` : 'ipFamily IPv4'
    const isSure = paths.length === 1
    return [
      trafficFinding('traffic-policy.ipv4-behind-vip', meta, {
        path: `spec.rules[${index}].match.${sources.length > 0 ? 'sources' : 'ipFamily'}`,
        message: `rule "${rule.name}": ${what} cannot match the clients of an IPv4 VIP${isSure ? ', so that the rule never matches' : ''}: they arrive as 64:ff9b::<client IPv4>`,
        hint: `the equivalent is sources: [${missing.join(', ')}] in a rule for IPv6`,
      }),
    ]
  })
}

function isNamed({ action, match = {} }: TrafficRule, rule: TrafficRule, cidr: string): boolean {
  return action === rule.action && (match.sources ?? []).includes(cidr)
}

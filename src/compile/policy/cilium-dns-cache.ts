/**
 * Names of the DNS and the addresses that Cilium has learned for them, and which names a pattern means. The cache is read
 * from `cilium-dbg fqdn cache list -o json`, or from a map of names to addresses. Mirrors pkg/fqdn/matchpattern.
 */

import { canonicalIp } from '#base/ip'
import type { FqdnSelector } from '#model/cilium-policy'
import { type CiliumVersion, isAtLeast } from '#model/cilium-version'

/** Names in lower case without the dot at the end, and their canonical addresses. */
export type DnsCache = ReadonlyMap<string, readonly string[]>

export type DnsCacheParse = { readonly cache: DnsCache; readonly problems: readonly string[] }

/** `value` is parsed JSON. */
export function parseDnsCache(value: unknown): DnsCacheParse {
  const cache = new Map<string, string[]>()
  const problems: string[] = []
  for (const [name, addresses] of entriesOf(value, problems)) {
    const known = cache.get(plainName(name)) ?? []
    cache.set(plainName(name), known)
    for (const address of addresses) {
      const ip = typeof address === 'string' ? canonicalIp(address) : undefined
      if (ip === undefined) problems.push(`${name}: ${JSON.stringify(address)} is no address; it is left out`)
      else if (!known.includes(ip)) known.push(ip)
    }
  }
  return { cache, problems }
}

function entriesOf(value: unknown, problems: string[]): readonly (readonly [string, readonly unknown[]])[] {
  if (Array.isArray(value)) {
    return value.flatMap((entry, index) => {
      const { fqdn, ips } = isRecord(entry) ? entry : {}
      if (typeof fqdn === 'string' && Array.isArray(ips)) return [[fqdn, ips] as const]
      problems.push(`[${index}]: fqdn and ips are wanted; the entry is left out`)
      return []
    })
  }
  if (isRecord(value)) {
    return Object.entries(value).flatMap(([name, addresses]) => {
      if (Array.isArray(addresses)) return [[name, addresses] as const]
      problems.push(`${name}: a list of addresses is wanted; the name is left out`)
      return []
    })
  }
  problems.push('a map of names to addresses is wanted, or the list that cilium-dbg fqdn cache list -o json prints')
  return []
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function plainName(name: string): string {
  return name.toLowerCase().replace(/\.$/, '')
}

/** `*` stands for characters of one label, `*` alone for every name, and from 1.19 on `**.` in front for several labels. */
export function matchesName({ matchName, matchPattern }: FqdnSelector, name: string, version: CiliumVersion): boolean {
  if (matchName !== undefined) return plainName(matchName) === plainName(name)
  if (matchPattern === undefined) return false
  const pattern = plainName(matchPattern)
  if (pattern === '*') return true
  const isDeep = pattern.startsWith('**.') && isAtLeast(version, '1.19')
  const rest = (isDeep ? pattern.slice(3) : pattern).replaceAll('.', '[.]').replaceAll(/\*+/g, '[-a-z0-9_]*')
  return new RegExp(`^${isDeep ? '([-a-z0-9_]+[.])+' : ''}${rest}$`).test(plainName(name))
}

export function printFqdn({ matchName, matchPattern }: FqdnSelector): string {
  return matchName ?? matchPattern ?? ''
}

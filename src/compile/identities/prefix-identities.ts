/**
 * Identities of prefixes: each prefix that a policy names has one, on each node of its own, and an address has that of
 * its longest prefix. Mirrors pkg/ipcache and pkg/labels/cidr, Cilium 1.18.
 */
import type { Ip } from '#base/ip'
import { compareIp } from '#base/ip'
import { containsIp, type Prefix, printPrefix } from '#base/prefix'
import type { Identity } from './identities'
import { type Label, type LabelSet, labelSet, reservedLabel } from './label'
import { firstLocalNumber } from './numbers'

export type PrefixIdentity = Identity & {
  readonly prefix: Prefix
  /** Names of the DNS that the address was learned for. */
  readonly names: readonly string[]
}

export type PrefixTable = {
  readonly isDualStack: boolean
  /** The longest first. */
  readonly identities: readonly PrefixIdentity[]
}

/** What else is known of a prefix than that policies name it. */
export type PrefixFacts = {
  readonly prefix: Prefix
  readonly names?: readonly string[]
  /** `cidrgroup:` labels, and `reserved:kube-apiserver` for an API server outside the cluster. */
  readonly labels?: readonly Label[]
}

export function numberPrefixes(facts: readonly PrefixFacts[], isDualStack: boolean): PrefixTable {
  const merged = new Map<string, { prefix: Prefix; names: Set<string>; labels: Label[] }>()
  for (const { prefix, names = [], labels = [] } of facts) {
    const key = printPrefix(prefix)
    const entry = merged.get(key) ?? { prefix, names: new Set<string>(), labels: [] }
    merged.set(key, entry)
    for (const name of names) entry.names.add(name)
    entry.labels.push(...labels)
  }
  const inOrder = [...merged.values()]
    .filter(({ prefix }) => prefix.length > 0)
    .sort((a, b) => compareIp(a.prefix.ip, b.prefix.ip) || a.prefix.length - b.prefix.length)
  const identities = inOrder.map(({ prefix, names, labels }, index) => ({
    number: firstLocalNumber + index,
    labels: prefixLabels(prefix, isDualStack, labels),
    isGiven: false,
    prefix,
    names: [...names].sort(),
  }))
  return { isDualStack, identities: identities.sort((a, b) => b.prefix.length - a.prefix.length) }
}

/** Colons cannot stand in a label, so IPv6 is written with dashes. */
export function prefixLabels(prefix: Prefix, isDualStack: boolean, added: readonly Label[] = []): LabelSet {
  const key = printPrefix(prefix).replaceAll(':', '-').replace(/^-/, '0-').replace('-/', '-0/')
  const cidr = { source: 'cidr', key, value: '' }
  return labelSet([cidr, reservedLabel(worldName(prefix.ip, isDualStack)), ...added])
}

export function worldName(ip: Ip, isDualStack: boolean): 'world' | 'world-ipv4' | 'world-ipv6' {
  if (!isDualStack) return 'world'
  return ip.family === 'ipv4' ? 'world-ipv4' : 'world-ipv6'
}

/** Undefined for the rest of the world. */
export function identityOfAddress(table: PrefixTable, ip: Ip): PrefixIdentity | undefined {
  return table.identities.find(({ prefix }) => containsIp(prefix, ip))
}

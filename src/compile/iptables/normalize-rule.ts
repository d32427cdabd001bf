/** A rule as the kernel gives it back: what iptables-save prints for a rule however it was written. */
import { type Family, parseIp, printIp } from '#base/ip'
import { bitsOf, hostPrefix, lengthOfMask, type Prefix, parsePrefix, prefixOf, printPrefix } from '#base/prefix'
import { normalizeMatch, normalizeTarget } from './normalize-option'
import {
  type Action,
  builtinChains,
  type Chain,
  type Clause,
  type HeaderKind,
  type Rule,
  type Ruleset,
  type Table,
  type Variant,
} from './rule'

type Header = Extract<Clause, { readonly value: string }>

/** The order in which headers are saved, before all matches. */
const headerRank: Readonly<Record<HeaderKind | 'fragment', number>> = {
  source: 0,
  destination: 1,
  'in-interface': 2,
  'out-interface': 3,
  protocol: 4,
  fragment: 5,
}

/** Idempotent. What it does not know it leaves as written. */
export function normalizeRule({ clauses, action, line, counters }: Rule, family: Family): Rule {
  const headers: Header[] = []
  const matches: Clause[] = []
  for (const clause of clauses) {
    if (clause.kind === 'match') {
      matches.push(normalizeMatchClause(clause, family))
      continue
    }
    const header = normalizeHeader(clause, family)
    if (header !== undefined) headers.push(header)
  }
  if (headers.length > 1) headers.sort((a, b) => headerRank[a.kind] - headerRank[b.kind])
  const normalized: Draft = { clauses: headers.length === 0 ? matches : [...headers, ...matches] }
  if (action !== undefined) normalized.action = normalizeAction(action, family)
  if (line !== undefined) normalized.line = line
  if (counters !== undefined) normalized.counters = counters
  return normalized
}

type Draft = { -readonly [Key in keyof Rule]: Rule[Key] }

function normalizeMatchClause(clause: Extract<Clause, { readonly kind: 'match' }>, family: Family): Clause {
  const options = normalizeMatch(clause.name, clause.options, family)
  return options === clause.options ? clause : { ...clause, options }
}

function normalizeAction(action: Action, family: Family): Action {
  const options = normalizeTarget(action.target, action.options, family)
  return options === action.options ? action : { ...action, options }
}

/** Undefined for a header that matches everything: the kernel keeps nothing of it. */
function normalizeHeader(clause: Header, family: Family): Header | undefined {
  switch (clause.kind) {
    case 'source':
    case 'destination': {
      const value = normalizeAddress(clause.value, family)
      return !clause.not && value.endsWith('/0') ? undefined : { ...clause, value }
    }
    case 'protocol': {
      const value = normalizeProtocol(clause.value)
      return !clause.not && value === 'all' ? undefined : { ...clause, value }
    }
    case 'in-interface':
    case 'out-interface':
      return !clause.not && clause.value === '+' ? undefined : clause
    case 'fragment':
      return clause
    default:
      return clause satisfies never
  }
}

/** A length is always saved, host bits never; a mask is turned into a length where it has one. */
function normalizeAddress(text: string, family: Family): string {
  const slash = text.indexOf('/')
  if (slash < 0) {
    const ip = parseIp(text)
    return ip === undefined ? text : printPrefix(hostPrefix(ip))
  }
  const prefix = parsePrefix(text)?.prefix
  if (prefix !== undefined) return printPrefix(prefix)
  return normalizeMasked(text.slice(0, slash), text.slice(slash + 1), family) ?? text
}

function normalizeMasked(addressText: string, maskText: string, family: Family): string | undefined {
  const ip = parseIp(addressText)
  const mask = parseIp(maskText)
  if (ip === undefined || mask === undefined || ip.family !== family || mask.family !== family) return undefined
  const length = lengthOfMask(mask)
  if (length !== undefined) return printPrefix(prefixOf(ip, length))
  const words = ip.words.map((word, at) => (word & (mask.words[at] ?? 0)) >>> 0)
  const masked: Prefix = { ip: { family, words }, length: bitsOf(family) }
  return `${printIp(masked.ip)}/${printIp(mask)}`
}

/** Of the protocols that iptables itself knows by name (xtables_chain_protos, 1.8.9). */
const protocolNames: ReadonlyMap<string, string> = new Map([
  ['0', 'all'],
  ['1', 'icmp'],
  ['6', 'tcp'],
  ['17', 'udp'],
  ['50', 'esp'],
  ['51', 'ah'],
  ['58', 'ipv6-icmp'],
  ['132', 'sctp'],
  ['135', 'ipv6-mh'],
  ['136', 'udplite'],
  ['icmpv6', 'ipv6-icmp'],
  ['icmp6', 'ipv6-icmp'],
])

function normalizeProtocol(text: string): string {
  const lower = text.toLowerCase()
  return protocolNames.get(lower) ?? lower
}

/**
 * The order of tables in a save. The legacy variant lists the table that was used last first: this is its order after
 * filter, nat and mangle, as kube-proxy uses them. Nothing should rely on it.
 */
const tableOrder: Readonly<Record<Variant, readonly string[]>> = {
  nf_tables: ['mangle', 'security', 'raw', 'filter', 'nat'],
  legacy: ['security', 'raw', 'mangle', 'nat', 'filter'],
}

/** A ruleset as a save would show it: rules normalised, built-in chains first and the others by name. */
export function normalizeRuleset(ruleset: Ruleset, variant: Variant = ruleset.variant ?? 'nf_tables'): Ruleset {
  const order = tableOrder[variant]
  const rank = (name: string): number => (order.includes(name) ? order.indexOf(name) : order.length)
  const tables = [...ruleset.tables.values()].sort((a, b) => rank(a.name) - rank(b.name))
  const normalized = tables.map((table): [string, Table] => [table.name, normalizeTable(table, ruleset.family)])
  return { family: ruleset.family, variant, tables: new Map(normalized) }
}

function normalizeTable({ name, chains }: Table, family: Family): Table {
  const builtins = (builtinChains[name] ?? []).filter((chain) => chains.has(chain))
  const others = [...chains.keys()].filter((chain) => !builtins.includes(chain)).sort()
  const normalized = new Map<string, Chain>()
  for (const key of [...builtins, ...others]) {
    const chain = chains.get(key)
    if (chain === undefined) continue
    const rules = chain.rules.map((rule) => normalizeRule(rule, family))
    normalized.set(key, { ...chain, rules })
  }
  return { name, chains: normalized }
}

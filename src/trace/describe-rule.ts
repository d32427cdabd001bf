/** What a rule asks for, in words: the reason a packet met it. */
import type { Clause, Option, Rule } from '#compile/iptables/rule'

export function describeRule(rule: Rule): string {
  const parts = rule.clauses.map(describeClause).filter((part) => part !== '')
  return parts.length === 0 ? 'it takes every packet' : `it asks for ${parts.join(', ')}`
}

function describeClause(clause: Clause): string {
  if (clause.kind === 'match') return describeMatch(clause.name, clause.options)
  const not = clause.not ? 'not ' : ''
  const value = clause.value.replace(/\/(32|128)$/, '')
  switch (clause.kind) {
    case 'source':
      return `source ${not}${value}`
    case 'destination':
      return `destination ${not}${value}`
    case 'in-interface':
      return `incoming interface ${not}${value}`
    case 'out-interface':
      return `outgoing interface ${not}${value}`
    case 'protocol':
      return `${not}${value}`
    case 'fragment':
      return `${not}a later fragment`
    default:
      return clause satisfies never
  }
}

function describeMatch(name: string, options: readonly Option[]): string {
  if (name === 'comment' || name === 'nfacct') return ''
  if (options.length === 0) return ['tcp', 'udp', 'sctp', 'icmp', 'icmp6'].includes(name) ? '' : `match ${name}`
  return options
    .map((option) => describeOption(name, option))
    .filter((part) => part !== '')
    .join(', ')
}

const words: Readonly<Record<string, string>> = {
  '--dport': 'port',
  '--sport': 'source port',
  '--dports': 'ports',
  '--sports': 'source ports',
  '--ctstate': 'connection state',
  '--state': 'connection state',
  '--mark': 'mark',
  '--src-type': 'source of type',
  '--dst-type': 'destination of type',
  '--probability': 'a chance of',
  '--every': 'one packet in',
  '--match-set': 'a member of set',
  '--icmp-type': 'ICMP type',
  '--icmpv6-type': 'ICMPv6 type',
}

const silent = new Set(['--mode', '--packet', '--mask', '--rsource', '--reap', '--name'])

function describeOption(name: string, option: Option): string {
  if (silent.has(option.flag)) return ''
  const not = option.not ? 'not ' : ''
  if (name === 'recent') {
    if (option.flag === '--set') return 'the client being remembered'
    return option.flag === '--rcheck' || option.flag === '--update'
      ? `${not}a client it remembers`
      : `of the last ${option.values[0]} s`
  }
  const known = words[option.flag]
  const value =
    option.flag === '--probability' ? String(Number(Number(option.values[0]).toFixed(4))) : option.values.join(' ')
  return known === undefined
    ? `${not}${name} ${option.flag.replace(/^--/, '')} ${value}`.trim()
    : `${known} ${not}${value}`
}

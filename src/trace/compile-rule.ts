/** A rule's clauses as tests, compiled once a rule: one entry a match that Portolan decides. */
import type { Clause, Option, Rule } from '#compile/iptables/rule'
import { compileHeader } from './match-header'
import { compileAddrtype, compileIprange } from './matches/address'
import { compileStatistic } from './matches/chance'
import { compileConntrack } from './matches/conntrack'
import { compileIcmp } from './matches/icmp'
import { compileMark } from './matches/mark'
import { compileConnlimit, compileLimit, compileRecent } from './matches/memory'
import {
  compileIpsecPolicy,
  compileLength,
  compileOpen,
  compilePhysdev,
  compilePkttype,
  compileRpfilter,
} from './matches/packet'
import { compileMultiport, compileProtocolPorts } from './matches/ports'
import { compileSet } from './matches/set'
import { compileOwner, compileSocket } from './matches/socket'
import { known, undecidable } from './question'
import type { Decide } from './view'

type CompileMatch = (options: readonly Option[]) => Decide

const always: CompileMatch = () => () => [known(true)]
const never: CompileMatch = () => () => [known(false)]
const open =
  (name: string, usual = false): CompileMatch =>
  (options) =>
    compileOpen(name, options, usual)
const ports =
  (name: string): CompileMatch =>
  (options) =>
    compileProtocolPorts(name, options)

const matches: ReadonlyMap<string, CompileMatch> = new Map<string, CompileMatch>([
  ['tcp', ports('tcp')],
  ['udp', ports('udp')],
  ['sctp', ports('sctp')],
  ['dccp', ports('dccp')],
  ['udplite', ports('udplite')],
  ['multiport', compileMultiport],
  ['icmp', (options) => compileIcmp('icmp', options)],
  ['icmp6', (options) => compileIcmp('icmp6', options)],
  ['icmpv6', (options) => compileIcmp('icmp6', options)],
  ['conntrack', compileConntrack],
  ['state', compileConntrack],
  ['mark', (options) => compileMark('mark', options)],
  ['connmark', (options) => compileMark('connmark', options)],
  ['addrtype', compileAddrtype],
  ['iprange', compileIprange],
  ['statistic', compileStatistic],
  ['recent', compileRecent],
  ['limit', (options) => compileLimit('limit', options)],
  ['hashlimit', (options) => compileLimit('hashlimit', options)],
  ['connlimit', compileConnlimit],
  ['set', compileSet],
  ['owner', compileOwner],
  ['socket', compileSocket],
  ['length', compileLength],
  ['pkttype', compilePkttype],
  ['physdev', compilePhysdev],
  ['rpfilter', compileRpfilter],
  ['policy', compileIpsecPolicy],
  ['comment', always],
  ['nfacct', always],
  ['ah', never],
  ['esp', never],
  ['frag', never],
  ['connbytes', open('connbytes')],
  ['connlabel', open('connlabel')],
  ['cgroup', open('cgroup')],
  ['dscp', open('dscp')],
  ['ecn', open('ecn')],
  ['helper', open('helper')],
  ['hl', open('hl')],
  ['mac', open('mac')],
  ['quota', open('quota', true)],
  ['tcpmss', open('tcpmss')],
  ['tos', open('tos')],
  ['ttl', open('ttl')],
])

const compiled = new WeakMap<Rule, readonly Decide[]>()

/** The tests of a rule, in written order; a rule is compiled when a walk first comes to it. */
export function testsOf(rule: Rule): readonly Decide[] {
  let tests = compiled.get(rule)
  if (tests === undefined) {
    tests = rule.clauses.map(compileClause)
    compiled.set(rule, tests)
  }
  return tests
}

function compileClause(clause: Clause): Decide {
  if (clause.kind !== 'match') return compileHeader(clause)
  const compile = matches.get(clause.name)
  if (compile !== undefined) return compile(clause.options)
  const text = clause.options
    .map((option) => [option.not ? '!' : '', option.flag, ...option.values].filter((word) => word !== '').join(' '))
    .join(' ')
  return () => [undecidable(`-m ${clause.name} ${text}`.trim())]
}

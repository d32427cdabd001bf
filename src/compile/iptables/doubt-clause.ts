/** Clauses that read well and say nothing a kernel would take: a port that is no number, an option its match does not have. */
import { parseIp } from '#base/ip'
import { parsePortRange } from '#base/port-range'
import { parsePrefix } from '#base/prefix'
import type { Clause, Option } from './rule'

/** The words in doubt, and why. */
export type Doubt = { readonly words: readonly string[]; readonly why: string }

const ports = ['--sport', '--dport']

/** Options of matches as iptables 1.8.9 knows them; a match that is not here may have any. */
const optionsOf: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  Object.entries({
    tcp: [...ports, '--tcp-flags', '--syn', '--tcp-option'],
    udp: ports,
    sctp: [...ports, '--chunk-types'],
    dccp: [...ports, '--dccp-types', '--dccp-option'],
    multiport: ['--sports', '--dports', '--ports', '--source-ports', '--destination-ports'],
    comment: ['--comment'],
    mark: ['--mark'],
    connmark: ['--mark'],
    state: ['--state'],
    statistic: ['--mode', '--probability', '--every', '--packet'],
    addrtype: ['--src-type', '--dst-type', '--limit-iface-in', '--limit-iface-out'],
    iprange: ['--src-range', '--dst-range'],
    limit: ['--limit', '--limit-burst'],
    icmp: ['--icmp-type'],
    icmp6: ['--icmpv6-type'],
    conntrack: [
      ...['--ctstate', '--ctproto', '--ctstatus', '--ctexpire', '--ctdir'],
      ...['--ctorigsrc', '--ctorigdst', '--ctreplsrc', '--ctrepldst'],
      ...['--ctorigsrcport', '--ctorigdstport', '--ctreplsrcport', '--ctrepldstport'],
    ],
  }).map(([name, flags]) => [name, new Set(flags)]),
)

/** Names of /etc/protocols that iptables-save prints or rules use; any other name is a doubt, any number is none. */
const protocols = new Set(
  (
    'all ip icmp igmp ggp ipencap st tcp egp igp pup udp hmp xns-idp rdp iso-tp4 dccp xtp ddp idpr-cmtp ipv6 ipv6-route ' +
    'ipv6-frag idrp rsvp gre esp ah skip ipv6-icmp icmpv6 icmp6 ipv6-nonxt ipv6-opts rspf vmtp eigrp ospf ax.25 ipip ' +
    'etherip encap pim ipcomp vrrp l2tp isis sctp fc mobility-header ipv6-mh mh udplite mpls-in-ip manet hip shim6 wesp ' +
    'rohc ethernet mptcp'
  ).split(' '),
)

/** Of the first clause in doubt. */
export function doubtOf(clauses: readonly Clause[]): Doubt | undefined {
  for (const clause of clauses) {
    const doubt = clause.kind === 'match' ? doubtOfMatch(clause.name, clause.options) : doubtOfHeader(clause)
    if (doubt !== undefined) return doubt
  }
  return undefined
}

function doubtOfHeader({ kind, value }: Exclude<Clause, { readonly kind: 'match' }>): Doubt | undefined {
  if (kind === 'protocol') {
    const isNumber = /^\d{1,3}$/.test(value) && Number(value) <= 255
    if (isNumber || protocols.has(value.toLowerCase())) return undefined
    return { words: ['-p', value], why: `"${value}" is not a protocol` }
  }
  if (kind !== 'source' && kind !== 'destination') return undefined
  if (isAddress(value)) return undefined
  return { words: [kind === 'source' ? '-s' : '-d', value], why: `"${value}" is not an address` }
}

function isAddress(text: string): boolean {
  const slash = text.indexOf('/')
  if (parseIp(slash < 0 ? text : text.slice(0, slash)) === undefined) return false
  if (slash < 0) return true
  const length = text.slice(slash + 1)
  return /[.:]/.test(length) ? parseIp(length) !== undefined : parsePrefix(text) !== undefined
}

function doubtOfMatch(name: string, options: readonly Option[]): Doubt | undefined {
  const known = optionsOf.get(name)
  if (known === undefined) return undefined
  for (const { flag, values } of options) {
    if (!known.has(flag)) return { words: [flag, ...values], why: `-m ${name} has no option ${flag}` }
    if (!flag.endsWith('port') && !flag.endsWith('ports')) continue
    const bad = name === 'conntrack' ? undefined : badPort(values)
    if (bad !== undefined) return { words: [flag, ...values], why: `"${bad}" is not a port` }
  }
  return undefined
}

/** A service's name is a port only to a system that knows it; iptables-save prints numbers. */
function badPort(values: readonly string[]): string | undefined {
  return (values[0] ?? '').split(',').find((port) => parsePortRange(port) === undefined)
}

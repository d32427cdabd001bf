/** Random matches of hand-written rules, as `iptables-restore` takes them. */
import { places } from './node-layout'
import type { Random } from './random'
import {
  randomHost,
  randomInterface,
  randomMark,
  randomPort,
  randomPortRange,
  randomRange,
  randomSpan,
} from './random-addresses'
import { randomSetMatch } from './random-sets'
import { hasPorts, isOnlyAt, type RulePlace } from './rule-place'

/** Undefined where the match is not allowed. */
type MatchMaker = (random: Random, place: RulePlace) => string | undefined

function not(random: Random): string {
  return random.chance(0.25) ? '! ' : ''
}

/** Decided by what is known of a packet. */
const plainMatches: readonly [MatchMaker, ...MatchMaker[]] = [
  (random, { family }) => `${not(random)}-s ${randomRange(random, family)}`,
  (random, { family }) => `${not(random)}-d ${randomRange(random, family)}`,
  (random, place) =>
    place.isBuiltin && !isOnlyAt(place, 'PREROUTING', 'INPUT', 'FORWARD')
      ? undefined
      : `${not(random)}-i ${randomInterface(random)}`,
  (random, place) =>
    place.isBuiltin && !isOnlyAt(place, 'FORWARD', 'OUTPUT', 'POSTROUTING')
      ? undefined
      : `${not(random)}-o ${randomInterface(random)}`,
  (random, { protocol }) => portMatch(random, protocol),
  (random, { protocol }) => portMatch(random, protocol),
  (random, { protocol }) => (hasPorts(protocol) ? multiportMatch(random) : undefined),
  (random, { family }) =>
    `-m iprange ${not(random)}--${random.pick(['src', 'dst'])}-range ${randomSpan(random, family)}`,
  (random, place) => addrtypeMatch(random, place),
  (random) => `-m mark ${not(random)}--mark ${randomMark(random)}`,
  (random) => `-m connmark ${not(random)}--mark ${randomMark(random)}`,
  (random) =>
    `-m state ${not(random)}--state ${random.pick(['NEW', 'ESTABLISHED,RELATED', 'INVALID', 'UNTRACKED,NEW'])}`,
  (random, place) => conntrackMatch(random, place),
  (random, place) => conntrackMatch(random, place),
  (random, place) =>
    `-m set ${not(random)}--match-set ${randomSetMatch(random, place.family, isOnlyAt(place, 'FORWARD', 'OUTPUT', 'POSTROUTING'))}`,
  (random) => `-m pkttype ${not(random)}--pkt-type ${random.pick(['unicast', 'broadcast', 'multicast'])}`,
  (random, { protocol, family }) => (protocol === 'icmp' ? icmpMatch(random, family) : undefined),
  (random) => `-m comment --comment "${random.pick(['plain', 'with # and \\"quotes\\"', "it's -j DROP"])}"`,
  (random) =>
    `-m statistic --mode random ${not(random)}--probability ${random.pick(['0.5', '0.33333333349', '0', '1'])}`,
  (random) => `-m statistic --mode nth ${not(random)}--every ${random.between(1, 4)} --packet 0`,
]

/** Decided by what a trace is not told, so that each such match splits a walk. */
const askingMatches: readonly [MatchMaker, ...MatchMaker[]] = [
  (random) => `-m length ${not(random)}--length ${random.pick(['40:60', '0:35', '100', '36'])}`,
  (random) =>
    `-m recent ${random.pick(['--set', '--rcheck --seconds 60', '--update', '--rcheck --hitcount 2'])} --name ${random.pick(['seen', 'other'])} ${random.pick(['--rsource', '--rdest'])}`,
  limitMatch,
  (random, place) =>
    isOnlyAt(place, 'OUTPUT', 'POSTROUTING')
      ? `-m owner ${random.pick(['--uid-owner 0', '! --uid-owner 0', '--uid-owner 1000', '! --gid-owner 5', '--uid-owner 0-99'])}`
      : undefined,
  (random, place) =>
    isOnlyAt(place, 'PREROUTING') && ['raw', 'mangle'].includes(place.table)
      ? `-m rpfilter${random.chance(0.3) ? ' --loose' : ''}${random.chance(0.5) ? ' --invert' : ''}`
      : undefined,
  (random, place) =>
    isOnlyAt(place, 'INPUT', 'FORWARD', 'PREROUTING')
      ? `-m physdev ${not(random)}${random.pick(['--physdev-in veth+', '--physdev-is-in', '--physdev-is-bridged'])}`
      : undefined,
  (random, { family }) => (family === 'ipv4' ? `-m ttl --ttl-${random.pick(['eq 64', 'lt 64', 'gt 10'])}` : undefined),
  (random, { family }) => (family === 'ipv6' ? `-m hl --hl-${random.pick(['eq 64', 'lt 64', 'gt 10'])}` : undefined),
  (random) => `-m connlimit --connlimit-${random.pick(['above 1000', 'upto 1000', 'above 0'])} --connlimit-mask 0`,
  (random) => `-m u32 --u32 "${random.pick(['0>>22&0x3C@0>>16=0:1000', '2&0xFFFF=0:100'])}"`,
  (random) => `-m quota --quota ${random.pick(['0', '1000000'])}`,
  (random) => `-m string --string "${random.pick(['portolan', 'absent'])}" --algo bm`,
  (random, place) =>
    isOnlyAt(place, 'PREROUTING', 'INPUT') ? `-m socket${random.chance(0.5) ? ' --transparent' : ''}` : undefined,
  (random, place) =>
    isOnlyAt(place, 'PREROUTING', 'INPUT', 'FORWARD')
      ? `-m policy --dir in --pol ${random.pick(['none', 'ipsec'])}`
      : undefined,
]

export function randomMatch(random: Random, place: RulePlace): string {
  return makeOne(random, place, plainMatches)
}

export function randomAskingMatch(random: Random, place: RulePlace): string {
  return makeOne(random, place, askingMatches)
}

function makeOne(random: Random, place: RulePlace, makers: readonly [MatchMaker, ...MatchMaker[]]): string {
  for (let tries = 0; tries < 20; tries++) {
    const match = random.pick(makers)(random, place)
    if (match !== undefined) return match
  }
  return ''
}

function portMatch(random: Random, protocol: RulePlace['protocol']): string | undefined {
  if (!hasPorts(protocol)) return undefined
  if (protocol === 'tcp' && random.chance(0.15)) {
    return `-m tcp ${random.pick(['--syn', '! --syn', '--tcp-flags FIN,SYN,RST,ACK SYN', '--tcp-flags ALL NONE', '! --tcp-flags SYN,RST SYN'])}`
  }
  const side = random.chance(0.8) ? '--dport' : '--sport'
  const value = side === '--dport' ? randomPortRange(random) : random.pick(['10000:10020', '10005', '1:1023'])
  return `-m ${protocol} ${not(random)}${side} ${value}`
}

function multiportMatch(random: Random): string {
  const ports = Array.from({ length: random.between(1, 4) }, () => randomPortRange(random)).join()
  return `-m multiport ${not(random)}--${random.pick(['dports', 'dports', 'ports', 'sports'])} ${ports}`
}

function addrtypeMatch(random: Random, place: RulePlace): string {
  const type = random.pick(['LOCAL', 'LOCAL', 'UNICAST', 'MULTICAST', 'UNICAST,LOCAL', 'LOCAL,MULTICAST'])
  const limits = [
    ...(isOnlyAt(place, 'PREROUTING', 'INPUT', 'FORWARD') ? [' --limit-iface-in'] : []),
    ...(isOnlyAt(place, 'OUTPUT', 'POSTROUTING', 'FORWARD') ? [' --limit-iface-out'] : []),
  ]
  const limit = random.chance(0.1) ? (random.pickFrom(limits) ?? '') : ''
  return `-m addrtype ${not(random)}--${random.pick(['src', 'dst', 'dst'])}-type ${type}${limit}`
}

function conntrackMatch(random: Random, { family, protocol }: RulePlace): string {
  const port = random.chance(0.5) ? String(randomPort(random)) : '1:40000'
  const portOption = hasPorts(protocol)
    ? [
        `--ctorigdstport ${port}`,
        `--ctorigsrcport 10000:10010`,
        `--ctreplsrcport ${port}`,
        `--ctrepldstport 10000:10010`,
      ]
    : []
  const option = random.pick([
    ...[
      'NEW',
      'ESTABLISHED',
      'RELATED,ESTABLISHED',
      'DNAT',
      'SNAT',
      'INVALID',
      'RELATED,ESTABLISHED,DNAT',
      'UNTRACKED',
    ].map((states) => `--ctstate ${states}`),
    ...['NONE', 'EXPECTED', 'SEEN_REPLY', 'ASSURED', 'CONFIRMED'].map((status) => `--ctstatus ${status}`),
    `--ctorigsrc ${randomRange(random, family).replace(/\/\d+\.\d.*$/, '')}`,
    `--ctorigdst ${randomHost(random, family)}/${places[family].hostBits - random.pick([0, 8])}`,
    `--ctreplsrc ${randomHost(random, family)}`,
    `--ctrepldst ${randomHost(random, family)}`,
    `--ctproto ${random.pick(['6', '17', 'tcp'])}`,
    ...portOption,
  ] as [string, ...string[]])
  return `-m conntrack ${not(random)}${option}${random.chance(0.1) ? ' --ctdir ORIGINAL' : ''}`
}

/** A rule that a packet may meet twice on its way would have two answers, so only the kernel's chains have one. */
function limitMatch(random: Random, place: RulePlace): string | undefined {
  if (!place.isBuiltin) return undefined
  if (random.chance(0.5))
    return `-m limit --limit ${random.pick(['1/hour --limit-burst 2', '1000/sec --limit-burst 500'])}`
  const name = `h${random.below(1_000_000)}`
  return `-m hashlimit --hashlimit-${random.pick(['upto', 'above'])} 1/hour --hashlimit-burst 2 --hashlimit-mode srcip --hashlimit-name ${name}`
}

function icmpMatch(random: Random, family: RulePlace['family']): string {
  return family === 'ipv4'
    ? `-m icmp ${not(random)}--icmp-type ${random.pick(['8', '0', '3/4', 'any', 'echo-request', '11'])}`
    : `-m icmp6 ${not(random)}--icmpv6-type ${random.pick(['128', '129', '1/4', 'echo-request', '3'])}`
}

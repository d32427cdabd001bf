/** Random targets of hand-written rules, as `iptables-restore` takes them. */
import { places } from './node-layout'
import type { Random } from './random'
import { randomMark, randomPort } from './random-addresses'
import { isOnlyAt, type RulePlace } from './rule-place'

type TargetMaker = (random: Random, place: RulePlace) => string | undefined

const plainTargets: readonly [TargetMaker, ...TargetMaker[]] = [
  () => '-j ACCEPT',
  () => '-j RETURN',
  () => '-j RETURN',
  () => '',
  (random) => `-j MARK --${random.pick(['set-xmark', 'set-mark'])} ${randomMark(random)}`,
  (random) => `-j MARK --${random.pick(['or-mark', 'and-mark', 'xor-mark'])} ${randomMark(random).split('/')[0]}`,
  (random) => `-j CONNMARK --${random.pick(['set-xmark', 'set-mark'])} ${randomMark(random)}`,
  (random) => `-j CONNMARK --${random.pick(['or-mark', 'and-mark', 'xor-mark'])} ${randomMark(random).split('/')[0]}`,
  (random) => `-j CONNMARK --${random.pick(['save-mark', 'restore-mark'])}${randomMasks(random)}`,
  (random) => `-j CONNMARK --${random.pick(['save-mark', 'restore-mark'])}${randomMasks(random)}`,
  (random) => `-j ${random.pick(['NFLOG --nflog-group 9', 'LOG --log-prefix "seen "'])}`,
]

const tableTargets: Readonly<Record<string, readonly [TargetMaker, ...TargetMaker[]]>> = {
  raw: [() => '-j CT --notrack', () => '-j NOTRACK'],
  mangle: [
    (random) => `-j DSCP --set-dscp ${random.pick(['0x2e', '0x00'])}`,
    (_, { protocol }) => (protocol === 'udp' ? '-j CHECKSUM --checksum-fill' : undefined),
    (_, place) =>
      place.protocol === 'tcp' && isOnlyAt(place, 'FORWARD', 'OUTPUT', 'POSTROUTING')
        ? '-m tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu'
        : undefined,
    (_, place) => (isOnlyAt(place, 'FORWARD', 'OUTPUT', 'POSTROUTING') ? '-j CLASSIFY --set-class 1:1' : undefined),
    (random) => (random.chance(0.3) ? '-j DROP' : undefined),
    (_, place) =>
      isOnlyAt(place, 'PREROUTING') && (place.protocol === 'tcp' || place.protocol === 'udp')
        ? '-j TPROXY --on-port 15006 --tproxy-mark 0x1/0xff'
        : undefined,
  ],
  nat: [randomNat, randomNat, randomNat],
  filter: [() => '-j DROP', () => '-j ACCEPT', randomReject],
  security: [() => '-j DROP', () => '-j ACCEPT'],
}

export function randomTarget(random: Random, place: RulePlace): string {
  for (let tries = 0; tries < 20; tries++) {
    const own = tableTargets[place.table]
    const maker = own !== undefined && random.chance(0.35) ? random.pick(own) : random.pick(plainTargets)
    const target = maker(random, place)
    if (target !== undefined) return target
  }
  return '-j ACCEPT'
}

function randomMasks(random: Random): string {
  return random.chance(0.5) ? '' : ` --nfmask ${random.pick(['0xff', '0x3'])} --ctmask ${random.pick(['0xff', '0x1'])}`
}

function randomReject(random: Random, { family, protocol }: RulePlace): string {
  const kinds = family === 'ipv4' ? ipv4Rejects : ipv6Rejects
  if (protocol === 'tcp' && random.chance(0.3)) return '-j REJECT --reject-with tcp-reset'
  return random.chance(0.2) ? '-j REJECT' : `-j REJECT --reject-with ${random.pick(kinds)}`
}

const ipv4Rejects: readonly [string, ...string[]] = [
  'icmp-net-unreachable',
  'icmp-host-unreachable',
  'icmp-port-unreachable',
  'icmp-proto-unreachable',
  'icmp-net-prohibited',
  'icmp-host-prohibited',
  'icmp-admin-prohibited',
]
const ipv6Rejects: readonly [string, ...string[]] = [
  'icmp6-no-route',
  'icmp6-adm-prohibited',
  'icmp6-addr-unreachable',
  'icmp6-port-unreachable',
]

function randomNat(random: Random, place: RulePlace): string | undefined {
  const hasPort = place.protocol === 'tcp' || place.protocol === 'udp'
  if (isOnlyAt(place, 'PREROUTING', 'OUTPUT')) return randomDestinationNat(random, place, hasPort)
  const { neighbourIp, hostBits, nodeIps } = places[place.family]
  const span = `${neighbourIp(40)}-${neighbourIp(42)}`
  if (random.chance(0.15)) return `-j NETMAP --to ${neighbourIp(96)}/${hostBits - 4}`
  if (isOnlyAt(place, 'POSTROUTING') && random.chance(0.5)) {
    return `-j MASQUERADE${hasPort && random.chance(0.3) ? ' --to-ports 40000-50000' : ''}${random.pick(['', ' --random', ' --random-fully'])}`
  }
  const to = random.pick([nodeIps[0], neighbourIp(40), span])
  return `-j SNAT --to-source ${hasPort && random.chance(0.3) ? withPort(to, '40000-50000') : to}${random.pick(['', ' --persistent'])}`
}

function randomDestinationNat(random: Random, { family }: RulePlace, hasPort: boolean): string {
  const { localPodIp, remotePodIp, nodeIps, hostBits } = places[family]
  if (random.chance(0.15)) return `-j NETMAP --to ${localPodIp(0)}/${hostBits - 4}`
  if (random.chance(0.2)) return `-j REDIRECT${hasPort ? ` --to-ports ${random.pick(['8080', '8080-8090'])}` : ''}`
  const to = random.pick([
    localPodIp(9),
    remotePodIp(9),
    localPodIp(130),
    nodeIps[0],
    `${localPodIp(9)}-${localPodIp(12)}`,
  ])
  if (!hasPort) return `-j DNAT --to-destination ${to}`
  const port = random.pick([String(randomPort(random)), '8000-8010', ''])
  if (port !== '' && family === 'ipv4' && random.chance(0.15)) return `-j DNAT --to-destination :${port}`
  return `-j DNAT --to-destination ${port === '' ? to : withPort(to, port)}${random.pick(['', ' --persistent', ' --random'])}`
}

function withPort(to: string, port: string): string {
  return to.includes(':') ? `[${to}]:${port}` : `${to}:${port}`
}

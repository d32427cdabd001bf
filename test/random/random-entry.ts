/** Random entries from a small world of addresses and ports, so that packets of the same world meet them. */
import type { Ip } from '#base/ip'
import type { PortRange } from '#base/port-range'
import { bitsOf, type Prefix, prefixOf } from '#base/prefix'
import { type Action, type Entry, type PathClass, pathClasses } from '#compile/traffic-policy/entry'
import type { Random } from './random'

export function randomEntry(random: Random, { rule }: { readonly rule: number }): Entry {
  const family = random.chance(0.3) ? undefined : random.pick<Ip['family']>(['ipv4', 'ipv6'])
  const addressed = family ?? random.pick<Ip['family']>(['ipv4', 'ipv6'])
  const protocol = random.chance(0.3) ? undefined : random.pickFrom(protocolsOf(family))
  const takesPorts = protocol === 'tcp' || protocol === 'udp' || protocol === 'sctp'
  const takesIcmp = protocol === 'icmp' || protocol === 'icmpv6'
  return {
    ...(family === undefined ? {} : { family }),
    ...(protocol === undefined ? {} : { protocol }),
    ...(random.chance(0.4) ? { source: randomPrefix(random, addressed) } : {}),
    ...(random.chance(0.4) ? { destination: randomPrefix(random, addressed) } : {}),
    ...(takesPorts && random.chance(0.3) ? { sourcePorts: randomRange(random) } : {}),
    ...(takesPorts && random.chance(0.6) ? { destinationPorts: randomRange(random) } : {}),
    ...(takesIcmp && random.chance(0.7) ? randomIcmp(random) : {}),
    ...(random.chance(0.15) ? { paths: randomPaths(random) } : {}),
    action: random.pick<Action>(['allow', 'deny']),
    rule,
  }
}

/** Of ports at both ends and little else: what a later fragment, which has none, may be stopped by. */
export function randomPortEntry(random: Random, { rule }: { readonly rule: number }): Entry {
  return {
    ...(random.chance(0.5) ? { protocol: random.pick<NonNullable<Entry['protocol']>>(['tcp', 'udp', 'sctp']) } : {}),
    ...(random.chance(0.7) ? { sourcePorts: randomRange(random) } : {}),
    destinationPorts: randomRange(random),
    action: random.pick<Action>(['allow', 'deny']),
    rule,
  }
}

export function randomIp(random: Random, family: Ip['family']): Ip {
  const last = random.pick([1, 2, 3, 5, 64, 128, 255])
  const middle = random.pick([0, 1])
  if (family === 'ipv4') return { family, words: [0x0a000000 + (middle << 16) + last] }
  return { family, words: [0xfd000000 + middle, random.pick([0, 1]), 0, last] }
}

function randomPrefix(random: Random, family: Ip['family']): Prefix {
  const lengths = family === 'ipv4' ? [0, 8, 16, 24, 30, 31] : [0, 16, 33, 64, 96, 126]
  return prefixOf(randomIp(random, family), random.pickFrom([...lengths, bitsOf(family)]) ?? 0)
}

function randomRange(random: Random): PortRange {
  const from = randomPort(random)
  return random.chance(0.5) ? { from, to: from } : { from, to: random.between(from, 65535) }
}

export function randomPort(random: Random): number {
  return random.pick([1, 53, 80, 443, 1024, 8080, 65535, random.between(1, 65535)])
}

function randomIcmp(random: Random): { readonly icmpType: number; readonly icmpCode?: number } {
  const icmpType = random.pick([0, 3, 8, 11, 128, 129, 1, 2, 255])
  return random.chance(0.5) ? { icmpType } : { icmpType, icmpCode: random.pick([0, 1, 4]) }
}

function randomPaths(random: Random): readonly PathClass[] {
  return pathClasses.filter((path) => path !== 'unclassified' && random.chance(0.4))
}

function protocolsOf(family: Ip['family'] | undefined): readonly NonNullable<Entry['protocol']>[] {
  if (family === 'ipv4') return ['tcp', 'udp', 'sctp', 'icmp']
  if (family === 'ipv6') return ['tcp', 'udp', 'sctp', 'icmpv6']
  return ['tcp', 'udp', 'sctp', 'icmp', 'icmpv6']
}

/** Random packets for rulesets that are about nothing in particular. */
import type { Family } from '#base/ip'
import { echoRequestType, fromLocal, type SentPacket } from '../kernel/sent-packet'
import { linkOf, places } from './node-layout'
import type { Random } from './random'
import { randomHost, randomPort } from './random-addresses'

/** `number` makes packets differ in their source port or ICMP id. */
export function randomTraffic(random: Random, family: Family, number: number): SentPacket {
  const place = places[family]
  const isLocal = random.chance(0.25)
  const source = isLocal
    ? (random.pickFrom(place.nodeIps) ?? place.loopback)
    : random.pick([
        place.localPodIp(9),
        place.localPodIp(30),
        place.localPodIp(130),
        place.remotePodIp(9),
        place.outsideIp(5),
        place.outsideIp(200),
        place.neighbourIp(70),
      ])
  const link = random.chance(0.9) ? linkOf(family, source) : random.pick(['eth0', 'cni0', 'vethpod1'])
  const protocol = random.pick(['tcp', 'tcp', 'udp', 'udp', isLocal ? 'tcp' : 'sctp', 'icmp'] as const)
  const strange = isLocal || random.chance(0.95) ? {} : strangeEnds(random, family)
  const ends = {
    from: isLocal ? fromLocal : link,
    source,
    protocol,
    destination: randomHost(random, family),
    ...strange,
  }
  const isOdd = !isLocal && random.chance(0.1)
  if (protocol !== 'icmp') {
    const flags = isOdd && protocol === 'tcp' ? { flags: ['SYN', 'FIN'] as const } : {}
    return { ...ends, ...flags, sourcePort: 10_000 + number, destinationPort: randomPort(random) }
  }
  const echo = echoRequestType(ends)
  const answer = echo === 8 ? 0 : 129
  return { ...ends, icmp: { type: isOdd ? answer : echo, code: 0, id: 100 + number } }
}

/** Off the wire: from an address of the node itself, or to the loopback. IPv6 drops the latter before any hook. */
function strangeEnds(random: Random, family: Family): Partial<Pick<SentPacket, 'source' | 'destination'>> {
  const { nodeIps, loopback } = places[family]
  return family === 'ipv4' && random.chance(0.5) ? { destination: loopback } : { source: random.pick(nodeIps) }
}

/** Random packets aimed at what a cluster's rules are about, and what a trace is told of such a packet. */
import { type Family, parseIp } from '#base/ip'
import type { ServicePlan, ServicePortPlan } from '#compile/services/service-plan'
import type { ConnectionState, Packet } from '#model/packet'
import type { RulesetTraceInput } from '#trace/trace-ruleset'
import { echoRequestType, fromLocal, type SentPacket } from '../kernel/sent-packet'
import { linkOf, places } from './node-layout'
import type { Random } from './random'

type Destination = Pick<SentPacket, 'protocol' | 'destination' | 'destinationPort'>
type Origin = Pick<SentPacket, 'from' | 'source'>

/** `number` makes packets differ in their source port or ICMP id. */
export function randomPacket(random: Random, plan: ServicePlan, number: number): SentPacket {
  const port = random.pickFrom(plan.ports)
  const to = port === undefined ? plainDestination(random, plan.family) : randomDestination(random, plan, port)
  const from = randomOrigin(random, plan, { to, port })
  const isSctpFromLocal = from.from === fromLocal && to.protocol === 'sctp'
  const protocol = isSctpFromLocal ? 'tcp' : to.protocol
  if (protocol !== 'icmp') return { ...from, ...to, protocol, sourcePort: 10_000 + number }
  const echo = { ...from, protocol, destination: to.destination }
  return { ...echo, icmp: { type: echoRequestType(echo), code: 0, id: 100 + number } }
}

/** What Portolan is told of a packet: all that can be known before the rules see it. */
export function traceInputOf(
  sent: SentPacket,
  node: Pick<RulesetTraceInput, 'rulesets' | 'nodeIps' | 'sets'>,
  state = stateOf(sent),
): RulesetTraceInput {
  return { ...node, packet: { ...packetOf(sent), state }, isLocalSource: sent.from === fromLocal }
}

/** What connection tracking makes of a packet by itself: an answer to nothing, or flags that no connection has. */
function stateOf({ flags, icmp }: SentPacket): ConnectionState {
  const isNonsense = flags?.includes('SYN') === true && flags.includes('FIN')
  return isNonsense || icmp?.type === 0 || icmp?.type === 129 ? 'INVALID' : 'NEW'
}

function packetOf(sent: SentPacket): Packet {
  const destination = parseIp(sent.destination)
  const source = parseIp(sent.source)
  if (destination === undefined || source === undefined) throw new Error(`not addresses: ${JSON.stringify(sent)}`)
  const { protocol, sourcePort, destinationPort, icmp } = sent
  const way = sent.from === fromLocal ? {} : { inInterface: sent.from }
  if (protocol !== 'icmp') {
    return {
      ...{ destination, source, protocol, ...way },
      ...(sourcePort !== undefined && { sourcePort }),
      ...(destinationPort !== undefined && { destinationPort }),
    }
  }
  const { type, code } = icmp ?? { type: echoRequestType(sent), code: 0 }
  const name = destination.family === 'ipv6' ? 'icmpv6' : 'icmp'
  return { destination, source, protocol: name, icmp: { type, code }, ...way }
}

function plainDestination(random: Random, family: Family): Destination {
  const place = places[family]
  const destination = random.pick([
    place.serviceIp(4000),
    place.vip(200),
    place.outsideIp(5),
    place.localPodIp(9),
    place.remotePodIp(9),
    place.nodeIps[0],
  ])
  return { protocol: random.pick(['tcp', 'udp', 'icmp']), destination, destinationPort: random.pick([22, 80, 443]) }
}

function randomDestination(random: Random, plan: ServicePlan, port: ServicePortPlan): Destination {
  const { protocol } = port
  const place = places[plan.family]
  const to = (destination: string, destinationPort: number): Destination => ({ protocol, destination, destinationPort })
  const outer = [...port.externalIPs, ...port.loadBalancerVIPs]
  const node = random.pick([...place.nodeIps, place.loopback])
  const endpoint = random.pickFrom(port.endpoints)
  const choice = random.below(20)
  if (choice < 5) return to(port.clusterIP, port.port)
  if (choice < 9) return to(random.pickFrom(outer) ?? port.clusterIP, port.port)
  if (choice < 14) return to(node, port.nodePort || port.port)
  if (choice === 14) return to(random.pickFrom(outer) ?? port.clusterIP, port.nodePort || 81)
  if (choice === 15)
    return { ...to(port.clusterIP, port.port + random.below(3)), protocol: random.pick(['tcp', 'udp']) }
  if (choice === 16 && endpoint !== undefined) return to(endpoint.ip, endpoint.port)
  if (choice === 17) return to(random.pick([node, place.otherNodeIp]), port.healthCheckNodePort || port.nodePort || 22)
  if (choice === 18) return { protocol: 'icmp', destination: random.pickFrom([port.clusterIP, ...outer]) ?? node }
  return plainDestination(random, plan.family)
}

type Aim = { readonly to: Destination; readonly port: ServicePortPlan | undefined }

function randomOrigin(random: Random, { family }: ServicePlan, { to, port }: Aim): Origin {
  const place = places[family]
  const isLoopback = to.destination === place.loopback
  if (isLoopback || random.chance(0.25)) {
    const own = isLoopback ? [place.loopback, place.loopback, ...place.nodeIps] : place.nodeIps
    return { from: fromLocal, source: random.pickFrom(own) ?? place.loopback }
  }
  const chosen = random.pickFrom(port?.endpoints ?? [])?.ip
  const sources = [
    place.outsideIp(5),
    place.outsideIp(200),
    place.neighbourIp(70),
    place.neighbourIp(200),
    place.otherNodeIp,
    place.localPodIp(9),
    place.localPodIp(30),
    place.localPodIp(130),
    place.localPodIp(200),
    place.remotePodIp(9),
    place.remotePodIp(30),
  ]
  // The endpoint itself, and a load balancer that sends from its own address.
  const isOwn = (ip: string): boolean => place.nodeIps.includes(ip)
  for (const special of [chosen, port?.loadBalancerVIPs[0]]) {
    if (special !== undefined && !isOwn(special) && random.chance(0.15)) return originOf(family, special)
  }
  return originOf(family, random.pickFrom(sources) ?? place.outsideIp(5))
}

function originOf(family: Family, source: string): Origin {
  return { from: linkOf(family, source), source }
}

/** Addresses, ports and interfaces that random rules ask for and random packets have: few enough that they often meet. */
import type { Family } from '#base/ip'
import { bridgeLink, outsideLink, places, podLink } from './node-layout'
import type { Random } from './random'

export const portNumbers: readonly [number, ...number[]] = [22, 53, 80, 443, 8080, 8443, 30_000, 30_500]

/** Names of links, patterns that hold some of them, and names of none. */
const interfacePatterns: readonly [string, ...string[]] = [
  outsideLink,
  bridgeLink,
  podLink,
  'lo',
  'veth+',
  'eth+',
  'e+',
  'eth1',
  'vethpod',
]

export function randomInterface(random: Random): string {
  return random.pick(interfacePatterns)
}

/** Addresses that packets go to. */
export function someHosts(family: Family): readonly [string, ...string[]] {
  const place = places[family]
  return [
    place.localPodIp(9),
    place.localPodIp(130),
    place.remotePodIp(9),
    place.serviceIp(10),
    place.vip(20),
    place.outsideIp(5),
    place.neighbourIp(70),
    ...place.nodeIps,
  ]
}

export function randomHost(random: Random, family: Family): string {
  return random.pick(someHosts(family))
}

/** As a rule writes it: a host, a range, or a mask with holes. */
export function randomRange(random: Random, family: Family): string {
  const place = places[family]
  const host = randomHost(random, family)
  const wide = place.hostBits - random.between(1, 16)
  return random.pick([
    host,
    `${host}/${place.hostBits}`,
    `${host}/${wide}`,
    `${host}/${wide}`,
    place.clusterCidr,
    place.nodeCidr,
    family === 'ipv4' ? '127.0.0.0/8' : '::1/128',
    family === 'ipv4' ? '10.244.0.9/255.255.0.255' : 'fd00:10:244::9/ffff:ffff:ffff:0:ffff:ffff:ffff:ffff',
  ])
}

/** Two hosts of one subnet, in order; packets have the addresses at the ends, too. */
export function randomSpan(random: Random, family: Family): string {
  const place = places[family]
  const make = random.pick([place.localPodIp, place.remotePodIp, place.outsideIp, place.neighbourIp])
  const [a, b] = [random.pick(hosts), random.pick(hosts)]
  return `${make(Math.min(a, b))}-${make(Math.max(a, b))}`
}

const hosts: readonly [number, ...number[]] = [1, 5, 9, 10, 30, 70, 130, 131, 200, 254]

export function randomPort(random: Random): number {
  return random.pick(portNumbers)
}

export function randomPortRange(random: Random): string {
  const [a, b] = [randomPort(random), randomPort(random)]
  return a === b || random.chance(0.6) ? String(a) : `${Math.min(a, b)}:${Math.max(a, b)}`
}

export function randomMark(random: Random): string {
  const value = random.pick([0x1, 0x2, 0x3, 0x10, 0x4000])
  const mask = random.pick([0x1, 0x3, 0xff, 0x4000, 0xffffffff])
  return random.chance(0.3) ? `0x${value.toString(16)}` : `0x${value.toString(16)}/0x${mask.toString(16)}`
}

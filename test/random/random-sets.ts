/** Random members for a fixed list of sets, as `ipset restore` takes them. */
import type { Family } from '#base/ip'
import { bridgeLink, outsideLink, places, podLink } from './node-layout'
import type { Random } from './random'
import { randomHost, randomPort } from './random-addresses'

type SetKind = {
  readonly type: string
  readonly dimensions: number
  readonly member: (random: Random, family: Family) => string
  /** A set of ports has no family. */
  readonly options?: string
}

const protocolPort = (random: Random): string =>
  random.chance(0.7) ? `${random.pick(['tcp', 'udp', 'sctp'])}:${randomPort(random)}` : String(randomPort(random))

/** A few hosts' networks, some as exceptions from wider ones. */
function randomNet(random: Random, family: Family): string {
  const bits = places[family].hostBits - random.pick([0, 1, 4, 8])
  return `${randomHost(random, family)}/${bits}`
}

const kinds = {
  ip: { type: 'hash:ip', dimensions: 1, member: randomHost },
  net: {
    type: 'hash:net',
    dimensions: 1,
    member: (random, family) => `${randomNet(random, family)}${random.chance(0.3) ? ' nomatch' : ''}`,
  },
  'ip-port': {
    type: 'hash:ip,port',
    dimensions: 2,
    member: (random, family) => `${randomHost(random, family)},${protocolPort(random)}`,
  },
  'net-port': {
    type: 'hash:net,port',
    dimensions: 2,
    member: (random, family) => `${randomNet(random, family)},${protocolPort(random)}`,
  },
  'ip-port-ip': {
    type: 'hash:ip,port,ip',
    dimensions: 3,
    member: (random, family) => `${randomHost(random, family)},${protocolPort(random)},${randomHost(random, family)}`,
  },
  'net-iface': {
    type: 'hash:net,iface',
    dimensions: 2,
    member: (random, family) => `${randomNet(random, family)},${random.pick([outsideLink, bridgeLink, podLink])}`,
  },
  port: {
    type: 'bitmap:port',
    dimensions: 1,
    member: (random) => String(randomPort(random)),
    options: 'range 1-40000',
  },
} as const satisfies Readonly<Record<string, SetKind>>

type KindName = keyof typeof kinds

const kindNames = Object.keys(kinds) as [KindName, ...KindName[]]

function nameOf(family: Family, kind: KindName | 'list'): string {
  return `${family}-${kind}`
}

/** Empties the sets first: their names and types are the same in every case. */
export function randomSets(random: Random, family: Family): string {
  const lines = kindNames.flatMap((name) => {
    const kind: SetKind = kinds[name]
    const set = nameOf(family, name)
    const options = kind.options ?? `family ${family === 'ipv4' ? 'inet' : 'inet6'}`
    const members = new Map<string, string>()
    for (let count = random.below(6); count > 0; count--) {
      const member = kind.member(random, family)
      members.set(member.replace(' nomatch', ''), member)
    }
    return [
      `create ${set} ${kind.type} ${options} -exist`,
      `flush ${set}`,
      ...[...members.values()].map((one) => `add ${set} ${one} -exist`),
    ]
  })
  const list = nameOf(family, 'list')
  const listed = random.some(['ip', 'net'] as const, 2).map((name) => `add ${list} ${nameOf(family, name)} -exist`)
  return [...lines, `create ${list} list:set -exist`, `flush ${list}`, ...listed, ''].join('\n')
}

export function randomSetMatch(random: Random, family: Family, mayAskOut: boolean): string {
  const sides = (count: number): string => Array.from({ length: count }, () => random.pick(['src', 'dst'])).join()
  if (random.chance(0.15)) return `${nameOf(family, 'list')} ${sides(1)}`
  const name = random.pick(kindNames)
  // The interface's side is that of the packet's way: in for src, out for dst.
  if (name === 'net-iface')
    return `${nameOf(family, name)} ${sides(1)},${mayAskOut && random.chance(0.5) ? 'dst' : 'src'}`
  return `${nameOf(family, name)} ${sides(kinds[name].dimensions)}`
}

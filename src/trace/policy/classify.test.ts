/** Parties fall into as many classes as policies can tell apart, however many they are, and addresses into pieces. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ipFromBigint, parseIp, printIp } from '#base/ip'
import { containsIp, type Prefix, prefixOf } from '#base/prefix'
import { askPolicies } from '../../../test/policy/ask-policies'
import { namespace, networkPolicy, node, pod, type Raw } from '../../../test/policy/policy-objects'
import { cutAddresses, findAtom } from './address-atoms'
import { classOf, partyOfIp } from './world'

const seed = Number(process.env.PORTOLAN_SEED ?? 20261201)

function manyPods(count: number): readonly Raw[] {
  return Array.from({ length: count }, (_, at) => pod(`x/p${at}`, { app: `a${at % 5}` }))
}

function classCount(...objects: readonly Raw[]): number {
  const { world, cluster } = askPolicies([namespace('x'), ...objects])
  for (const one of cluster.pods.values()) classOf(world, { kind: 'pod', pod: one })
  return world.classes.length
}

describe('classes', () => {
  test('their number is that of the distinct label sets, not of the pods', () => {
    expect(classCount(...manyPods(50))).toBe(5)
    expect(classCount(...manyPods(2000))).toBe(5)
  })

  test('a range of addresses tells pods apart, and so do named ports, the namespace and its labels', () => {
    const from = [{ ipBlock: { cidr: '10.244.200.0/24' } }]
    const policy = networkPolicy('x/p', { podSelector: {}, ingress: [{ from }] })
    const inside = pod('x/in', { app: 'a0' }, { ip: '10.244.200.7' })
    expect(classCount(policy, inside, pod('x/out', { app: 'a0' }, { ip: '10.244.201.7' }))).toBe(2)
    expect(classCount(inside, pod('x/out', { app: 'a0' }, { ip: '10.244.201.7' }))).toBe(1)
    const ports = [{ name: 'http', containerPort: 80 }]
    expect(classCount(pod('x/a', {}), pod('x/b', {}, { ports }))).toBe(2)
    expect(classCount(pod('x/a', {}), pod('y/a', {}))).toBe(2)
    expect(classCount(pod('x/a', { a: '1', b: '2' }), pod('x/b', { b: '2', a: '1' }))).toBe(1)
  })
})

test('an address is that of its node before that of a host-networked pod, and of a pod that has not ended', () => {
  const { world } = askPolicies([
    node('n1', '192.168.1.1'),
    pod('x/host', {}, { hostNetwork: true, ip: '192.168.1.1' }),
    pod('x/done', {}, { phase: 'Failed', ip: '10.244.0.9' }),
    pod('x/runs', {}, { ip: '10.244.0.9' }),
  ])
  const holder = (text: string): string => {
    const ip = parseIp(text)
    if (ip === undefined) throw new Error(text)
    const party = partyOfIp(world, ip)
    return party.kind === 'pod' ? party.pod.meta.name : party.kind === 'node' ? party.node.meta.name : party.kind
  }
  expect([holder('192.168.1.1'), holder('10.244.0.9'), holder('8.8.8.8')]).toEqual(['n1', 'runs', 'address'])
})

describe.each([
  ['ipv4', 32],
  ['ipv6', 128],
] as const)('pieces of %s', (family, bits) => {
  // Few bits in the middle of the space, so that ranges hold one another often.
  const address = fc.integer({ min: 0, max: 255 }).map((low) => ipFromBigint(family, BigInt(low) << BigInt(bits - 10)))
  const range = fc.tuple(address, fc.integer({ min: 0, max: 12 })).map(([ip, length]): Prefix => prefixOf(ip, length))

  test(`they cover the space, and addresses of one piece are in the same ranges (seed ${seed})`, () => {
    fc.assert(
      fc.property(
        fc.array(range, { maxLength: 12 }),
        fc.array(address, { minLength: 1, maxLength: 12 }),
        (ranges, ips) => {
          const cut = cutAddresses(ranges, family)
          expect(printIp(cut.atoms[0]?.from ?? ipFromBigint(family, 1n))).toBe(printIp(ipFromBigint(family, 0n)))
          expect(printIp(cut.atoms.at(-1)?.to ?? ipFromBigint(family, 0n))).toBe(
            printIp(ipFromBigint(family, 2n ** BigInt(bits) - 1n)),
          )
          for (const ip of ips) {
            const atom = findAtom(cut, ip)
            if (atom === undefined) throw new Error('an address lies in no piece')
            for (const one of ranges) {
              expect(containsIp(one, atom.from)).toBe(containsIp(one, ip))
              expect(containsIp(one, atom.to)).toBe(containsIp(one, ip))
            }
            const alike = ips.filter((other) => findAtom(cut, other)?.id === atom.id)
            for (const other of alike)
              for (const one of ranges) expect(containsIp(one, other)).toBe(containsIp(one, ip))
          }
        },
      ),
      { seed },
    )
  })
})

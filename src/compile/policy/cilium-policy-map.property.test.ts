/** For random entries: what the map answers is what the entries say, in every version and in any order. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type CiliumVersion, ciliumVersions } from '#model/cilium-version'
import { coversKey, noAuth, type PolicyEntry, type PolicyKey } from './cilium-policy-entry'
import { lookUpPolicy, packetKey } from './cilium-policy-lookup'
import { buildPolicyMap } from './cilium-policy-map'
import { portPrefixes, prefixRange } from './cilium-port-prefix'

const peer = 1001

type PortKey = Pick<PolicyKey, 'protocol' | 'port' | 'length'>

const protocolKeys: fc.Arbitrary<PortKey> = fc.constantFrom(
  { protocol: 0, port: 0, length: 0 },
  { protocol: 6, port: 0, length: 8 },
  { protocol: 17, port: 0, length: 8 },
)
const exactKeys: fc.Arbitrary<PortKey> = fc
  .integer({ min: 1, max: 12 })
  .map((port) => ({ protocol: 6, port, length: 24 }))
const rangeKeys: fc.Arbitrary<PortKey> = fc
  .tuple(fc.integer({ min: 20, max: 23 }), fc.integer({ min: 1, max: 12 }))
  .map(([length, port]) => ({ protocol: 6, port: (port >>> (24 - length)) << (24 - length), length }))

function entriesOf(ports: fc.Arbitrary<PortKey>): fc.Arbitrary<readonly PolicyEntry[]> {
  const entry = fc
    .record({
      port: ports,
      identity: fc.constantFrom(0, peer),
      isDeny: fc.boolean(),
      redirect: fc.option(fc.constantFrom({ parser: 'http', priority: 101 }, { parser: 'crd', priority: 126 }), {
        nil: undefined,
      }),
    })
    .map(
      ({ port, identity, isDeny, redirect }): PolicyEntry => ({
        key: { direction: 'ingress', identity, ...port },
        isDeny,
        auth: noAuth,
        priority: 0,
        origins: [],
        ...(redirect !== undefined && !isDeny && port.length > 8 && { redirect }),
      }),
    )
  return fc.array(entry, { maxLength: 10 })
}

const packets = [0, 1, 2, 5, 8, 12, 13].flatMap((port) =>
  [6, 17].map((protocol) => packetKey({ direction: 'ingress', identity: peer, protocol, port })),
)

/** Any deny denies, else any allow allows, else nothing matches. */
function readEntries(entries: readonly PolicyEntry[], packet: PolicyKey): string {
  const here = entries.filter(({ key }) => coversKey(key, packet))
  if (here.some(({ isDeny }) => isDeny)) return 'deny'
  return here.length > 0 ? 'allow' : 'nothing'
}

function readRedirect(entries: readonly PolicyEntry[], packet: PolicyKey): string | undefined {
  const redirects = entries.filter(({ key }) => coversKey(key, packet)).flatMap(({ redirect }) => redirect ?? [])
  return redirects.sort((a, b) => a.priority - b.priority)[0]?.parser
}

function look(entries: readonly PolicyEntry[], packet: PolicyKey, version: CiliumVersion): string {
  const found = lookUpPolicy(buildPolicyMap(entries, version), packet)
  if (found === undefined) return 'nothing'
  return found.chosen.isDeny ? 'deny' : 'allow'
}

describe('the map and the rules agree', () => {
  test.each(['1.17', '1.18', '1.19'] as const)('verdicts of %s, ranges included', (version) => {
    fc.assert(
      fc.property(entriesOf(fc.oneof(protocolKeys, exactKeys, rangeKeys)), (entries) => {
        for (const packet of packets) expect(look(entries, packet, version)).toBe(readEntries(entries, packet))
      }),
      { numRuns: 500, seed: 17 },
    )
  })

  test('verdicts of 1.16, where no rule has a range', () => {
    fc.assert(
      fc.property(entriesOf(fc.oneof(protocolKeys, exactKeys)), (entries) => {
        for (const packet of packets) expect(look(entries, packet, '1.16')).toBe(readEntries(entries, packet))
      }),
      { numRuns: 500, seed: 16 },
    )
  })

  test.each(['1.18', '1.19'] as const)('the proxy of %s is the strongest that any rule asks for', (version) => {
    fc.assert(
      fc.property(entriesOf(fc.oneof(protocolKeys, exactKeys, rangeKeys)), (entries) => {
        for (const packet of packets) {
          const found = lookUpPolicy(buildPolicyMap(entries, version), packet)
          if (found === undefined || found.chosen.isDeny) continue
          expect(found.chosen.redirect?.parser).toBe(readRedirect(entries, packet))
        }
      }),
      { numRuns: 500, seed: 18 },
    )
  })

  test.each(ciliumVersions)('the order of entries does not matter in %s', (version) => {
    fc.assert(
      fc.property(entriesOf(fc.oneof(protocolKeys, exactKeys, rangeKeys)), (entries) => {
        const print = (list: readonly PolicyEntry[]): readonly string[] =>
          buildPolicyMap(list, version)
            .entries.map(({ key, isDeny, redirect }) => JSON.stringify([key, isDeny, redirect]))
            .sort()
        expect(print([...entries].reverse())).toEqual(print(entries))
      }),
      { numRuns: 300, seed: 19 },
    )
  })
})

test('the blocks of a range cover exactly the range, each port once, and are the fewest', () => {
  const ports = fc.tuple(fc.integer({ min: 1, max: 65535 }), fc.integer({ min: 1, max: 65535 }))
  fc.assert(
    fc.property(ports, ([one, other]) => {
      const range = { from: Math.min(one, other), to: Math.max(one, other) }
      const blocks = portPrefixes(range).map(prefixRange)
      let next = range.from
      for (const { from, to } of blocks) {
        expect(from).toBe(next)
        next = to + 1
      }
      expect(next).toBe(range.to + 1)
      for (const [index, { from, to }] of blocks.entries()) {
        const after = blocks[index + 1]
        if (after === undefined || after.to - after.from !== to - from) continue
        // Two blocks of one size in a row are not the two halves of a larger one.
        expect((from / (to - from + 1)) % 2).toBe(1)
      }
    }),
    { numRuns: 1000, seed: 20 },
  )
})

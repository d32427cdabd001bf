/** A policy as it is written and its compiled entries decide alike, and the entries survive the bytes of a snapshot. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { arbitraryPacket, arbitrarySpec, policyOf } from '../../../test/random/arbitrary-traffic-policy'
import { seedOfRun } from '../../../test/random/random'
import { buildSnapshot, hasSameContent } from './build-snapshot'
import { compilePolicy } from './compile-policy'
import { evaluateEntries } from './evaluate-entries'
import { evaluatePolicy } from './evaluate-policy'
import { parseSnapshot } from './parse-snapshot'
import { isSameDecision } from './policy-packet'
import { printSnapshot } from './print-snapshot'

// A failure prints its seed and the smallest policy and packet that show it; PORTOLAN_SEED repeats a run.
const seed = seedOfRun()

test('27: for 10,000 random policies and packets, policy and entries agree on verdict, reason and rule', () => {
  const met = { rule: 0, no_match: 0, fragment: 0, unsupported: 0, over: 0 }
  fc.assert(
    fc.property(arbitrarySpec, fc.array(arbitraryPacket, { minLength: 1, maxLength: 3 }), (spec, packets) => {
      const compilation = compilePolicy(policyOf(spec))
      if (compilation.kind === 'refused') {
        // The only reason left in this world: too many entries.
        expect(compilation.problems[0]?.message).toMatch(/compiled entries, where 256 fit/)
        met.over++
        return
      }
      for (const packet of packets) {
        const decision = evaluatePolicy(spec, packet)
        const compiled = evaluateEntries(compilation.compiled, packet)
        if (!isSameDecision(compiled, decision)) expect(compiled).toEqual(decision)
        met[decision.reason as keyof typeof met]++
      }
    }),
    { numRuns: 10_000, seed },
  )
  // Agreement about nothing but denials would prove little.
  expect(Math.min(met.rule, met.no_match, met.fragment, met.unsupported)).toBeGreaterThan(100)
}, 120_000)

test('compiled entries read back from a snapshot as they were, and compiling twice gives the same content', () => {
  fc.assert(
    fc.property(arbitrarySpec, fc.nat({ max: 1000 }), (spec, row) => {
      const [one, other] = [compilePolicy(policyOf(spec)), compilePolicy(policyOf(structuredClone(spec)))]
      if (one.kind === 'refused' || other.kind === 'refused') return
      const place = { token: 7n, direction: 'egress', binding: 1, publication: 1 } as const
      const snapshot = buildSnapshot(one.compiled, { ...place, counterRows: spec.rules.map((_, at) => at) })
      const again = buildSnapshot(other.compiled, { ...place, counterRows: spec.rules.map((_, at) => at + row) })
      expect(parseSnapshot(printSnapshot(snapshot))).toEqual(snapshot)
      expect(hasSameContent(snapshot, again)).toBe(true)
    }),
    { numRuns: 100, seed },
  )
})

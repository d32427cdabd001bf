/** The kernel as third decider: it agrees with the policy as written and with its compiled entries. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { compilePolicy } from '#compile/traffic-policy/compile-policy'
import { evaluatePolicy } from '#compile/traffic-policy/evaluate-policy'
import { openPolicyDecider } from '#kernel/policy-decider'
import { arbitraryPacket, arbitrarySpec, policyOf } from '../random/arbitrary-traffic-policy'
import { seedOfRun } from '../random/random'
import { describeKernel } from './describe-kernel'

describeKernel('the kernel as a decider', () => {
  test('25 random policies with 100 packets each: the kernel says what the policy says', () => {
    const met = new Map<string, number>()
    fc.assert(
      fc.property(arbitrarySpec, fc.array(arbitraryPacket, { minLength: 100, maxLength: 100 }), (spec, packets) => {
        const compilation = compilePolicy(policyOf(spec))
        if (compilation.kind === 'refused') return
        const kernel = openPolicyDecider(compilation.compiled)
        try {
          for (const packet of packets) {
            const decided = kernel.decide(packet)
            if (decided === undefined) continue
            expect(decided).toEqual(evaluatePolicy(spec, packet))
            met.set(decided.reason, (met.get(decided.reason) ?? 0) + 1)
          }
        } finally {
          kernel.close()
        }
      }),
      { numRuns: 25, seed: seedOfRun() },
    )
    for (const reason of ['rule', 'no_match', 'fragment', 'unsupported']) {
      expect(met.get(reason) ?? 0, reason).toBeGreaterThan(50)
    }
  })
})

/** What lint says of rules that never decide is true of random packets. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { arbitraryPacket, arbitrarySpec, policyOf } from '../../../test/random/arbitrary-traffic-policy'
import { seedOfRun } from '../../../test/random/random'
import { compilePolicy } from './compile-policy'
import { evaluatePolicy } from './evaluate-policy'
import { lintRules } from './lint-rules'

test('a rule told as shadowed decides no whole packet', () => {
  let told = 0
  fc.assert(
    fc.property(arbitrarySpec, fc.array(arbitraryPacket, { minLength: 10, maxLength: 20 }), (spec, packets) => {
      const compilation = compilePolicy(policyOf(spec))
      if (compilation.kind === 'refused') return
      const found = lintRules(policyOf(spec), compilation.compiled)
      const shadowed = found.flatMap(({ code, path = '' }) =>
        code === 'traffic-policy.shadowed-rule' ? [Number(/\d+/.exec(path)?.[0])] : [],
      )
      told += shadowed.length
      for (const packet of packets) {
        const { rule } = evaluatePolicy(spec, packet)
        if (packet.isLaterFragment !== true && rule !== undefined) expect(shadowed).not.toContain(rule)
      }
    }),
    { numRuns: 300, seed: seedOfRun() },
  )
  expect(told).toBeGreaterThan(50)
})

/** statistic: a share of the packets, at random or every nth. */
import type { Option } from '#compile/iptables/rule'
import { known, negateIf, type Test, undecidable } from '../question'
import type { Decide } from '../view'

export function compileStatistic(options: readonly Option[]): Decide {
  const value = (flag: string): string | undefined => options.find((option) => option.flag === flag)?.values[0]
  const isNot = (flag: string): boolean => options.find((option) => option.flag === flag)?.not ?? false
  const mode = value('--mode')
  if (mode === 'random') {
    const test = negateIf(isNot('--probability'), chance(Number(value('--probability'))))
    return () => [test]
  }
  if (mode === 'nth') {
    const test = negateIf(isNot('--every'), chance(1 / Number(value('--every'))))
    return () => [test]
  }
  return () => [undecidable(`-m statistic --mode ${mode}`)]
}

/** The kernel compares a 31-bit random number: shares are multiples of 2⁻³¹. */
function chance(share: number): Test {
  if (!(share >= 0 && share <= 1)) return undecidable('-m statistic')
  const exact = Math.round(share * 2147483648) / 2147483648
  if (exact <= 0 || exact >= 1) return known(exact >= 1)
  return { kind: 'chance', share: exact }
}

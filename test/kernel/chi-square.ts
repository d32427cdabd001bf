/** How unlikely counts are when each kind has its share, as a bound that is never too small. */

/**
 * An upper bound of the chance that counts as far from their shares as these come about (Chernoff's, of the chi-square
 * distribution): the real chance is a few times less.
 */
export function chanceOf(counts: readonly number[], shares: readonly number[]): number {
  const total = counts.reduce((sum, count) => sum + count, 0)
  const distance = shares.reduce((sum, share, index) => {
    const expected = share * total
    return sum + ((counts[index] ?? 0) - expected) ** 2 / expected
  }, 0)
  const freedom = shares.length - 1
  if (distance <= freedom) return 1
  return Math.exp((freedom - distance + freedom * Math.log(distance / freedom)) / 2)
}

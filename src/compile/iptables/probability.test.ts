/** Probabilities as written and as saved: H10 to H12, and the values seen on real nodes. */
import { expect, test } from 'vitest'
import { printShare, saveProbability } from './probability'

test('H10: six endpoints', () => {
  const written = [6, 5, 4, 3, 2].map(printShare)
  expect(written).toEqual(['0.1666666667', '0.2000000000', '0.2500000000', '0.3333333333', '0.5000000000'])
})

test('H11: six endpoints saved', () => {
  const saved = [6, 5, 4, 3, 2].map((n) => saveProbability(printShare(n)))
  expect(saved).toEqual(['0.16666666651', '0.20000000019', '0.25000000000', '0.33333333349', '0.50000000000'])
})

test.each([
  [7, '0.14285714272'],
  [9, '0.11111111101'],
  [10, '0.10000000009'],
  [11, '0.09090909082'],
  [12, '0.08333333349'],
  [13, '0.07692307699'],
])('H12: 1/%i saved', (n, saved) => {
  expect(saveProbability(printShare(n))).toBe(saved)
})

test.each([
  [2048, '0.0004882812', '0.00048828125'],
  [4096, '0.0002441406', '0.00024414062'],
])('halves are rounded to even, as Go and C do: 1/%i', (n, written, saved) => {
  expect(printShare(n)).toBe(written)
  expect(saveProbability(written)).toBe(saved)
})

test('five decimals of old versions, and saving twice', () => {
  expect(saveProbability('0.33333')).toBe('0.33332999982')
  expect(saveProbability('0.33332999982')).toBe('0.33332999982')
})

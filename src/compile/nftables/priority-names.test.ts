/** Priorities as nft 1.0.6 lists them. */
import { expect, test } from 'vitest'
import { printPriority, priorityOf } from './priority-names'

test.each([
  ['ip', 'prerouting', -100, 'dstnat'],
  ['ip', 'prerouting', -110, 'dstnat - 10'],
  ['ip', 'prerouting', -111, '-111'],
  ['ip', 'output', -100, '-100'],
  ['ip6', 'postrouting', 101, 'srcnat + 1'],
  ['inet', 'input', 5, 'filter + 5'],
  ['inet', 'input', -150, 'mangle'],
  ['inet', 'forward', 50, 'security'],
  ['bridge', 'prerouting', -300, 'dstnat'],
  ['bridge', 'output', 110, 'out + 10'],
  ['bridge', 'forward', 0, '0'],
  ['netdev', 'ingress', 10, 'filter + 10'],
  ['inet', 'ingress', -150, '-150'],
] as const)('%s %s %i', (family, hook, priority, text) => {
  expect(printPriority(family, hook, priority)).toBe(text)
})

test('a name means a number where the hook has it', () => {
  expect(priorityOf('ip', 'prerouting', 'dstnat')).toBe(-100)
  expect(priorityOf('ip', 'output', 'dstnat')).toBeUndefined()
})

/** What a rule's own set of ranges becomes in the kernel (nft 1.0.6). */
import { expect, test } from 'vitest'
import type { Family } from '#base/ip'
import { rangesExpression } from './merge-ranges'
import { printExpression } from './print-expression'

function listed(ranges: readonly string[], family: Family = 'ipv4'): string {
  return printExpression(rangesExpression(ranges, family), [])
}

test.each([
  ['one stands alone', ['10.96.0.0/12'], '10.96.0.0/12'],
  ['one address stands alone', ['1.1.1.1/32'], '1.1.1.1'],
  ['N5: neighbours are joined, and stay a set', ['10.96.0.0/16', '10.97.0.0/16'], '{ 10.96.0.0/15 }'],
  [
    'neighbours that make no prefix become a range',
    ['10.0.0.0/24', '10.0.1.0/24', '10.0.2.0/24'],
    '{ 10.0.0.0-10.0.2.255 }',
  ],
  [
    'N6: others ascend',
    ['203.0.113.0/25', '198.51.100.21', '192.168.50.0/24'],
    '{ 192.168.50.0/24, 198.51.100.21, 203.0.113.0/25 }',
  ],
  ['what lies in another goes', ['10.0.0.0/8', '10.1.0.0/16', '10.2.3.4'], '{ 10.0.0.0/8 }'],
  ['a length makes neighbours of addresses', ['1.1.1.1/32', '1.1.1.2'], '{ 1.1.1.1-1.1.1.2 }'],
  ['without a length addresses stay apart', ['1.1.1.2', '1.1.1.1', '1.1.1.1'], '{ 1.1.1.1, 1.1.1.2 }'],
  ['all there is', ['0.0.0.0/1', '128.0.0.0/1'], '{ 0.0.0.0/0 }'],
] as const)('%s', (_, ranges, expected) => {
  expect(listed(ranges)).toBe(expected)
})

test.each([
  [['fd00::1/128', 'fd00::2/128', 'fd00:1::/64'], '{ fd00::1-fd00::2, fd00:1::/64 }'],
  [['fd00::/64', 'fd00:0:0:1::/64'], '{ fd00::/63 }'],
  [['::/0'], '::/0'],
])('IPv6 %j', (ranges, expected) => {
  expect(listed(ranges, 'ipv6')).toBe(expected)
})

/** Networks of path classes: what a text of them says, what is refused of it, and which network an address lies in. */
import { expect, test } from 'vitest'
import { parseIp } from '#base/ip'
import { printPrefix } from '#base/prefix'
import { findPathPrefix, mostPrefixes, printPathPrefixes, readPathPrefixes } from './path-prefixes'

const good = `
- vpc: 7
  Private: [10.0.0.0/8, "fd00::/8"]
  unclassified: [10.1.0.0/16]
  Internet: [0.0.0.0/0]
- vpc: 8
  Edge: [10.0.0.0/8]
`

function prefixesOf(text: string) {
  const reading = readPathPrefixes(text)
  if (reading.kind === 'refused') throw new Error(JSON.stringify(reading.problems))
  return reading.prefixes
}

function refusalOf(text: string): string {
  const reading = readPathPrefixes(text)
  return reading.kind === 'prefixes'
    ? 'taken'
    : reading.problems.map(({ path, message }) => `${path}: ${message}`).join('; ')
}

test('the narrowest network of the interface’s VPC gives the class; of another VPC, or in none, there is no class', () => {
  const prefixes = prefixesOf(good)
  const at = (vpc: number, text: string): string => {
    const found = findPathPrefix(prefixes, vpc, parseIp(text) ?? { family: 'ipv4', words: [0] })
    return found === undefined ? 'none' : `${found.path} by ${printPrefix(found.prefix)}`
  }
  expect([at(7, '10.2.3.4'), at(7, '10.1.2.3'), at(7, '192.0.2.1'), at(7, 'fd00::1'), at(7, '2001:db8::1')]).toEqual([
    'Private by 10.0.0.0/8',
    'unclassified by 10.1.0.0/16',
    'Internet by 0.0.0.0/0',
    'Private by fd00::/8',
    'none',
  ])
  expect([at(8, '10.2.3.4'), at(8, '192.0.2.1'), at(9, '10.2.3.4')]).toEqual(['Edge by 10.0.0.0/8', 'none', 'none'])
  expect(printPathPrefixes(prefixes.filter(({ vpc }) => vpc === 7))).toBe(
    '0.0.0.0/0 Internet, fd00::/8 Private, 10.0.0.0/8 Private, 10.1.0.0/16 unclassified',
  )
})

test('an empty list has no networks, an empty text is no list, and JSON is YAML', () => {
  expect(prefixesOf('[]')).toEqual([])
  expect([refusalOf(''), refusalOf('# nothing\n')]).toEqual([': it is empty', ': it is empty'])
  expect(prefixesOf('[{"vpc": 7, "VIP": ["192.0.2.0/24"]}]')).toHaveLength(1)
})

test.each([
  ['vpc: 7', /^: .*list/],
  ['- vpc: 0\n', /^\[0\]\.vpc: 0 .*1 to 4294967295/],
  ['- vpc: seven\n', /^\[0\]\.vpc: /],
  ['- Private: [10.0.0.0/8]\n', /^\[0\]\.vpc: .*missing/],
  ['- vpc: 7\n  private: [10.0.0.0/8]\n', /^\[0\]\.private: there is no such field/],
  ['- vpc: 7\n  Private: 10.0.0.0/8\n', /^\[0\]\.Private: /],
  ['- vpc: 7\n  Private: [10.0.0.1/8]\n', /^\[0\]\.Private\[0\]: "10\.0\.0\.1\/8" has bits set beyond its length/],
  ['- vpc: 7\n  Private: [10.0.0.0-10.0.0.255]\n', /^\[0\]\.Private\[0\]: .* is no network of ADDRESS\/LENGTH/],
  ['- vpc: 7\n  Private: ["::ffff:10.0.0.0/104"]\n', /^\[0\]\.Private\[0\]: .* is no network/],
  ['- vpc: 7\n  Private: [10.0.0.0/8]\n  Edge: [10.0.0.0/8]\n', /^Edge: 10\.0\.0\.0\/8 of VPC 7 is Private already/],
  ['- vpc: 7\n  Private: [10.0.0.0/8]\n- vpc: 7\n  Edge: [11.0.0.0/8]\n', /^\[1\]: .*twice/],
  ['- vpc: 7\n  Private: [10.0.0.0/8\n', /^line \d+: it is no YAML/],
])('%j is refused whole, with the place and the reason', (text, why) => {
  expect(refusalOf(text)).toMatch(why)
})

test('more networks than the table has rows are refused', () => {
  const many = (vpc: number, count: number): string => {
    const list = Array.from({ length: count }, (_, index) => `10.${index >> 8}.${index & 255}.0/24`)
    return `- vpc: ${vpc}\n  Private: [${list.join(', ')}]\n`
  }
  expect(prefixesOf(many(1, mostPrefixes))).toHaveLength(mostPrefixes)
  expect(refusalOf(many(1, mostPrefixes) + many(2, 1))).toMatch(/16385 networks are more than the 16384/)
})

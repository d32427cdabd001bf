/** Prefixes: reading, containment and masks. */
import { BlockList } from 'node:net'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseIp, printIp } from './ip'
import {
  containsIp,
  containsPrefix,
  lengthOfMask,
  maskWords,
  overlaps,
  parsePrefix,
  parsePrefixOrIp,
  printPrefix,
} from './prefix'

const seed = Number(process.env.PORTOLAN_SEED ?? 20261130)

function prefix(text: string): NonNullable<ReturnType<typeof parsePrefixOrIp>> {
  const parsed = parsePrefixOrIp(text)
  if (parsed === undefined) throw new Error(`bad test prefix ${text}`)
  return parsed
}

test('bits beyond the length are cleared and told', () => {
  const parsed = parsePrefix('10.0.0.5/24')
  expect(parsed && printPrefix(parsed.prefix)).toBe('10.0.0.0/24')
  expect(parsed?.hasHostBits).toBe(true)
  expect(parsePrefix('10.0.0.0/24')?.hasHostBits).toBe(false)
})

test.each(['10.0.0.0', '10.0.0.0/33', '10.0.0.0/', '10.0.0.0/08', '10.0.0/8', 'fd00::/129'])(
  '%s is no prefix',
  (text) => {
    expect(parsePrefix(text)).toBeUndefined()
  },
)

test('a bare address is its one-address prefix', () => {
  expect(printPrefix(prefix('10.0.0.1'))).toBe('10.0.0.1/32')
  expect(printPrefix(prefix('fd00::1'))).toBe('fd00::1/128')
})

test('containment of prefixes', () => {
  expect(containsPrefix(prefix('10.0.0.0/8'), prefix('10.1.0.0/16'))).toBe(true)
  expect(containsPrefix(prefix('10.1.0.0/16'), prefix('10.0.0.0/8'))).toBe(false)
  expect(overlaps(prefix('10.1.0.0/16'), prefix('10.0.0.0/8'))).toBe(true)
  expect(overlaps(prefix('10.1.0.0/16'), prefix('10.2.0.0/16'))).toBe(false)
  expect(containsPrefix(prefix('0.0.0.0/0'), prefix('::1'))).toBe(false)
})

test(`containment of addresses is node:net's (seed ${seed})`, () => {
  const word = fc.integer({ min: 0, max: 0xffffffff })
  fc.assert(
    fc.property(word, word, fc.integer({ min: 0, max: 32 }), fc.boolean(), (network, other, length, isNear) => {
      const outer = prefix(`${printIp({ family: 'ipv4', words: [network] })}/${length}`)
      const ip = { family: 'ipv4', words: [isNear ? (network ^ (other & 0xff)) >>> 0 : other] } as const
      const list = new BlockList()
      list.addSubnet(printIp(outer.ip), length, 'ipv4')
      expect(containsIp(outer, ip)).toBe(list.check(printIp(ip), 'ipv4'))
    }),
    { seed },
  )
})

test('masks of every length are read back, and a mask with holes has none', () => {
  for (let length = 0; length <= 128; length++) {
    expect(lengthOfMask({ family: 'ipv6', words: maskWords('ipv6', length) })).toBe(length)
  }
  expect(lengthOfMask(parseIp('255.0.255.0') ?? { family: 'ipv4', words: [] })).toBeUndefined()
})

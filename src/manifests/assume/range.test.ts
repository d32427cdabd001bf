import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ipToBigint, parseIp } from '#base/ip'
import { printPrefix } from '#base/prefix'
import { hashText, printHash } from '../hash-text'
import { addressIn, blockIn, knownPrefix, rangeAround, sizeOf } from './range'

test('blocks follow one another and end with the pool', () => {
  const pool = knownPrefix('10.244.0.0/14')
  expect(printPrefix(blockIn(pool, 24, 1) ?? pool)).toBe('10.244.1.0/24')
  expect(printPrefix(blockIn(pool, 24, 1023) ?? pool)).toBe('10.247.255.0/24')
  expect(blockIn(pool, 24, 1024)).toBeUndefined()
  expect(printPrefix(blockIn(knownPrefix('fd00:10:244::/48'), 64, 258) ?? pool)).toBe('fd00:10:244:102::/64')
})

test('a pool smaller than a block is the one block', () => {
  const pool = knownPrefix('192.0.2.0/26')
  expect(blockIn(pool, 24, 0)).toEqual(pool)
  expect(blockIn(pool, 24, 1)).toBeUndefined()
})

test('addresses count up from the first of their range', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 30 }), fc.ipV4(), fc.nat(), (length, ip, number) => {
      const range = rangeAround(ip, length)
      const offset = number % sizeOf(range)
      const address = parseIp(addressIn(range, offset))
      expect(address && ipToBigint(address) - ipToBigint(range.ip)).toBe(BigInt(offset))
    }),
    { seed: 5, verbose: true },
  )
})

test('hashes of names that differ by a letter lie far apart', () => {
  const places = new Set(Array.from({ length: 100 }, (_, index) => hashText(`shop/web-${index}`) % 4096))
  expect(places.size).toBeGreaterThan(95)
  expect(printHash(hashText('shop/web'), 10)).toMatch(/^[bcdfghjklmnpqrstvwxz2456789]{10}$/)
})

/** Addresses: what is one, what is refused with which reason, and how it is printed. */
import { isIP } from 'node:net'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  canonicalIp,
  compareIp,
  explainBadIp,
  ipFromBigint,
  ipToBigint,
  parseEndpoint,
  parseIp,
  printEndpoint,
  printIp,
} from './ip'

const seed = Number(process.env.PORTOLAN_SEED ?? 20261130)
const words = (count: number): fc.Arbitrary<number[]> =>
  fc.array(fc.integer({ min: 0, max: 0xffffffff }), { minLength: count, maxLength: count })

test.each([
  '10.0.0.1',
  '0.0.0.0',
  '255.255.255.255',
  '::',
  '::1',
  'fd00::1',
  '2001:db8::8:800:200c:417a',
  '1:2:3:4:5:6:7:8',
])('%s is an address', (text) => {
  const ip = parseIp(text)
  expect(ip && printIp(ip)).toBe(text)
})

test.each([
  ['010.0.0.1', 'leading zero'],
  ['10.1', 'four numbers'],
  ['10.0.0.256', 'four numbers'],
  ['::ffff:10.0.0.1', 'write 10.0.0.1'],
  ['fe80::1%eth0', 'zone'],
  ['10.0.0.0/8', 'range'],
  ['0x0a.0.0.1', 'not an IP address'],
  ['1::2::3', 'not an IP address'],
  ['web', 'not an IP address'],
])('%s is refused: %s', (text, why) => {
  expect(parseIp(text)).toBeUndefined()
  expect(explainBadIp(text)).toContain(why)
})

test.each([
  ['FD00:0:0:0:0:0:0:1', 'fd00::1'],
  ['2001:db8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
  ['0:0:0:0:0:0:0:0', '::'],
  ['1:0:2:0:3:0:4:0', '1:0:2:0:3:0:4:0'],
  ['64:ff9b::192.0.2.33', '64:ff9b::c000:221'],
])('%s is printed as %s', (text, printed) => {
  expect(canonicalIp(text)).toBe(printed)
})

test(`what is printed is read back, and node:net agrees that it is an address (seed ${seed})`, () => {
  fc.assert(
    fc.property(fc.oneof(words(1), words(4)), (parts) => {
      const ip = { family: parts.length === 1 ? 'ipv4' : 'ipv6', words: parts } as const
      const isMapped = parts.length === 4 && parts[0] === 0 && parts[1] === 0 && parts[2] === 0xffff
      fc.pre(!isMapped)
      const text = printIp(ip)
      expect(parseIp(text)).toEqual(ip)
      expect(isIP(text)).toBe(parts.length === 1 ? 4 : 6)
      expect(ipFromBigint(ip.family, ipToBigint(ip))).toEqual(ip)
    }),
    { seed },
  )
})

test(`the parser accepts nothing that node:net refuses (seed ${seed})`, () => {
  const digit = fc.constantFrom(...'0123456789abcf:.')
  fc.assert(
    fc.property(fc.array(digit, { maxLength: 24 }), (characters) => {
      const text = characters.join('')
      if (parseIp(text) !== undefined) expect(isIP(text)).not.toBe(0)
    }),
    { seed, numRuns: 5000 },
  )
})

test.each([
  ['10.0.0.1:80', '10.0.0.1', 80],
  ['10.0.0.1', '10.0.0.1', undefined],
  ['[fd00::1]:80', 'fd00::1', 80],
  ['[fd00::1]', 'fd00::1', undefined],
  ['fd00::1', 'fd00::1', undefined],
])('the place %s is %s and port %s', (text, ip, port) => {
  const parsed = parseEndpoint(text)
  expect(parsed && printIp(parsed.ip)).toBe(ip)
  expect(parsed?.port).toBe(port)
})

test.each(['10.0.0.1:', '10.0.0.1:65536', '[10.0.0.1', 'fd00::1]:80', ''])('%s is no place', (text) => {
  expect(parseEndpoint(text)).toBeUndefined()
})

test('an IPv6 place is printed with brackets', () => {
  expect(printEndpoint('fd00::1', 80)).toBe('[fd00::1]:80')
  expect(printEndpoint('10.0.0.1', 80)).toBe('10.0.0.1:80')
})

test('addresses are ordered by number, IPv4 first', () => {
  const sorted = ['fd00::1', '10.0.0.10', '10.0.0.9', '::1']
    .map((text) => parseIp(text))
    .filter((ip) => ip !== undefined)
    .sort(compareIp)
  expect(sorted.map(printIp)).toEqual(['10.0.0.9', '10.0.0.10', '::1', 'fd00::1'])
})

/** Hashes of tuples, as a program in C computes them with the kernel's jhash on a little-endian machine. */
import { expect, test } from 'vitest'
import { defaultMaglevSeed, parseMaglevSeed } from '#compile/cilium/maglev'
import { askedIp } from '../../../test/cilium/ask-path'
import { hashTuple } from './tuple-hash'

test.each([
  ['198.51.100.7', 50000, 30080, 6, 'f9527f23'],
  ['10.244.1.10', 43210, 80, 17, '6423a98a'],
  ['198.51.100.7', 0, 30080, 6, '411e63c7'],
  ['2001:db8::7', 50000, 30080, 6, 'ecdb9cb3'],
] as const)('%s:%i to port %i over %i', (source, sourcePort, port, protocol, hash) => {
  const seed = parseMaglevSeed(defaultMaglevSeed) ?? new Uint8Array(12)
  expect(hashTuple({ source: askedIp(source), sourcePort, port, protocol }, seed).toString(16)).toBe(hash)
})

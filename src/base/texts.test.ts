/** Hashes, port ranges, findings and the small texts that people read. */
import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { printFinding, printOrigin } from './finding'
import { sha256Base32, sha256Hex } from './hash'
import { invariant } from './invariant'
import { hasPort, parsePort, parsePortRange, printPortRange } from './port-range'
import { countOf, listOf, printTable } from './text'

test.each([
  ['default/kubernetes:httpstcp', 'NPX46M4PTMTKRN6Y'],
  ['kube-system/kube-dns:dnsudp', 'TCOU7JCQXEZGVUNU'],
  ['shop/webtcp', 'E3PXEPMWAWIUT6ZV'],
  ['default/nginx:tcp', '4N57TFCL4MD7ZTDA'],
  ['ns1/svc1:p80tcp10.180.0.1:80', 'SXIVWICOYRO3J4NJ'],
])('the base32 of %s begins with %s', (text, hash) => {
  expect(sha256Base32(text, 16)).toBe(hash)
})

test('hashes are those of node:crypto for any text', () => {
  for (const text of ['', 'a', 'ünï', 'x'.repeat(1000)]) {
    expect(sha256Hex(text, 16)).toBe(createHash('sha256').update(text).digest('hex').slice(0, 16).toUpperCase())
  }
})

test.each([
  ['80', 80, 80],
  ['30000:32767', 30000, 32767],
  [':1023', 0, 1023],
  ['1024:', 1024, 65535],
])('the port range %s is %s to %s', (text, from, to) => {
  expect(parsePortRange(text)).toEqual({ from, to })
})

test.each(['', ':', '80:70', '70000', 'http', '1:2:3'])('"%s" is no port range', (text) => {
  expect(parsePortRange(text)).toBeUndefined()
})

test('ports are inside a range with both its ends', () => {
  const range = { from: 80, to: 90 }
  expect([79, 80, 90, 91].map((port) => hasPort(range, port))).toEqual([false, true, true, false])
  expect(printPortRange(range)).toBe('80:90')
  expect(printPortRange({ from: 80, to: 80 })).toBe('80')
  expect(parsePort('65536')).toBeUndefined()
})

test('a finding names place, object, field, remedy and code in one line', () => {
  const line = printFinding({
    code: 'x.y',
    severity: 'error',
    message: 'it is wrong',
    hint: 'mend it',
    object: { kind: 'Service', namespace: 'shop', name: 'web' },
    path: 'spec.ports[0]',
    origin: { file: 'web.yaml', line: 3 },
  })
  expect(line).toBe('error: web.yaml:3 Service shop/web spec.ports[0]: it is wrong; mend it [x.y]')
})

test('standard input and places in a list are named', () => {
  expect(printOrigin({ file: '-', index: 'items[2]' })).toBe('standard input items[2]')
})

test('counts, lists and tables read well', () => {
  expect([countOf(1, 'rule'), countOf(2, 'rule'), countOf(2, 'address', 'addresses')]).toEqual([
    '1 rule',
    '2 rules',
    '2 addresses',
  ])
  expect(listOf(['a', 'b', 'c'])).toBe('a, b and c')
  expect(listOf(['a', 'b', 'c'], 2)).toBe('a, b and 1 more')
  expect(printTable(['A', 'LONG'], [['xx', 'y']])).toBe('A   LONG\nxx  y\n')
})

test('names that carry terminal codes are printed without them', () => {
  expect(printTable(['A'], [['\u001b[31mred']])).toBe('A\n?[31mred\n')
  const finding = { code: 'x.y', severity: 'info', message: 'm', object: { kind: 'Pod', name: 'a\u0007b' } } as const
  expect(printFinding(finding)).toBe('info: Pod a?b: m [x.y]')
})

test('a broken invariant says whose fault it is', () => {
  expect(() => {
    invariant(false, 'a chain has a name')
  }).toThrow('Portolan broke its own rule: a chain has a name')
})

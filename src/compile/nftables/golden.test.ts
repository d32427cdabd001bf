/** kube-proxy's tables of scenario G1 and of the IPv6 scenario, byte for byte. Each was listed by nft 1.0.6 from a kernel. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { g1Table } from '../../../test/golden/nftables-g1'
import { gallery } from '../../../test/golden/nftables-gallery'
import { galleryTable } from '../../../test/golden/nftables-gallery-table'
import { ipv6Table } from '../../../test/golden/nftables-ipv6'
import { printJson } from './print-json'
import { printList } from './print-list'
import { printScript } from './print-script'
import { printRule } from './print-statement'
import { rulesetOf } from './ruleset'

function golden(name: string): string {
  return readFileSync(new URL(`../../../test/golden/nftables-${name}`, import.meta.url), 'utf8')
}

test('N1: G1 as kube-proxy 1.34 has it', () => {
  expect(printList(rulesetOf([g1Table('1.34')]))).toBe(golden('g1.list.txt'))
})

test('N2: G1 in the layouts before and after', () => {
  expect(printList(rulesetOf([g1Table('1.31')]))).toBe(golden('g1-1.31.list.txt'))
  expect(printList(rulesetOf([g1Table('1.36')]))).toBe(golden('g1-1.36.list.txt'))
})

test('G1 as JSON and as a script', () => {
  expect(printJson(rulesetOf([g1Table('1.34')]))).toBe(golden('g1.json.txt'))
  expect(printScript(rulesetOf([g1Table('1.34')]))).toBe(golden('g1.script.txt'))
})

describe('N14: IPv6 with affinity, and node ports on every address', () => {
  const listed = printList(rulesetOf([ipv6Table('1.34')]))

  test('the fragments are there', () => {
    const blocks = golden('ipv6.list-parts.txt').split(/(?<=^\t\}\n)/m)
    expect(blocks).toHaveLength(5)
    for (const block of blocks) expect(listed).toContain(block)
  })

  test('the whole', () => {
    expect(listed).toBe(golden('ipv6.list.txt'))
  })
})

test('the gallery with its sets and objects, as text and as JSON', () => {
  const rulesets = gallery.map((wing) =>
    rulesetOf([
      galleryTable(
        wing,
        wing.exhibits.map(([, ...statements]) => statements),
      ),
    ]),
  )
  expect(rulesets.map((ruleset) => printList(ruleset)).join('')).toBe(golden('gallery.list.txt'))
  expect(rulesets.map(printJson).join('')).toBe(golden('gallery.json.txt'))
})

describe.each(gallery.map((wing) => [`${wing.family} ${wing.type} ${wing.hook}`, wing] as const))('%s', (_, wing) => {
  test.each(wing.exhibits.map(([text, ...statements]) => [text, statements] as const))('%s', (text, statements) => {
    expect(printRule({ statements }, { family: wing.family, indent: '\t\t', isScript: false })).toBe(text)
  })
})

/** What is printed is read as it was, whatever it is; and no text makes the parsers throw, or run on. */
import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { gallery } from '../../../test/golden/nftables-gallery'
import { galleryTable } from '../../../test/golden/nftables-gallery-table'
import { tableOfSketch } from '../../../test/random/nftables-table'
import { randomOf, seedOfRun } from '../../../test/random/random'
import { randomCluster } from '../../../test/random/random-cluster'
import { plainRuleset } from '../../../test/saves-nft/plain-ruleset'
import type { Layout } from './layout'
import { parseNftJson } from './parse-json'
import { parseNftList } from './parse-list'
import { printJson } from './print-json'
import { printList } from './print-list'
import { printScript } from './print-script'
import { type Ruleset, rulesetOf } from './ruleset'
import type { Statement } from './statement'

const layouts: readonly Layout[] = ['1.31', '1.34', '1.36']
const folder = new URL('../../../test/saves-nft/', import.meta.url)
const saves = readdirSync(folder)
  .filter((name) => /\.(nft|json\.txt)$/.test(name))
  .map((name) => ({ name, text: readFileSync(new URL(name, folder), 'utf8') }))

/** A table of one wing of the gallery whose rules hold some of its statements, in any order. */
function randomRuleset(seed: number): Ruleset {
  const random = randomOf(seed)
  const wing = random.pickFrom(gallery) ?? gallery[0]
  if (wing === undefined) return rulesetOf([])
  const rules = Array.from({ length: random.between(1, 12) }, () =>
    Array.from({ length: random.between(1, 3) }, () => {
      const [, ...statements] = random.pickFrom(wing.exhibits) ?? ['']
      return statements
    }).flat(),
  )
  return rulesetOf([galleryTable(wing, rules.filter(isReadable))])
}

/** A text that nft cannot tell apart from another is not printed either. */
function isReadable(statements: readonly Statement[]): boolean {
  return statements.every(({ kind }) => kind !== 'other') && statements.length > 0
}

test('the tables of any cluster, as list, JSON and script', () => {
  for (let at = 0; at < 18; at++) {
    const sketch = randomCluster(seedOfRun() + at, at % 2 === 0 ? 'ipv4' : 'ipv6')
    const ruleset = rulesetOf([tableOfSketch(sketch, layouts[at % 3] ?? '1.34')])
    const list = parseNftList(printList(ruleset), 'list')
    expect({ at, findings: list.findings }).toEqual({ at, findings: [] })
    expect(plainRuleset(list.ruleset)).toEqual(plainRuleset(ruleset))
    expect(printList(list.ruleset)).toBe(printList(ruleset))
    expect(plainRuleset(parseNftList(printScript(ruleset), 'script').ruleset)).toEqual(plainRuleset(ruleset))
    expect(plainRuleset(parseNftJson(printJson(ruleset), 'json').ruleset, 'json')).toEqual(
      plainRuleset(ruleset, 'json'),
    )
  }
})

test('rules of any statements, as list and JSON', () => {
  for (let at = 0; at < 60; at++) {
    const ruleset = randomRuleset(seedOfRun() + at)
    const list = parseNftList(printList(ruleset), 'list')
    expect({ at, findings: list.findings.filter(({ code }) => !code.startsWith('nft.missing')) }).toEqual({
      at,
      findings: [],
    })
    expect({ at, list: plainRuleset(list.ruleset) }).toEqual({ at, list: plainRuleset(ruleset) })
    expect(printList(list.ruleset)).toBe(printList(ruleset))
    const json = parseNftJson(printJson(ruleset), 'json')
    expect({ at, json: plainRuleset(json.ruleset, 'json') }).toEqual({ at, json: plainRuleset(ruleset, 'json') })
  }
})

const shards = [
  '{',
  '}',
  '"',
  '\\',
  '#',
  ';',
  '\n',
  ',',
  ' : ',
  '(',
  '[',
  '@',
  '$x',
  '-',
  '/*',
  'table ip t {',
  '\0',
  'é',
  '0x',
]

/** Cuts a piece out, puts one in, or moves one. */
function damage(text: string, seed: number): string {
  const random = randomOf(seed)
  let damaged = text
  for (let wounds = random.between(1, 4); wounds > 0; wounds--) {
    const at = random.below(damaged.length)
    const cut = random.chance(0.5) ? random.below(30) : 0
    const piece = random.chance(0.7) ? (random.pickFrom(shards) ?? '') : damaged.slice(at, at + random.below(40))
    damaged = damaged.slice(0, at) + piece + damaged.slice(at + cut)
  }
  return damaged
}

test('damaged text is read as far as it goes, and every rule that is kept can be met', () => {
  for (let at = 0; at < 150; at++) {
    const save = saves[at % saves.length]
    if (save === undefined) continue
    const text = damage(save.text, seedOfRun() + at)
    for (const { ruleset, findings } of [parseNftList(text, save.name), parseNftJson(text, save.name)]) {
      for (const { message } of findings) expect(message).not.toBe('')
      expect(() => plainRuleset(ruleset)).not.toThrow()
    }
  }
})

/** The gallery of statements, backwards: what nft 1.0.6 lists is read as the statements that list so. */
import { describe, expect, test } from 'vitest'
import { gallery } from '../../../test/golden/nftables-gallery'
import { galleryTable } from '../../../test/golden/nftables-gallery-table'
import { plainRuleset } from '../../../test/saves-nft/plain-ruleset'
import { parseNftJson } from './parse-json'
import { parseNftList } from './parse-list'
import { printJson } from './print-json'
import { printList } from './print-list'
import { rulesetOf } from './ruleset'

describe.each(gallery.map((wing) => [`${wing.family} ${wing.type} ${wing.hook}`, wing] as const))('%s', (_, wing) => {
  const exhibits = wing.exhibits.map(([text, ...statements]) => ({
    text,
    ruleset: rulesetOf([galleryTable(wing, [statements])]),
  }))

  test.each(exhibits)('$text', ({ text, ruleset }) => {
    const read = parseNftList(printList(ruleset), 'list')
    expect(read.findings).toEqual([])
    expect(printList(read.ruleset)).toContain(text)
    expect(plainRuleset(read.ruleset)).toEqual(plainRuleset(ruleset))
  })

  test.each(exhibits)('as JSON: $text', ({ ruleset }) => {
    const read = parseNftJson(printJson(ruleset), 'json')
    expect(read.findings).toEqual([])
    expect(plainRuleset(read.ruleset, 'json')).toEqual(plainRuleset(ruleset, 'json'))
  })
})

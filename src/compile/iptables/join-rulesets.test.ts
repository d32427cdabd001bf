/** Rulesets of several files, and sets beside rules. */
import { expect, test } from 'vitest'
import { joinRulesets } from './join-rulesets'
import { isIpsetText, parseIpset, withoutIpset } from './parse-ipset'
import { parseSave } from './parse-save'
import type { Ruleset } from './rule'

const text = '*nat\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -j ACCEPT\nCOMMIT\n'

test('the same dump twice is one ruleset, and told', () => {
  const known: Ruleset[] = []
  expect(joinRulesets(known, parseSave(text, 'a').rulesets, 'a')).toEqual([])
  expect(joinRulesets(known, parseSave(text, 'b').rulesets, 'b')).toMatchObject([
    { code: 'ruleset.table-twice', origin: { file: 'b', line: 2 } },
  ])
  expect(known).toHaveLength(1)
})

test('tables of two files are one ruleset', () => {
  const known: Ruleset[] = []
  joinRulesets(known, parseSave(text, 'a').rulesets, 'a')
  joinRulesets(known, parseSave(text.replace('*nat', '*mangle'), 'b').rulesets, 'b')
  expect(known.map((ruleset) => [...ruleset.tables.keys()])).toEqual([['nat', 'mangle']])
})

const sets = 'create A hash:ip family inet\nadd A 10.0.0.1\n'

test('rules and sets in one text are both read, at their own lines', () => {
  const both = `${text}${sets}add rule ip nat PREROUTING accept\n`
  expect(isIpsetText(both)).toBe(true)
  expect(parseIpset(both, 'x')).toMatchObject({ findings: [] })
  expect(parseIpset(both, 'x').sets.get('A')?.members).toHaveLength(1)
  expect(withoutIpset(both)).toBe(`${text}\n\nadd rule ip nat PREROUTING accept\n`)
})

test('a set that is created twice is told', () => {
  expect(parseIpset(sets + sets, 'x').findings).toMatchObject([{ code: 'ruleset.set-twice', origin: { line: 3 } }])
})

/** docs/traffic-policy.md tells every condition that the controller writes, and every reason that one may have. */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { controllerTypes } from '#enforce/condition'
import { judgedKinds } from '#model/condition-schema'
import { trafficKinds } from '#model/traffic-policy'
import { modeWords } from '#model/traffic-policy-binding-schema'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const page = readFileSync(join(root, 'docs/traffic-policy.md'), 'utf8')
const table = /\| object \| condition \|[\s\S]*?\n\n/.exec(page)?.[0] ?? ''
const told = new Set([...table.matchAll(/`(\w+)`/g)].map(([, word]) => String(word)))

const folder = join(root, 'src/enforce')
const sources = readdirSync(folder)
  .filter((name) => /^condition.*\.ts$/.test(name) && !name.endsWith('.test.ts'))
  .map((name) => readFileSync(join(folder, name), 'utf8'))
  .join('\n')

/** Reasons as they stand in the sources: in an answer, in a table, in a choice. */
const reasons = [
  ...[...sources.matchAll(/\breason(?: =|:) (?:[\w.]+ \? )?'(\w+)'/g)].map(([, reason]) => String(reason)),
  ...[...sources.matchAll(/\breason: .*? \? '(\w+)' : '(\w+)'/g)].flatMap(([, one, other]) => [
    String(one),
    String(other),
  ]),
  ...[...(/const reasons: [\s\S]*?\n}/.exec(sources)?.[0] ?? '').matchAll(/: '(\w+)'/g)].map(([, reason]) =>
    String(reason),
  ),
]

test('the page has every type of condition', () => {
  expect(controllerTypes.filter((type) => !told.has(type))).toEqual([])
})

test('columns of kubectl get that show a condition show one that the controller writes; Enforcing is always there', () => {
  const columns = trafficKinds
    .filter(({ kind }) => judgedKinds.some((one) => one === kind))
    .flatMap((one) => one.columns)
  const types = columns.flatMap(({ path }) => [...path.matchAll(/@\.type=="(\w+)"/g)].map(([, type]) => String(type)))
  expect(types.length).toBeGreaterThan(4)
  expect(types.filter((type) => !controllerTypes.includes(type))).toEqual([])
  expect(columns.find(({ name }) => name === 'Enforcing')).not.toHaveProperty('isWide')
})

test('the page has every reason', () => {
  expect(new Set(reasons).size).toBeGreaterThan(12)
  expect([...new Set(reasons)].filter((reason) => !told.has(reason) && !page.includes(`\`${reason}\``))).toEqual([])
  expect(modeWords.filter((mode) => mode !== 'Enforce' && !told.has(mode))).toEqual([])
})

test('every reason in the table is one', () => {
  const columns = [...table.matchAll(/^\|(.*?)\|(.*?)\|(.*)$/gm)].map(([, , , rest]) => String(rest)).join(' ')
  const listed = [...columns.matchAll(/`(\w+)`/g)].map(([, word]) => String(word))
  const known = new Set<string>([...reasons, ...modeWords, ...controllerTypes])
  expect(listed.filter((word) => !known.has(word))).toEqual([])
})

/** What holds for the table of any cluster: nothing leads nowhere, and nothing depends on how it is printed. */
import { expect, test } from 'vitest'
import { tableOfSketch } from '../../../test/random/nftables-table'
import { randomCluster } from '../../../test/random/random-cluster'
import type { Element, Expression, Verdict } from './expression'
import type { Layout } from './layout'
import { printJson } from './print-json'
import { printList } from './print-list'
import { rulesetOf, type Table } from './ruleset'
import type { Statement } from './statement'

const layouts: readonly Layout[] = ['1.31', '1.34', '1.36']
const tables = Array.from({ length: 120 }, (_, at) => {
  const sketch = randomCluster(20260102 + at, at % 2 === 0 ? 'ipv4' : 'ipv6')
  return tableOfSketch(sketch, layouts[at % 3] ?? '1.34')
})

function statementsOf(table: Table): readonly Statement[] {
  return [...table.chains.values()].flatMap((chain) => chain.rules.flatMap((rule) => rule.statements))
}

function elementsOf(table: Table): readonly Element[] {
  const own = [...table.sets.values()].flatMap((set) => set.elements)
  const inRules = statementsOf(table).flatMap((statement) =>
    statement.kind === 'vmap' && statement.data.kind === 'set' ? statement.data.elements : [],
  )
  return [...own, ...inRules]
}

function targetsOf(table: Table): readonly string[] {
  const verdicts: readonly (Statement | Expression | Verdict)[] = [
    ...statementsOf(table),
    ...elementsOf(table).flatMap((element) => element.data ?? []),
  ]
  return verdicts.flatMap((verdict) => (verdict.kind === 'jump' || verdict.kind === 'goto' ? [verdict.target] : []))
}

test('every jump and goto leads to a chain', () => {
  for (const table of tables) expect(targetsOf(table).filter((target) => !table.chains.has(target))).toEqual([])
})

/** These are there whether or not anything needs them. */
const alwaysThere = new Set(['mark-for-masquerade', 'reject-chain'])

test('every chain is a base chain or led to', () => {
  for (const table of tables) {
    const targets = new Set([...targetsOf(table), ...alwaysThere])
    const lost = [...table.chains.values()].filter(({ name, base }) => base === undefined && !targets.has(name))
    expect(lost.map(({ name }) => name)).toEqual([])
  }
})

test('every set that a rule names is there', () => {
  for (const table of tables) {
    const named = [...printList(rulesetOf([table])).matchAll(/(?<=^\t\t.*)@([\w./-]+)/gm)].map(([, name]) =>
      String(name),
    )
    expect(named.length).toBeGreaterThan(5)
    expect(named.filter((name) => !table.sets.has(name))).toEqual([])
  }
})

test('shares are even: each of n endpoints has one number of n', () => {
  for (const statement of tables.flatMap(statementsOf)) {
    if (statement.kind !== 'vmap' || statement.key.kind !== 'numgen' || statement.data.kind !== 'set') continue
    const keys = statement.data.elements.map(({ key }) => (key.kind === 'value' ? key.value : key.kind))
    expect(keys).toEqual(Array.from({ length: statement.key.modulus }, (_, at) => at))
  }
})

test('the JSON is JSON, and holds a rule for each rule', () => {
  for (const table of tables) {
    const parsed = JSON.parse(printJson(rulesetOf([table])))
    const rules = parsed.nftables.filter((object: object) => 'rule' in object)
    expect(rules).toHaveLength([...table.chains.values()].reduce((sum, { rules }) => sum + rules.length, 0))
  }
})

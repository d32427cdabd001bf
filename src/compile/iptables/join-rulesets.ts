/** Rulesets of several texts as those of one node: tables of one family and variant belong together. */
import type { Finding } from '#base/finding'
import { rulesetFinding } from './findings'
import type { Ruleset, Table } from './rule'

/** Adds to `known`. A table that is there already is replaced, and told. */
export function joinRulesets(known: Ruleset[], added: readonly Ruleset[], file: string): readonly Finding[] {
  const findings: Finding[] = []
  for (const ruleset of added) {
    const at = known.findIndex((one) => one.family === ruleset.family && one.variant === ruleset.variant)
    const earlier = known[at]
    if (earlier === undefined) {
      known.push(ruleset)
      continue
    }
    for (const table of ruleset.tables.values()) {
      if (earlier.tables.has(table.name)) findings.push(tableTwice(table, file))
    }
    known[at] = { ...earlier, tables: new Map([...earlier.tables, ...ruleset.tables]) }
  }
  return findings
}

function tableTwice(table: Table, file: string): Finding {
  const lines = [...table.chains.values()].flatMap((chain) =>
    chain.line === undefined || chain.line < 1 ? [] : [chain.line],
  )
  const line = lines.reduce((least, one) => Math.min(least, one), lines[0] ?? 1)
  const message = `table ${table.name} stands here again, after another file; the later one is used`
  return rulesetFinding('ruleset.table-twice', { message, file, line })
}

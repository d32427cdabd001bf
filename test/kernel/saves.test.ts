/**
 * Proves that every ruleset in test/saves is one that a kernel holds: it loads, and is saved back line for line.
 * PORTOLAN_UPDATE_SAVES=1 stores what the kernel saved instead.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { describeKernel } from './describe-kernel'
import { createNode } from './kernel-node'
import { saveRules, saveSets, tablesOfSave } from './rules'
import { loadSave, placeOfSave, readCompanion, readSave, saveNames, savesFolder } from './stored-saves'

/** A hash set lists its members in any order. */
function sorted(sets: string): string[] {
  return sets.trim().split('\n').sort()
}

describeKernel('the saves', () => {
  test.each(saveNames)('%s is what a kernel saves after loading it', (name) => {
    const save = readSave(name)
    const node = createNode()
    try {
      loadSave(node, name, placeOfSave(save))
      const options = /^\[\d+:\d+\] -A /m.test(save) ? (['--counters'] as const) : []
      const saved = saveRules(node, placeOfSave(save), options)
      const sets = readCompanion(name, 'ipset')
      if (process.env.PORTOLAN_UPDATE_SAVES === '1') {
        writeFileSync(`${savesFolder}${name}.save`, saved)
        if (sets !== undefined) writeFileSync(`${savesFolder}${name}.ipset`, saveSets(node))
        return
      }
      expect(tablesOfSave(saved)).toEqual(tablesOfSave(save))
      if (sets !== undefined) expect(sorted(saveSets(node))).toEqual(sorted(sets))
    } finally {
      node.close()
    }
  })
})

test('the page of test/saves has one row for each save', () => {
  const rows = [...readFileSync(`${savesFolder}README.md`, 'utf8').matchAll(/^\| `([^`]+)\.save`/gm)].map(
    (row) => row[1],
  )
  expect(rows.sort()).toEqual(saveNames)
})

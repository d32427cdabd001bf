/** Every test that docs/fidelity-policy.md names is there: its id begins the title of a test. */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')

function testTexts(): string {
  const names = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  return names
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => readFileSync(join(root, 'src', name), 'utf8'))
    .join('\n')
}

const rows = readFileSync(join(root, 'docs/fidelity-policy.md'), 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('|') && !line.startsWith('|---'))

test('each id in the table of policies begins the title of a test', () => {
  const ids = new Set(
    rows.flatMap(
      (row) =>
        row
          .split('|')
          .slice(2)
          .join('|')
          .match(/\b[A-Z]{1,2}\d{1,2}\b/g) ?? [],
    ),
  )
  const texts = testTexts()
  expect(ids.size).toBeGreaterThan(80)
  expect([...ids].filter((id) => !new RegExp(`['\`]${id}: `).test(texts))).toEqual([])
})

test('each cell of a field has a test or says who refuses it', () => {
  const [, ...fields] = rows.filter((row) => !/\| \| {2}\| \|/.test(row))
  const empty = fields.filter((row) => {
    const [, , ...cells] = row.split('|').slice(0, -1)
    return cells.some((cell) => cell.trim() === '') && !row.includes('**CiliumNetworkPolicy, ')
  })
  expect(empty).toEqual([])
})

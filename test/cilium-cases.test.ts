/** Every case of Cilium's sheet has a test that names it: encodings, identities, policies, paths, Services, NAT, gateways and flows. */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')

/** How many cases there are of each letter. */
const counts = { M: 29, I: 20, P: 43, D: 8, S: 17, N: 10, E: 10, H: 3 }

function testFiles(folder: string): readonly string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.test\.ts$|cases\.ts$/.test(name) && name !== 'cilium-cases.test.ts')
    .map((name) => join(root, folder, name))
}

/** `'M1: …'`, `'M23 and M24: …'`, `'M12, M13: …'`, and `'P7'` where cases stand in a table. */
function casesIn(text: string): readonly string[] {
  const titles = text.matchAll(/['"`]((?:[A-Z]\d{1,2})(?:(?:, | and | to |\/)[A-Z]\d{1,2})*)(?=[:'"` ])/g)
  return [...titles].flatMap(([, ids = '']) => ids.split(/, | and | to |\//))
}

test('each case stands in a title', () => {
  const told = new Set(
    [...testFiles('src'), ...testFiles('test')].flatMap((file) => casesIn(readFileSync(file, 'utf8'))),
  )
  const all = Object.entries(counts).flatMap(([letter, count]) =>
    Array.from({ length: count }, (_, index) => `${letter}${index + 1}`),
  )
  expect(all.filter((id) => !told.has(id))).toEqual([])
})

/** Policies of the sample's day against goldens: the parsed documents and their comments, in order. PORTOLAN_UPDATE_CASES=1 rewrites them. */

import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { loadAll } from 'js-yaml'
import { expect, test } from 'vitest'
import { runWords } from './run-words'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')

async function generated(kind: string): Promise<string> {
  const flows = ['--flows', 'samples/flows/shop.jsonl', '--from', 'samples/flows/cluster.yaml']
  const { code, out } = await runWords(['generate', kind, '-A', ...flows])
  expect(code).toBe(0)
  return out
}

function commentsIn(text: string): readonly string[] {
  const lines = text.split('\n').map((line) => line.trim())
  return lines.filter((line) => line.startsWith('#'))
}

test.each(['networkpolicy', 'ciliumnetworkpolicy'])('%s of the sample’s day', async (kind) => {
  const path = join(root, `test/golden/generated-${kind}.yaml`)
  const text = await generated(kind)
  if (process.env.PORTOLAN_UPDATE_CASES === '1') writeFileSync(path, text)
  const golden = readFileSync(path, 'utf8')
  expect(loadAll(text)).toEqual(loadAll(golden))
  expect(commentsIn(text)).toEqual(commentsIn(golden))
})

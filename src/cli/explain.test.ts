/** `portolan explain` on the command line: whose rules a file is, output formats, colours, exit codes. */

import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import type { Explanation } from '#explain/explanation'
import { runWords } from '../../test/run-words'
import type { Captured } from './capture'

const place = mkdtempSync(join(tmpdir(), 'portolan-explain-'))
afterAll(() => rmSync(place, { recursive: true, force: true }))

const save = 'test/saves/kube-proxy.save'

function run(line: string, isTerminal = false): Promise<Captured> {
  return runWords(line.split(' '), { isTerminal })
}

function labelsIn(explanation: Explanation): readonly (string | undefined)[] {
  const { table } = explanation.layers.find(({ layer }) => layer === 'rules') ?? {}
  return [...new Set(table?.rows.map(([node]) => node))]
}

async function explainJson(line: string): Promise<Explanation> {
  const { out } = await run(`explain ${line} -o json`)
  return JSON.parse(out)
}

test('NODE=FILE says whose rules a file holds', async () => {
  const explanation = await explainJson(`shop/web --from test/golden/g1.yaml --ruleset node-a=${save}`)
  expect(labelsIn(explanation)).toEqual(['node-a'])
})

test('a file named after a node is that node’s', async () => {
  copyFileSync(save, join(place, 'node-a.save'))
  const explanation = await explainJson(`shop/web --from test/golden/g1.yaml --ruleset ${place}/node-a.save`)
  expect(labelsIn(explanation)).toEqual(['node-a'])
})

test('--node names the node of a file that does not say it', async () => {
  const explanation = await explainJson(`shop/web --from test/golden/g1.yaml --node node-a --ruleset ${save}`)
  expect(labelsIn(explanation)).toEqual(['node-a'])
})

test('a file that nobody claims is the node of that file', async () => {
  const explanation = await explainJson(`shop/web --from test/golden/g1.yaml --ruleset ${save}`)
  expect(labelsIn(explanation)).toEqual([`the node of ${save}`])
})

test('JSON has the service, the sentence, the layers and all findings', async () => {
  const explanation = await explainJson('shop/checkout --from samples/shop')
  expect(Object.keys(explanation)).toEqual(['service', 'sentence', 'layers', 'findings'])
  expect(explanation.layers.map(({ layer }) => layer)).toEqual([
    'name',
    'service',
    'slices',
    'pods',
    'rules',
    'conntrack',
    'policy',
    'traffic-policy',
  ])
  expect(explanation.findings).toEqual(explanation.layers.flatMap(({ findings }) => findings))
})

test('YAML says the same', async () => {
  const { out } = await run('explain shop/checkout --from samples/shop -o yaml')
  expect(out).toMatch(/^service: shop\/checkout\nsentence: /)
  expect(out).not.toMatch(/[&*]ref_/)
})

test('an error found is exit code 1, a warning alone is 0', async () => {
  expect((await run('explain shop/checkout --from samples/shop')).code).toBe(1)
  expect((await run('explain shop/web --from samples/shop')).code).toBe(0)
})

test('colours stand on a terminal alone', async () => {
  const line = 'explain shop/checkout --from samples/shop'
  expect((await run(line)).out).not.toContain('\u001b')
  const { out } = await run(line, true)
  expect(out).toContain('\u001b[31m✗\u001b[0m masquerade and traffic policy')
  expect(out).toContain('\u001b[33mwarning\u001b[0m: 1 pod is not ready')
})

test.each([
  ['explain shop/web --from samples/shop --ruleset =x', '--ruleset =x names no node; write NODE=FILE, or FILE alone'],
  [`explain shop/web --from samples/shop --ruleset node-z=${save}`, 'no Node is named "node-z"'],
  ['explain shop/web --from samples/shop --node node-z', 'no Node is named "node-z"'],
  ['explain a/b/c --from samples/shop', '"a/b/c" is not a Service\'s name; write NAMESPACE/NAME'],
  ['explain shop/web --from samples/shop --conntrack samples/shop/web.yaml', 'holds no tracked connection'],
])('%s is refused with a sentence', async (line, sentence) => {
  const { out, err, code } = await run(line)
  expect([out, code]).toEqual(['', 2])
  expect(err).toContain(sentence)
})

test('an empty connection tracking table is an answer', async () => {
  const explanation = await explainJson('shop/web --from samples/shop --conntrack test/bad-input/empty.yaml')
  expect(explanation.layers[5]?.facts).toEqual([
    '0 of 0 tracked connections in test/bad-input/empty.yaml go to this Service',
  ])
})

/**
 * docs/policies.md, docs/policies-from-flows.md, docs/traffic-policy.md, docs/cilium.md, docs/path.md and the pages of docs/questions and outputs say what the commands on them print: each `sh` block is run, and the `text` block
 * after it is its output. Commands in running text, with placeholders, are run too. PORTOLAN_UPDATE_CASES=1 rewrites the blocks.
 */

import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { runWords as run } from './run-words'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const pages = [
  'docs/policies.md',
  'docs/policies-from-flows.md',
  'docs/traffic-policy.md',
  'docs/cilium.md',
  'docs/path.md',
  ...['docs/questions', 'outputs'].flatMap((folder) =>
    readdirSync(join(root, folder))
      .filter((name) => name.endsWith('.md'))
      .sort()
      .map((name) => `${folder}/${name}`),
  ),
]

const blockPattern = /```sh\n((?:(?!```)[\s\S])*)```\n\n```text\n((?:(?!```)[\s\S])*)```\n/g

/** A command as a shell would run it from the checkout: its output may go through `grep` and the like. */
async function runLine(line: string): Promise<string> {
  const [command = '', ...filters] = line.split(' | ')
  const [program, ...words] = command.split(' ').filter((word) => word !== 'npx')
  expect(program, line).toBe('portolan')
  const { out, err, code } = await run(words)
  const filter = filters.join(' | ')
  const shown = filter === '' ? out : spawnSync('sh', ['-c', filter], { input: out, encoding: 'utf8' }).stdout
  const trimmed = shown.replaceAll(/[ \t]+$/gm, '')
  return `${trimmed}${filter === '' ? err : ''}${code === 0 ? '' : `(exit code ${code})\n`}`
}

/** Lines that go on after a backslash are one; others are commands of their own. */
function commandsIn(block: string): readonly string[] {
  return block
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
}

async function playPage(text: string): Promise<string> {
  let played = ''
  let from = 0
  for (const found of text.matchAll(blockPattern)) {
    const outputs: string[] = []
    for (const line of commandsIn(String(found[1]))) outputs.push(await runLine(line))
    played += `${text.slice(from, found.index)}\`\`\`sh\n${found[1]}\`\`\`\n\n\`\`\`text\n${outputs.join('')}\`\`\`\n`
    from = found.index + found[0].length
  }
  return played + text.slice(from)
}

/** A page runs dozens of commands; on a busy machine that takes more than half a minute. */
const pageTimeoutMs = 90_000

test.each(pages)('%s shows what its commands print', { timeout: pageTimeoutMs }, async (page) => {
  const text = readFileSync(join(root, page), 'utf8')
  expect([...text.matchAll(blockPattern)].length).toBeGreaterThan(1)
  const played = await playPage(text)
  if (process.env.PORTOLAN_UPDATE_CASES === '1') writeFileSync(join(root, page), played)
  else expect(played).toBe(text)
})

/** What stands for the reader's own cluster in a command of the running text. */
const placeholders: Readonly<Record<string, string>> = {
  'NS/NAME': 'shop/web',
  'NS/POD': 'shop/client',
  NAME: 'web',
  NODE: 'node-a',
  CIDR: '10.244.0.0/16',
  'IP:PORT': '10.96.0.20:80',
  IP: '10.244.1.30',
  'cluster.json': 'test/explain/outage/cluster.yaml',
  'NODE.save': 'test/explain/outage/node-a.save',
  'node-a.save': 'test/explain/outage/node-a.save',
  'node-b.save': 'test/explain/outage/node-b.save',
  'conntrack.txt': 'test/explain/outage/conntrack.txt',
}

/** A page without its blocks: what a command prints may name others. */
function runningText(text: string): string {
  return text.replaceAll(/^```[\s\S]*?^```$/gm, '')
}

const inline = pages.flatMap((page) =>
  [...runningText(readFileSync(join(root, page), 'utf8')).matchAll(/`portolan ([^`]+)`/g)].map(([, line]) => ({
    page,
    line: String(line),
  })),
)

test('pages tell commands in running text', () => {
  expect(inline.length).toBeGreaterThan(5)
})

test.each(inline)('$page: portolan $line', async ({ line }) => {
  const words = line.split(/\s+/).map((word) => placeholders[word] ?? word)
  const { err, code } = await run(words)
  expect(err).not.toContain('bug of Portolan')
  expect([0, 1, 3], err).toContain(code)
})

test('every symptom page is linked from the runbook', () => {
  const runbook = readFileSync(join(root, 'outputs/skill-service-connectivity-triage.md'), 'utf8')
  const questions = pages.filter((page) => page.startsWith('docs/questions/'))
  expect(questions.filter((page) => !runbook.includes(`](../${page})`))).toEqual([])
})

const findingsPage = readFileSync(join(root, 'docs/findings.md'), 'utf8')
const known = new Set([...findingsPage.matchAll(/^\| `([^`]+)`/gm)].map(([, code]) => String(code)))

test('every finding that a page names is one', () => {
  const named = [...pages, 'docs/reports.md'].flatMap((page) =>
    [
      ...readFileSync(join(root, page), 'utf8').matchAll(
        /`((?:explain|services|ruleset|endpointslices|dns)\.[a-z-]+)`/g,
      ),
    ].map(([, code]) => `${page} ${code}`),
  )
  expect(named.length).toBeGreaterThan(40)
  expect(named.filter((one) => !known.has(String(one.split(' ')[1])))).toEqual([])
})

const reports = [...readFileSync(join(root, 'docs/reports.md'), 'utf8').matchAll(/^\| (\d+) \|(.*)\|$/gm)].map(
  ([, number, rest]) => {
    const cells = String(rest).split(' | ')
    return { number: Number(number), findings: String(cells[2]), story: String(cells[4]).trim() }
  },
)

test('every report has a row: a story, or the reason why the input cannot show it', () => {
  expect(reports.map(({ number }) => number)).toEqual(Array.from({ length: 32 }, (_, at) => at + 1))
  const stories = readdirSync(join(root, 'test/cases/explain')).filter((name) => /^\d/.test(name))
  expect(reports.map(({ story }) => story).filter((story) => story !== '–')).toEqual(
    stories.map((name) => name.replace('.txt', '')).sort(),
  )
})

test.each(reports.filter(({ story }) => story !== '–'))(
  'report $number: $story shows exactly the findings of its row',
  (row) => {
    const text = readFileSync(join(root, `test/cases/explain/${row.story}.txt`), 'utf8')
    const shown = [...text.matchAll(/^ {4}(?:error|warning|info): .*\[([a-z.-]+)\]$/gm)].map(([, code]) => String(code))
    const listed = [...row.findings.matchAll(/`([^`]+)`/g)].map(([, code]) => String(code))
    expect([...new Set(shown)].sort()).toEqual(listed.sort())
  },
)

/** The documents say what the code does: findings, flags, commands, version. PORTOLAN_UPDATE_CASES=1 rewrites docs/findings.md. */

import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { loadCommands } from '../src/cli/commands'
import { buildProgram } from '../src/cli/run-portolan'
import { version } from '../src/cli/version'
import { quietIo, runWords } from './run-words'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')

type Meaning = { readonly severity: string; readonly meaning: string }

async function allFindings(): Promise<ReadonlyMap<string, Meaning>> {
  const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter((name) =>
    /(^|[\\/])findings\.ts$/.test(name),
  )
  const codes = new Map<string, Meaning>()
  for (const file of files) {
    const exported: Record<string, unknown> = await import(pathToFileURL(join(root, 'src', file)).href)
    const tables = Object.values(exported).filter(
      (value): value is Record<string, Meaning> => typeof value === 'object' && value !== null,
    )
    expect(tables, `${file} exports one table of codes`).toHaveLength(1)
    for (const [code, meaning] of Object.entries(tables[0] ?? {})) {
      expect(codes.has(code), `${code} stands in two tables`).toBe(false)
      codes.set(code, meaning)
    }
  }
  return codes
}

function printFindingsPage(codes: ReadonlyMap<string, Meaning>): string {
  const rows = [...codes]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([code, { severity, meaning }]) => `| \`${code}\` | ${severity} | ${meaning} |`)
  return `# Findings

A finding is something true of the input, told on standard error beside the answer. Its code stands in brackets at the end of the line.

| code | severity | meaning |
|---|---|---|
${rows.join('\n')}
`
}

test('docs/findings.md lists every finding code, and no other', async () => {
  const page = printFindingsPage(await allFindings())
  if (process.env.PORTOLAN_UPDATE_CASES === '1') writeFileSync(join(root, 'docs/findings.md'), page)
  expect(read('docs/findings.md')).toBe(page)
})

test('every code that the sources mention in a finding is in a table', async () => {
  const codes = await allFindings()
  const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter(
    (name) => name.endsWith('.ts') && !name.endsWith('.test.ts'),
  )
  const used = files.flatMap((name) =>
    [...read(join('src', name)).matchAll(/(?:[fF]inding|note|tell)\w*\((?:[\w.]+, )?'([a-z-]+\.[a-z-]+)'/g)].map(
      ([, code]) => String(code),
    ),
  )
  expect(used.length).toBeGreaterThan(20)
  expect([...new Set(used)].filter((code) => !codes.has(code))).toEqual([])
})

test('every code of a table is told somewhere in the sources', async () => {
  const codes = await allFindings()
  const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts') && !/(^|[\\/])findings\.ts$/.test(name))
    .map((name) => read(join('src', name)))
    .join('\n')
  expect([...codes.keys()].filter((code) => !sources.includes(`'${code}'`))).toEqual([])
})

test('the version is the package’s', () => {
  expect(version).toBe(JSON.parse(read('package.json')).version)
})

/** Those that need a broker are run by test/broker/pages.test.ts, those of a node by test/kernel/agent-commands.test.ts. */
const brokerCommand = /^(broker|flows|who|agent)\b/

const readmeCommands = [...read('README.md').matchAll(/^(?:npx )?portolan (.+?)(?:\s+#.*)?$/gm)]
  .map(([, line]) => String(line))
  .filter((line) => !brokerCommand.test(line))

test('README has commands to run', () => {
  expect(readmeCommands.length).toBeGreaterThan(4)
})

test.each(readmeCommands)('README: portolan %s', async (line) => {
  const { out, err, code } = await runWords(line.split(/\s+/))
  expect(err.includes('bug of Portolan'), err).toBe(false)
  expect(code, err).toBeLessThan(2)
  expect(out.length).toBeGreaterThan(50)
})

test('every file that README, ARCHITECTURE and CONTRIBUTING name is there', () => {
  const lost = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md'].flatMap((page) =>
    [...read(page).matchAll(/\]\(([^)#:]+)\)|`((?:src|test|docs|samples|bench|scripts)\/[\w./-]+)`/g)]
      .map(([, link, path]) => String(link ?? path))
      .filter((path) => !existsSync(join(root, path)))
      .map((path) => `${page} names ${path}`),
  )
  expect(lost).toEqual([])
})

test('npm scripts that the pages name are in package.json', () => {
  const scripts = JSON.parse(read('package.json')).scripts as Record<string, string>
  const named = ['README.md', 'CONTRIBUTING.md'].flatMap((page) =>
    [...read(page).matchAll(/npm run ([\w:]+)/g)].map(([, name]) => String(name)),
  )
  expect(named.filter((name) => scripts[name] === undefined)).toEqual([])
})

test('each command and each option has a sentence in --help', async () => {
  const program = buildProgram(await loadCommands([]), quietIo, () => {})
  const all = program.commands.flatMap((command) => [command, ...command.commands])
  const silent = all.flatMap((command) => [
    ...(command.description() === '' ? [command.name()] : []),
    ...command.options
      .filter((option) => option.description === '')
      .map((option) => `${command.name()} ${option.flags}`),
  ])
  expect(silent).toEqual([])
})

/** The pages about the broker say what it does: settings, routes, filters, and the README’s commands, which are run. */

import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { numberSettings } from '../../src/broker/settings'
import { tokenVariables } from '../../src/broker/tokens'
import { filterNames } from '../../src/wire/flow-query'
import { runWords } from '../run-words'
import { buildProgram, startProcess } from './broker-process'
import { flowPost, podPost } from './messages'
import { openBroker } from './running-broker'

const root = join(fileURLToPath(import.meta.url), '../../..')
const page = readFileSync(join(root, 'docs/broker.md'), 'utf8')

test('docs/broker.md lists every setting with its default and bounds, and no other', () => {
  const rows = Object.values(numberSettings).map((setting) => {
    const zero = 'zeroIsOff' in setting ? '0, ' : ''
    const { environment, flag, fallback, least, most, meaning } = setting
    return `| \`${environment}\` | \`--${flag}\` | ${fallback} | ${zero}${least} to ${most} | ${meaning} |`
  })
  expect(page.split('\n').filter((line) => /^\| `[A-Z_]+` \|/.test(line))).toEqual(rows)
})

test('docs/broker.md names every token variable and every filter', () => {
  for (const name of Object.keys(tokenVariables)) expect(page).toContain(`\`${name}\``)
  for (const { name } of filterNames()) {
    if (!/^(not|from|to)\./.test(name)) expect(page).toContain(`\`${name}\``)
  }
})

test('docs/broker.md names every route, and the OpenAPI document describes each request and answer', async () => {
  const broker = await openBroker()
  type Operation = { summary?: string; responses: object; requestBody?: object; parameters?: object[] }
  const { openapi, paths } = await broker.read<{ openapi: string; paths: Record<string, Record<string, Operation>> }>(
    '/openapi.json',
  )
  expect(openapi).toBe('3.1.0')
  expect(Object.keys(paths).length).toBeGreaterThan(25)
  for (const [path, operations] of Object.entries(paths)) {
    expect(page, path).toContain(path)
    for (const [method, { summary, responses, requestBody }] of Object.entries(operations)) {
      expect(summary, `${method} ${path}`).toBeTruthy()
      expect(Object.keys(responses), `${method} ${path}`).toContain('200')
      if (method === 'post') expect(requestBody, path).toBeDefined()
    }
  }
  const flows = paths['/api/v1/flows']?.get?.parameters ?? []
  expect(JSON.stringify(flows)).toContain('not.from.workload')
  expect((await broker.get('/docs/')).headers.get('content-type')).toMatch(/^text\/html/)
  await broker.stop()
})

test('the commands of README that need a broker work as they stand', async () => {
  const commands = readFileSync(join(root, 'README.md'), 'utf8')
    .split('\n')
    .flatMap((line) => /^npx portolan ((?:broker|flows|who) .*?)(?:\s+#.*)?$/.exec(line)?.[1] ?? [])
  expect(commands).toHaveLength(3)
  buildProgram()
  const folder = mkdtempSync(join(tmpdir(), 'portolan-readme-'))
  const [start = '', ...questions] = commands
  const flags = start.replace(/ &$/, '').split(' ').slice(1)
  const broker = await startProcess(flags.map((word) => (word === 'flows' ? join(folder, word) : word)))
  const hourAgo = new Date(Date.now() - 3_500_000).toISOString().slice(0, -5)
  await broker.send(
    '/pod/spec',
    podPost({ name: 'web-1', ip: '10.244.1.30', start: `${hourAgo}Z`, seen: new Date().toISOString() }),
  )
  const flow = { pod: 'web-1', namespace: 'shop', ip: '10.244.1.30', peer: '203.0.113.1', decision: 'DROP' }
  await broker.send('/pod/traffic', flowPost({ ...flow, time: new Date(Date.now() - 1000).toISOString() }))
  for (const question of questions) {
    const { code, out } = await runWords([...question.split(' '), '--broker', broker.url])
    expect(code, question).toBe(0)
    expect(out, question).toContain('web-1')
  }
  expect(await broker.end('SIGINT')).toBe(0)
  rmSync(folder, { recursive: true, force: true })
})

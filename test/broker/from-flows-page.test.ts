/** The commands of docs/policies-from-flows.md that need a broker, run against the demo's, and what the page says of them. */

import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type DemoBroker, startDemoBroker } from '../../src/cli/demo-broker'
import { recordedDay } from '../../src/cli/demo-day'
import { runPortolan } from '../../src/cli/run-portolan'
import { readFrom } from '../../src/sources/read-from'
import type { AuditSummaryRecord } from '../../src/wire/audit-record'
import type { VerdictRecord } from '../../src/wire/verdict-record'
import { quietIo } from '../run-words'

const root = join(fileURLToPath(import.meta.url), '../../..')
const page = readFileSync(join(root, 'docs/policies-from-flows.md'), 'utf8')
const place = 'http://127.0.0.1:8090'
const commands = page.split('\n').filter((line) => /^(npx portolan|curl) .*http:\/\/127/.test(line))

let folder = ''
let broker: DemoBroker | undefined

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'portolan-page-'))
  const { value: cluster } = await readFrom([join(root, 'samples/shop')])
  const listen = { address: '127.0.0.1', port: 0 }
  broker = await startDemoBroker(quietIo, { data: join(folder, 'data'), listen, mayMove: false })
  await broker.play(recordedDay(cluster))
}, 120_000)

afterAll(async () => {
  await broker?.stop()
  rmSync(folder, { recursive: true, force: true })
})

function lineWith(text: string): string {
  const line = commands.find((command) => command.includes(text))
  if (line === undefined || broker === undefined) throw new RangeError(`no command has ${text}`)
  return line.replace(place, broker.url)
}

async function portolan(text: string): Promise<string> {
  let out = ''
  const words = lineWith(text).split(' ').slice(2)
  await runPortolan(words, {
    ...quietIo,
    out: (more) => {
      out += more
    },
  })
  return out
}

/** As curl would: quotes, a method, a header and a file are all that the page uses. */
async function curl<Answer>(text: string): Promise<Answer> {
  const words = [...lineWith(text).matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '')
  const after = (flag: string): string | undefined => words[words.indexOf(flag) + 1 || words.length]
  const [name, value] = (after('-H') ?? 'Accept: */*').split(': ')
  const file = after('--data-binary')?.slice(1)
  const response = await fetch(words.find((word) => word.startsWith('http')) ?? '', {
    method: after('-X') ?? 'GET',
    headers: { [name ?? '']: value ?? '' },
    ...(file !== undefined && { body: readFileSync(join(root, file)) }),
  })
  if (response.status !== 200) throw new RangeError(`${response.status} ${await response.text()}`)
  return (await response.json()) as Answer
}

test('the page has seven commands that need a broker', () => {
  expect(commands).toHaveLength(7)
})

test('who it was nobody knows, and the policy says so', async () => {
  expect(await portolan('portolan who')).toMatch(/rejected +nearest: pod shop\/client-/)
  const policy = await portolan('portolan generate')
  expect(policy).toContain('# unattributed peer 10.244.2.31 at 2026-10-06T09:14:02')
  expect(policy).not.toContain('app: client')
  expect(await portolan('portolan policy audit')).toMatch(/: 5 flows, seen/)
})

test('in audit mode the policy is tried on the last 24 hours, and on demand on everything', async () => {
  await curl('-X PUT')
  const summary = () => curl<AuditSummaryRecord>('audit/summary')
  for (let tries = 0; tries < 600; tries++) {
    const { sets, waiting } = await summary()
    if (sets.length > 0 && waiting === 0) break
    await sleep(100)
  }
  const [policy] = (await summary()).policies
  expect(policy?.flows.wouldDeny).toBe(5)
  expect(policy?.offenders.map(({ peer, flows }) => `${peer} ${flows}`)).toEqual([
    'analytics/Deployment/report 2',
    'monitoring/DaemonSet/node-probe (host network) 2',
    '10.244.2.31 (unattributed) 1',
  ])
  const verdicts = await curl<readonly VerdictRecord[]>('audit/verdicts')
  expect(verdicts).toHaveLength(5)
  expect(verdicts.every(({ reason }) => /^no rule allows traffic from .* on TCP 5432$/.test(reason ?? ''))).toBe(true)
  const report = await curl<{ readonly denied: { readonly flows: number } }>('-X POST')
  expect(report.denied.flows).toBe(5)
})

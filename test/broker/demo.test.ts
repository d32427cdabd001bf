/** The demo: what `npm run demo -- --once` prints, that a day is counted once, and that without `--once` it stays up. */

import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { availableParallelism, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { startDemoBroker } from '../../src/cli/demo-broker'
import { recordedDay } from '../../src/cli/demo-day'
import { edgeTable } from '../../src/cli/demo-edges'
import { readFrom } from '../../src/sources/read-from'
import type { EdgeRecord } from '../../src/wire/edge-record'
import { quietIo } from '../run-words'
import { buildProgram } from './broker-process'

const root = join(fileURLToPath(import.meta.url), '../../..')

/** Others have the processors too. */
function isCrowded(): boolean {
  return (loadavg()[0] ?? 0) > availableParallelism()
}

type Ended = { readonly out: string; readonly err: string; readonly code: number | null }

function startDemo(
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): { readonly child: ChildProcess; readonly ended: Promise<Ended> } {
  const child = spawn(process.execPath, ['bin/portolan.js', 'demo', ...args], {
    cwd: root,
    env: { ...process.env, ...env },
  })
  let [out, err] = ['', '']
  child.stdout?.on('data', (chunk: Buffer) => {
    out += chunk.toString()
  })
  child.stderr?.on('data', (chunk: Buffer) => {
    err += chunk.toString()
  })
  const ended = new Promise<Ended>((done) => child.once('close', (code) => done({ out, err, code })))
  return { child, ended }
}

/** What stands under a heading, up to the next one. */
function stopOf(out: string, title: string): string {
  const from = out.indexOf(title)
  return from < 0 ? '' : (out.slice(from).split(/\n(?=\d+\. |Now yours)/)[0] ?? '')
}

test('demo --once shows the tour and the recorded day, and ends', async () => {
  buildProgram()
  const started = Date.now()
  const { out, err, code } = await startDemo(['--once']).ended
  expect([code, err]).toEqual([0, ''])
  // Alone it takes a third of it.
  expect(Date.now() - started).toBeLessThan(30_000 * (isCrowded() ? 3 : 1))

  const edges = stopOf(out, 'Who talked to whom?')
  expect(edges).toMatch(/shop\/CronJob\/db-backup +shop\/StatefulSet\/db +5432\/TCP +48 +ALLOW/)
  expect(edges).toMatch(/analytics\/Deployment\/report +shop\/StatefulSet\/db +5432\/TCP +36 +ALLOW/)
  expect(edges).toMatch(/monitoring\/DaemonSet\/node-probe \(host network\) +shop\/StatefulSet\/db +5432\/TCP/)
  expect(edges).toMatch(/Unattributed +shop\/StatefulSet\/db +5432\/TCP +3 +ALLOW/)
  expect(edges).toMatch(/shop\/Deployment\/client +shop\/StatefulSet\/db +5432\/TCP +3 +DROP/)
  expect(edges).toMatch(/Internet +shop\/Deployment\/checkout +8080\/TCP/)
  expect(edges).toMatch(/shop\/Deployment\/web +kube-system\/Deployment\/coredns +53\/UDP/)
  // The third checkout was reported after its connection: 202 + 202 of the others and its 5.
  expect(edges).toMatch(/shop\/Deployment\/checkout +shop\/StatefulSet\/db +5432\/TCP +409 +ALLOW/)

  expect(stopOf(out, 'Who was it that nobody reported?')).toMatch(/rejected +nearest: pod shop\/client-/)
  const recycled = stopOf(out, 'One address, two workloads')
  expect(recycled).toMatch(/analytics\/report-7d9f5c8b64-j6n3x/)
  expect(recycled).toMatch(/shop\/db-backup-\d+-\w+/)

  const policy = stopOf(out, 'Which policy does the database need?')
  expect(policy).toContain('# unattributed peer 10.244.2.31 at 2026-10-06T09:14:02')
  expect(policy).toContain('cidr: 10.244.2.31/32')
  expect(policy).toMatch(/# host-network peer monitoring\/node-probe/)
  expect(policy).toContain('cidr: 198.51.100.20/32')
  expect(policy).toContain('app: db-backup')
  expect(policy).not.toMatch(/app: client|pod-template-hash|job-name/)
  expect(policy).toMatch(/proven: of \d+ connections that were seen \d+ allowed, none denied/)

  const audit = stopOf(out, 'And a tighter one?')
  expect(audit).toMatch(/shop\/StatefulSet\/db ingress 5432\/TCP: 5 flows, seen \d+ times/)
  expect(audit).toMatch(/10\.244\.2\.31 \(unattributed\) +1 +3/)
  expect(audit).toMatch(/analytics\/Deployment\/report +2 +72/)
  expect(audit).not.toMatch(/db-backup/)
  expect(out).toMatch(/\nNow yours\n/)
  expect(out).not.toContain('stays up')
}, 120_000)

test('the day is counted once, however often it is played into one database', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'portolan-demo-test-'))
  const { value: cluster } = await readFrom([join(root, 'samples/shop')])
  const tables: string[] = []
  for (let round = 0; round < 2; round++) {
    const broker = await startDemoBroker(quietIo, {
      data: join(folder, 'data'),
      listen: { address: '127.0.0.1', port: 0 },
      mayMove: false,
    })
    await broker.play(recordedDay(cluster))
    const answer = await fetch(`${broker.url}/api/v1/edges?since=-24h&limit=1000`)
    tables.push(edgeTable(((await answer.json()) as { items: EdgeRecord[] }).items))
    await broker.stop()
  }
  expect(tables[0]?.split('\n').length).toBeGreaterThan(15)
  expect(tables[1]).toBe(tables[0])
  rmSync(folder, { recursive: true, force: true })
})

test('nothing is left of it where nobody reads on', async () => {
  buildProgram()
  const folder = mkdtempSync(join(tmpdir(), 'portolan-demo-test-'))
  const { child, ended } = startDemo(['--once'], { TMPDIR: folder })
  child.stdout?.once('data', () => child.stdout?.destroy())
  await ended
  expect(readdirSync(folder)).toEqual([])
  rmSync(folder, { recursive: true, force: true })
}, 120_000)

test('without --once it stays up until it is interrupted, and tells where', async () => {
  buildProgram()
  const { child, ended } = startDemo(['--listen', '127.0.0.1:0'])
  const stop = (): void => void child.kill('SIGKILL')
  process.once('exit', stop)
  const url = await new Promise<string>((done, fail) => {
    let out = ''
    child.stdout?.on('data', (chunk: Buffer) => {
      out += chunk.toString()
      const found = /The broker stays up[\s\S]*?(http:\/\/[\d.:]+)\/docs/.exec(out)?.[1]
      if (found !== undefined) done(found)
    })
    void ended.then(({ err, code }) => fail(new RangeError(`it ended with ${code}: ${err}`)))
  })
  expect((await fetch(`${url}/health`)).status).toBe(200)
  child.kill('SIGINT')
  expect((await ended).code).toBe(0)
  process.off('exit', stop)
}, 120_000)

test('a port that is no port is refused before anything is shown', async () => {
  const { out, err, code } = await startDemo(['--listen', 'here']).ended
  expect([out, code]).toEqual(['', 2])
  expect(err).toContain('--listen here: write IP:PORT such as 127.0.0.1:8090')
})

/** The controller as a process: it keeps conditions beside what agents write, and ends when it is told to, leaving them. */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, test } from 'vitest'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const folder = mkdtempSync(join(tmpdir(), 'portolan-controller-'))
let child: ChildProcess | undefined
afterAll(() => {
  child?.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

const own = join(folder, 'new/status/portolan-controller/trafficpolicybindings/tenant/web-0.json')

async function until(sees: () => boolean, seconds: number): Promise<void> {
  for (let tries = 0; tries < seconds * 20 && !sees(); tries++) await new Promise((done) => setTimeout(done, 50))
  expect(sees()).toBe(true)
}

function isSaying(text: string): boolean {
  return existsSync(own) && readFileSync(own, 'utf8').includes(text)
}

test('a folder that is not there is made and watched; SIGTERM ends it with 0', { timeout: 90_000 }, async () => {
  let [out, err] = ['', '']
  const words = ['controller', '--from', 'samples/traffic-policy', '--status', join(folder, 'new/status')]
  child = spawn(process.execPath, ['--import', 'tsx', 'src/cli/main.ts', ...words], { cwd: root })
  child.stdout?.on('data', (text) => {
    out += String(text)
  })
  child.stderr?.on('data', (text) => {
    err += String(text)
  })
  const ended = new Promise<number | null>((done) => child?.once('close', done))
  await until(() => isSaying('"reason": "Pending"'), 60)
  const side = { state: 'Applied', observedGeneration: 1, lastTransitionTime: '2026-10-15T12:00:00Z' }
  const entry = {
    node: 'node-a',
    ingress: side,
    egress: side,
    mode: 'Enforce',
    heartbeatTime: new Date().toISOString(),
  }
  const path = join(folder, 'new/status/portolan-agent-node-a/trafficpolicybindings/tenant/web-0.json')
  mkdirSync(dirname(path), { recursive: true })
  const metadata = { namespace: 'tenant', name: 'web-0' }
  const apiVersion = 'portolan.dev/v1alpha1'
  writeFileSync(
    path,
    JSON.stringify({ apiVersion, kind: 'TrafficPolicyBinding', metadata, status: { nodes: [entry] } }),
  )
  await until(() => isSaying('"reason": "Enforcing"'), 20)
  child.kill('SIGTERM')
  expect(await ended).toBe(0)
  expect(out).toContain('keeps conditions in ')
  expect(err).toContain('the controller ends; conditions stay as they are')
  expect(isSaying('"reason": "Enforcing"')).toBe(true)
})

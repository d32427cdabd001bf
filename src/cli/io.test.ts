/** Streams that take no more: one sentence, exit 2, no stack. */
import { spawnSync } from 'node:child_process'
import { existsSync, openSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))
const save = 'test/saves/kube-proxy.save'
const line = ['--import', 'tsx', 'src/cli/main.ts', 'trace', '--ruleset', save, '--to', '10.96.0.1:443']

test.skipIf(!existsSync('/dev/full'))('a full device on standard output is one sentence on standard error', () => {
  const { status, stderr } = spawnSync(process.execPath, line, {
    cwd: root,
    stdio: ['ignore', openSync('/dev/full', 'w'), 'pipe'],
    encoding: 'utf8',
  })
  expect(stderr).toContain('portolan: standard output cannot be written: the device is full (ENOSPC)')
  expect(stderr).not.toContain('    at ')
  expect(status).toBe(2)
})

test.skipIf(!existsSync('/dev/full'))('a full device on standard error leaves no stack', () => {
  const { status, stdout } = spawnSync(process.execPath, [...line.slice(0, -1), 'nowhere'], {
    cwd: root,
    stdio: ['ignore', 'pipe', openSync('/dev/full', 'w')],
    encoding: 'utf8',
  })
  expect(stdout).toBe('')
  expect(status).toBe(2)
})

/** A ruleset that would fill the memory is refused with a remedy. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

test('a ruleset beyond the memory of the process is one sentence', () => {
  const folder = mkdtempSync(join(tmpdir(), 'portolan-large-'))
  const file = join(folder, 'large.save')
  writeFileSync(file, `*filter\n:INPUT ACCEPT [0:0]\n${'-A INPUT -s 10.0.0.1/32 -j DROP\n'.repeat(1_600_000)}COMMIT\n`)
  const { status, stderr } = spawnSync(
    process.execPath,
    ['--import', 'tsx', 'src/cli/main.ts', 'trace', '--ruleset', file, '--to', '10.0.0.1:1'],
    {
      cwd: fileURLToPath(new URL('../..', import.meta.url)),
      encoding: 'utf8',
      env: { ...process.env, NODE_OPTIONS: '--max-old-space-size=128' },
    },
  )
  rmSync(folder, { recursive: true })
  expect(stderr).toMatch(/large\.save: 52 MB of rules need more memory .*; set NODE_OPTIONS=--max-old-space-size=\d+/)
  expect(status).toBe(2)
})

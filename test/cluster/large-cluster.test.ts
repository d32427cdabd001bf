/** A cluster that is larger than the memory of the process is a sentence, and not the end of V8. */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { type ApiServerOptions, startApiServer } from './api-server'
import { writeConfig } from './kubeconfig'

/** Pods without end, 500 a page. */
const endless: NonNullable<ApiServerOptions['meddle']> = ({ url = '' }, response) => {
  if (!url.startsWith('/api/v1/pods')) return false
  const at = Number(new URL(url, 'http://server').searchParams.get('continue') ?? 0)
  const items = Array.from({ length: 500 }, (_, index) => {
    const number = String(at + index).padStart(8, '0')
    const labels = Object.fromEntries(
      Array.from({ length: 20 }, (_, label) => [`label-${label}`, `${number}-${label}`]),
    )
    return { metadata: { name: `pod-${number}`, namespace: 'shop', labels }, spec: { containers: [], nodeName: 'n' } }
  })
  response.writeHead(200, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ metadata: { continue: String(at + 500) }, items }))
  return true
}

test('a list without end is given up before the memory is full', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'portolan-endless-'))
  const server = await startApiServer({ objects: [], meddle: endless })
  const kubeconfig = writeConfig(folder, { server: server.url })
  const words = ['--import', 'tsx', 'src/cli/main.ts', 'endpoints', '--kubeconfig', kubeconfig]
  const child = spawn(process.execPath, words, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, NODE_OPTIONS: '--max-old-space-size=160' },
  })
  const ended = new Promise((resolve) => child.on('close', resolve))
  const [out, err, code] = await Promise.all([text(child.stdout), text(child.stderr), ended])
  await server.close()
  rmSync(folder, { recursive: true })
  expect(err).toMatch(
    /^portolan: cluster test does not fit into the memory of this process: \d+ of 160 MB are full after \d+ objects; set NODE_OPTIONS=--max-old-space-size=320$/m,
  )
  expect([code, out]).toEqual([2, ''])
})

import { execFile } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, rmSync, statSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, describe, expect, test } from 'vitest'
import { buildCluster } from '#manifests/build-cluster'
import { parseManifestText } from '#manifests/parse-text'

const folder = mkdtempSync(join(tmpdir(), 'portolan-large-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A pod about as large as kubectl prints one, with nothing that Portolan reads left out. */
function pod(index: number): string {
  const ip = `10.${128 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}`
  const env = Array.from({ length: 12 }, (_, number) => ({
    name: `VARIABLE_${number}`,
    value: `a value of some length ${number}`,
  }))
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `web-${index}`,
      namespace: `ns-${index % 50}`,
      labels: { app: 'web' },
      uid: `00000000-0000-4000-8000-${index}`,
    },
    spec: {
      nodeName: `node-${index % 100}`,
      containers: [{ name: 'main', image: 'web:1', env, ports: [{ name: 'http', containerPort: 8080 }] }],
    },
    status: {
      phase: 'Running',
      podIP: ip,
      podIPs: [{ ip }],
      hostIP: '192.0.2.1',
      conditions: [{ type: 'Ready', status: 'True' }],
    },
  })
}

function writePods(bytes: number): string {
  const path = join(folder, 'pods.json')
  const file = openSync(path, 'w')
  writeSync(file, '{"kind": "List", "apiVersion": "v1", "items": [')
  for (let index = 0, size = 0; size < bytes; ) {
    const block = Array.from({ length: 1000 }, () => pod(index++)).join(',\n')
    size += writeSync(file, size === 0 ? block : `,\n${block}`)
  }
  writeSync(file, ']}')
  closeSync(file)
  return path
}

describe('large input', () => {
  test('300 MB are read, and a waiting person is told', { timeout: 240_000 }, async () => {
    const path = writePods(300e6)
    const script = `
      import { readFrom } from '${process.cwd()}/src/sources/read-from.ts'
      const { value } = await readFrom([process.argv[1]])
      console.log(value.pods.size)
    `
    const child = await promisify(execFile)(process.execPath, [
      '--import',
      'tsx',
      '--input-type=module',
      '-e',
      script,
      path,
    ])
    expect(Number(child.stdout)).toBeGreaterThan(200_000)
    expect(child.stderr).toContain(`reading the objects in ${path} (${Math.round(statSync(path).size / 1e6)} MB)`)
  })

  test('a cluster is built in a few times the time JSON.parse takes, at the worst', () => {
    const text = `[${Array.from({ length: 20_000 }, (_, index) => pod(index)).join(',')}]`
    const ratios = Array.from({ length: 5 }, () => {
      const start = performance.now()
      JSON.parse(text)
      const middle = performance.now()
      expect(buildCluster(parseManifestText(text, 'f').value).value.pods.size).toBe(20_000)
      return (performance.now() - middle) / (middle - start)
    })
    // One for JSON.parse itself; about one for the rest. The bound leaves room for a busy machine.
    expect(Math.min(...ratios)).toBeLessThan(5)
  })
})

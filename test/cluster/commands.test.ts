/** Every command that reads a cluster gives the answer that it gives from files of the same objects. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { commandKinds } from '../../src/cli/read-inputs-kinds'
import { type ApiServer, readSamples, startApiServer } from './api-server'
import { run, writeConfig } from './kubeconfig'

const flows = ['--flows', 'samples/flows/shop.jsonl']
const packet = ['--src', '10.0.0.1', '--dst', '10.0.0.2', '--proto', 'tcp', '--dport', '80', '--path', 'Private']

/** The words of each command, and the samples whose objects it reads. */
const cases: readonly { readonly command: string; readonly samples: string; readonly words: readonly string[] }[] = [
  { command: 'endpoints', samples: 'samples/shop', words: [] },
  { command: 'endpoints', samples: 'samples/shop', words: ['shop/web', '-o', 'yaml'] },
  { command: 'endpoints', samples: 'samples/shop', words: ['--slices', 'diff'] },
  { command: 'endpoints', samples: 'samples/shop', words: ['-n', 'shop'] },
  { command: 'iptables', samples: 'samples/shop', words: ['--node', 'node-a'] },
  { command: 'nftables', samples: 'samples/shop', words: ['--node', 'node-a', '--format', 'json'] },
  { command: 'trace', samples: 'samples/shop', words: ['--all', '--node', 'node-a'] },
  { command: 'trace', samples: 'samples/shop', words: ['--to', 'shop/web', '--node', 'node-a', '-o', 'json'] },
  { command: 'explain', samples: 'samples/shop', words: ['shop/web'] },
  { command: 'explain', samples: 'samples/shop', words: ['shop/checkout'] },
  { command: 'dns', samples: 'samples/shop', words: ['web', '-n', 'shop', '-o', 'json'] },
  { command: 'dns', samples: 'samples/shop', words: ['web.shop', '--pod', 'shop/client-79b8c6d5f4-x4n7k'] },
  { command: 'resolv-conf', samples: 'samples/shop', words: ['-n', 'shop'] },
  {
    command: 'policy eval',
    samples: 'samples/policies',
    words: ['--source', 'shop/deploy/web', '--to', 'shop/sts/db', '--port', '5432'],
  },
  { command: 'policy matrix', samples: 'samples/policies', words: ['--services'] },
  { command: 'policy matrix', samples: 'samples/cilium', words: ['--semantics', 'cilium'] },
  { command: 'policy lint', samples: 'samples/policies', words: [] },
  { command: 'policy lint', samples: 'samples/traffic-policy', words: [] },
  { command: 'policy audit', samples: 'samples/policies', words: [...flows] },
  { command: 'policy explain', samples: 'samples/traffic-policy', words: ['--policy', 'tenant/web', ...packet] },
  {
    command: 'policy show',
    samples: 'samples/traffic-policy',
    words: ['tenant/web-0', '--node', 'node-a', '--bpffs', '/nowhere'],
  },
  { command: 'maps', samples: 'samples/cilium', words: ['--node', 'node-a'] },
  { command: 'maps diff', samples: 'samples/cilium', words: ['--node', 'node-a', '--dump', 'samples/cilium-dump'] },
  { command: 'path', samples: 'samples/cilium', words: ['business/a', 'business/svc/server', '--reply'] },
  { command: 'path', samples: 'samples/shop', words: ['shop/client', 'shop/svc/web', '--datapath', 'iptables'] },
  { command: 'generate', samples: 'samples/flows/cluster.yaml', words: ['networkpolicy', '-A', ...flows] },
]

const folder = mkdtempSync(join(tmpdir(), 'portolan-cluster-'))
const servers = new Map<string, ApiServer>()

beforeAll(async () => {
  for (const samples of new Set(cases.map((one) => one.samples))) {
    servers.set(samples, await startApiServer({ objects: await readSamples(samples), mostItems: 3 }))
  }
})

afterAll(async () => {
  for (const server of servers.values()) await server.close()
  rmSync(folder, { recursive: true })
})

describe('from the cluster as from files', () => {
  test.each(cases)('portolan $command $words', async ({ command, samples, words }) => {
    const server = servers.get(samples)
    const kubeconfig = writeConfig(folder, { server: server?.url ?? '' })
    const name = command.split(' ')
    const files = await run([...name, ...words, '--from', samples])
    const live = await run([...name, ...words, '--kubeconfig', kubeconfig])
    expect(live.err).not.toMatch(/cluster\.unread-kind|bug of Portolan/)
    expect({ code: live.code, out: plain(live.out) }).toEqual({ code: files.code, out: plain(files.out) })
    expect(files.out.length).toBeGreaterThan(30)
    expect(server?.requests.filter((one) => !one.startsWith('GET '))).toEqual([])
  })

  test('policy diff tells a live cluster from files, and one context from another', async () => {
    const kubeconfig = writeConfig(folder, { server: servers.get('samples/policies')?.url ?? '' })
    const words = ['policy', 'diff', 'samples/policies/cluster.yaml']
    const files = await run([...words, 'samples/policies'])
    const live = await run([...words, 'cluster', '--kubeconfig', kubeconfig])
    expect(live).toMatchObject({ code: 1, out: files.out })
    const same = await run(['policy', 'diff', 'cluster', 'cluster:test', '--kubeconfig', kubeconfig])
    expect(same).toMatchObject({ code: 0, out: 'no connection differs\n' })
    expect((await run([...words, 'samples/policies', '--context', 'test'])).err).toMatch(
      /name it as F1 or F2: cluster\n/,
    )
  })

  test('policy audit tries policies of files beside those of the cluster', async () => {
    const server = servers.get('samples/flows/cluster.yaml')
    const kubeconfig = writeConfig(folder, { server: server?.url ?? '' })
    const words = ['policy', 'audit', ...flows, '--policies', 'samples/flows/proposed.yaml']
    const files = await run([...words, '--from', 'samples/flows/cluster.yaml'])
    const live = await run([...words, '--kubeconfig', kubeconfig])
    expect({ code: live.code, out: live.out }).toEqual({ code: files.code, out: files.out })
    const before = server?.requests.length
    const typo = await run([...words.slice(0, -1), 'samples/flows/propsed.yaml', '--kubeconfig', kubeconfig])
    expect(typo).toMatchObject({ code: 2, out: '' })
    expect(server?.requests.length).toBe(before)
    await run(words)
    expect(server?.requests.length).toBe(before)
  })

  test('each command of the table of kinds is tried', () => {
    const tried = new Set([...cases.map(({ command }) => command), 'policy diff'])
    expect([...tried].sort()).toEqual(Object.keys(commandKinds).sort())
  })
})

/** Where an object was read is what differs, and must. */
function plain(text: string): string {
  return text
    .replaceAll(/samples\/[\w./-]+?\.yaml(?::\d+)?(?: [A-Z]\w+ [\w.-]+\/[\w.-]+(?= spec))?/g, 'PLACE')
    .replaceAll(/cluster test: [\w./-]+/g, 'PLACE')
    .replaceAll(/"origin": \{[^}]*\}/g, '"origin": {}')
}

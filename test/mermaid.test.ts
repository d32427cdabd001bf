/** What is drawn is Mermaid to Mermaid’s own parser: diagrams of walks and maps, of every story and of every page. */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import DOMPurify from 'dompurify'
import mermaid from 'mermaid'
import { describe, expect, test } from 'vitest'
import { drawMaps } from '#compile/cilium/explain-maps'
import type { Walk } from '#model/walk'
import { prepareCilium } from '#trace/cilium/cilium-net'
import { walkCilium } from '#trace/cilium/walk-cilium'
import { drawWalk } from '#trace/draw-walk'
import { askMaps, service } from './cilium/ask-maps'
import { walk, web, world } from './journey/ask-journey'
import { networkPolicy, node } from './policy/policy-objects'

// Mermaid has texts cleaned for a page, which takes a page; its grammars take none.
Object.assign(DOMPurify, { addHook: () => {}, sanitize: (text: string) => text })

const root = join(dirname(fileURLToPath(import.meta.url)), '..')

/** Undefined for Mermaid, else what its parser says against it. */
async function fault(text: string): Promise<string | undefined> {
  try {
    await mermaid.parse(text)
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

const kinds = /^(?:sequenceDiagram|flowchart \w+|graph \w+)$/

/** From a line that opens a diagram to the first that cannot be of it. */
function diagramsIn(text: string): readonly string[] {
  const found: string[] = []
  const lines = text.split('\n')
  for (const [at, line] of lines.entries()) {
    if (!kinds.test(line)) continue
    const end = lines.findIndex((one, index) => index > at && !/^ {2,}\S/.test(one))
    found.push(`${lines.slice(at, end < 0 ? undefined : end).join('\n')}\n`)
  }
  return found
}

function filesUnder(folder: string): readonly string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(?:txt|md)$/.test(name))
    .map((name) => join(folder, name))
}

const drawn = ['test/cases', 'docs'].flatMap(filesUnder).flatMap((file) => {
  const diagrams = diagramsIn(readFileSync(join(root, file), 'utf8'))
  return diagrams.map((text, at) => [`${file}, ${at + 1}`, text] as const)
})

test('a text that is no Mermaid is refused', async () => {
  expect(await fault('sequenceDiagram\n  a->>>b hi\n')).toContain('Parse error')
  expect(await fault('flowchart LR\n  a["x --> b\n')).toContain('Parse error')
  expect(await fault('sequenceDiagram\n  participant P1 as a\n  P1->>P1: b\n')).toBeUndefined()
})

test('stories draw diagrams, and each of them is Mermaid', async () => {
  expect(drawn.map(([place]) => place).some((place) => place.startsWith('test/cases'))).toBe(true)
  for (const [place, text] of drawn) expect([place, await fault(text)]).toEqual([place, undefined])
})

describe('walks', () => {
  const drawings = (one: Walk): string => drawWalk(one)

  test.each(['iptables', 'nftables'] as const)('between kube-proxy nodes, %s mode', async (datapath) => {
    const deny = networkPolicy('shop/deny', { podSelector: {}, ingress: [] })
    const open = world({ datapath, objects: [web({ sessionAffinity: 'ClientIP' })] })
    const closed = world({ datapath, objects: [web(), deny] })
    const walks = [
      walk(open, 'shop/a', '10.96.0.50:80'),
      walk(open, '198.51.100.7', '192.168.1.3:30080'),
      walk(open, 'shop/a', '8.8.8.8:443'),
      walk(open, 'shop/a', '10.244.2.99:80'),
      walk(closed, 'shop/a', '10.96.0.50:80'),
    ]
    for (const one of walks) expect(await fault(drawings(one))).toBeUndefined()
  })

  test('by the maps of Cilium’s nodes, answers and drops among them', async () => {
    const objects = [
      { ...node('node-b', '192.168.1.11'), spec: { podCIDRs: ['10.244.2.0/24'] } },
      service('business/server', { type: 'NodePort', ports: [{ port: 80, targetPort: 8080, nodePort: 30080 }] }),
    ]
    const { world: own } = askMaps(objects).maps
    const net = prepareCilium(own.cluster, { slices: own.slices })
    const [a, c] = ['business/a', 'business/c'].map((name) => own.cluster.pods.get(name))
    if (a === undefined || c === undefined) throw new Error('the example world has no such pods')
    for (const [ip, port] of [
      [[0x0a60_0032], 80],
      [[0x0af4_021e], 8080],
      [[0x0808_0808], 443],
    ] as const) {
      const question = {
        source: { ip: { family: 'ipv4', words: [0x0af4_010a] }, pod: a },
        destination: { ip: { family: 'ipv4', words: ip }, ...(port === 8080 && { pod: c }) },
        protocol: 'TCP',
        sourcePort: 43210,
        port,
        isReplyWanted: true,
      } as const
      expect(await fault(drawings(walkCilium(net, question)))).toBeUndefined()
    }
  })

  test('names and texts that Mermaid would read as its own', async () => {
    const texts = [
      'end',
      'a; b',
      'a # b',
      '"quoted"',
      '<script>',
      'a: b',
      '%% c',
      'x->>y: z',
      '{"a":1}',
      'Note over P1: x',
      '`tick`',
      '[10.0.0.1]:80',
    ]
    const steps = texts.map((text) => ({
      at: { node: text, hook: text },
      did: text,
      because: text,
      packet: { protocol: 'TCP', source: text, destination: text },
    }))
    const verdict = { kind: 'denied', because: [{ code: 'x', sentence: texts.join(' ') }] } as const
    const one: Walk = {
      datapath: 'cilium',
      request: { steps, verdict, targets: [] },
      before: [],
      after: [],
      findings: [],
    }
    expect(await fault(drawWalk(one))).toBeUndefined()
  })
})

test('maps of a node', async () => {
  const objects = [
    service('business/server', { type: 'NodePort', ports: [{ port: 80, targetPort: 8080, nodePort: 30080 }] }),
  ]
  expect(await fault(drawMaps(askMaps(objects).dumped))).toBeUndefined()
})

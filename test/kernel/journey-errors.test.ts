/** Errors of ICMP between kube-proxy nodes, held to the kernel: who sends them as it reaches the client, and about what. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseIp } from '#base/ip'
import { parseSave } from '#compile/iptables/parse-save'
import type { Walk, WalkInner } from '#model/walk'
import { type ConntrackEntry, type ConntrackTuple, parseConntrackLines } from '#trace/conntrack-entry'
import type { GivenRules } from '#trace/journey/journey-world'
import { walk, web, world } from '../journey/ask-journey'
import { describeKernel } from './describe-kernel'
import { captureErrors, type ErrorCapture, type SeenError } from './error-capture'
import { createJourneyLab, type JourneyLab, type Label } from './journey-lab'
import { type Datapath, loadRules, journeyNodes as nodes } from './journey-rules'

type Node = (typeof nodes)[number]

/** Its pods listen at no port of UDP, and say so. */
const dns = {
  ...web({ clusterIP: '10.96.0.54', ports: [{ protocol: 'UDP', port: 53, targetPort: 5353, nodePort: 30053 }] }),
  metadata: { namespace: 'shop', name: 'dns' },
}
const objects = [dns]

const holders: Readonly<Record<string, { readonly name: string; readonly node: Node }>> = {
  '10.244.1.10': { name: 'shop/a', node: 'n1' },
  '10.244.1.20': { name: 'shop/b', node: 'n1' },
  '10.244.2.30': { name: 'shop/c', node: 'n2' },
}

describeKernel('errors between nodes', () => {
  let lab: JourneyLab
  const captures = new Map<Label, ErrorCapture>()
  let port = 42_000

  beforeAll(async () => {
    lab = await createJourneyLab()
    for (const label of ['a', 'b', 'c', 'world', ...nodes] as const)
      lab.run(label, ['sh', '-c', 'echo 0 > /proc/sys/net/ipv4/icmp_ratelimit'])
    for (const label of ['a', 'b', 'world'] as const) captures.set(label, captureErrors(lab.namespaceOf(label)))
  })
  afterAll(() => {
    for (const capture of captures.values()) capture.close()
    lab.close()
  })

  function tracked(node: Node): readonly ConntrackEntry[] {
    return parseConntrackLines(lab.run(node, ['sh', '-c', 'conntrack -L -p udp 2>/dev/null || true'])).entries
  }

  type Sent = { readonly from: 'a' | 'b' | 'world'; readonly to: string; readonly ttl?: number }
  type Met = { readonly seen: readonly SeenError[]; readonly tables: ReadonlyMap<string, readonly ConntrackEntry[]> }

  function sendOne({ from, to, ttl = 64 }: Sent): Met {
    port += 1
    for (const node of nodes) lab.run(node, ['sh', '-c', 'conntrack -F 2>/dev/null'])
    const [host = '', number = ''] = to.split(':')
    lab.send(from, { host, port: Number(number), sourcePort: port, ttl })
    const seen = captures.get(from)?.next() ?? []
    return { seen, tables: new Map(nodes.map((node) => [node, tracked(node)])) }
  }

  /** The datagram as its backend got it: what answers it turns around. */
  function arrivedOf({ tables }: Met, way: readonly Node[]): ConntrackTuple {
    const last = way.map((node) => tables.get(node)?.at(-1)?.reply).findLast((one) => one !== undefined)
    if (last === undefined) throw new Error('no node tracks the datagram')
    return last
  }

  function innerOf({ source, sourcePort = 0, destination, destinationPort = 0 }: ConntrackTuple): WalkInner {
    const [from, to] = [parseIp(destination), parseIp(source)]
    if (from === undefined || to === undefined) throw new Error('a row has no address')
    return { protocol: 'UDP', source: from, sourcePort: destinationPort, destination: to, port: sourcePort }
  }

  type Told = { readonly datapath: Datapath; readonly met: Met; readonly sender: string; readonly inner: WalkInner }
  type Kind = { readonly type: number; readonly code: number; readonly rulesets?: ReadonlyMap<string, GivenRules> }

  function tell({ datapath, met, sender, inner }: Told, { type, code, rulesets }: Kind): Walk {
    const setting = { conntrack: met.tables, ...(rulesets !== undefined && { rulesets }) }
    const one = world({ datapath, objects, setting })
    const to = inner.source.words.flatMap((word) => [word >>> 24, (word >>> 16) & 255, (word >>> 8) & 255, word & 255])
    return walk(one, sender, to.slice(0, 4).join('.'), {
      protocol: 'ICMP',
      icmpType: type,
      icmpCode: code,
      about: inner,
      isReplyWanted: false,
    })
  }

  function expectSame({ request }: Walk, seen: readonly SeenError[]): void {
    expect(request.verdict.kind).toBe('allowed')
    const last = request.steps.at(-1)?.packet
    const [error] = seen
    expect([last?.source, last?.destination, last?.about]).toEqual([
      error?.source,
      error?.destination,
      `UDP ${error?.inside}`,
    ])
  }

  for (const datapath of ['iptables', 'nftables'] as const) {
    test(`${datapath}: port unreachable comes to each client as from where it sent to`, () => {
      loadRules(lab, world({ datapath, objects }), datapath)
      const cases: readonly (Sent & { readonly way: readonly Node[] })[] = [
        { from: 'a', to: '10.244.2.30:5353', way: ['n1', 'n2'] },
        ...Array.from({ length: 2 }, () => ({ from: 'a', to: '10.96.0.54:53', way: ['n1', 'n2'] }) as const),
        ...Array.from({ length: 3 }, () => ({ from: 'b', to: '10.96.0.54:53', way: ['n1', 'n2'] }) as const),
        ...Array.from(
          { length: 3 },
          () => ({ from: 'world', to: '192.168.1.3:30053', way: ['n3', 'n1', 'n2'] }) as const,
        ),
        ...Array.from({ length: 3 }, () => ({ from: 'world', to: '192.168.1.1:30053', way: ['n1', 'n2'] }) as const),
        { from: 'a', to: '192.168.1.3:30053', way: ['n1', 'n2', 'n3'] },
      ]
      for (const { way, ...sent } of cases) {
        const met = sendOne(sent)
        expect(met.seen).toHaveLength(1)
        const inner = innerOf(arrivedOf(met, way))
        const backend =
          holders[
            inner.destination.words.map((word) => [24, 16, 8, 0].map((by) => (word >>> by) & 255).join('.')).join()
          ]
        expectSame(tell({ datapath, met, sender: backend?.name ?? '', inner }, { type: 3, code: 3 }), met.seen)
      }
    })

    test(`${datapath}: that its TTL is used up is told by a router whom no connection knows`, () => {
      loadRules(lab, world({ datapath, objects }), datapath)
      for (let again = 0; again < 3; again++) {
        const met = sendOne({ from: 'a', to: '10.96.0.54:53', ttl: 2 })
        const row = met.tables.get('n1')?.at(-1)
        // Behind one hop alone the datagram reaches its pod, which says what it says.
        if (row?.reply.source !== '10.244.2.30') continue
        expect(met.seen.map(({ type }) => type)).toEqual([11])
        expectSame(
          tell({ datapath, met, sender: 'node/n2', inner: innerOf(row.reply) }, { type: 11, code: 0 }),
          met.seen,
        )
      }
    })

    test(`${datapath}: about what a node does not track it gets as far as the rules for it let it`, () => {
      loadRules(lab, world({ datapath, objects }), datapath)
      const raw = '*raw\n-A PREROUTING -p udp -j NOTRACK\nCOMMIT\n'
      lab.run('n1', ['iptables-restore', '--noflush'], raw)
      const { rulesets } = parseSave(lab.run('n1', ['iptables-save']), 'n1')
      const met = sendOne({ from: 'a', to: '10.244.2.30:5353' })
      expect(met.tables.get('n1')).toEqual([])
      const inner = innerOf(arrivedOf(met, ['n2']))
      const given = datapath === 'iptables' ? { rulesets: new Map([['n1', { rulesets }]]) } : {}
      const told = tell({ datapath, met, sender: 'shop/c', inner }, { type: 3, code: 3, ...given })
      lab.run('n1', ['iptables', '-t', 'raw', '-F'])
      if (datapath === 'nftables') return expectSame(told, met.seen)
      expect([told.request.verdict.kind, met.seen]).toEqual(['dropped', []])
      expect(told.request.verdict.because[0].rule).toContain('--ctstate INVALID')
    })
  }
})

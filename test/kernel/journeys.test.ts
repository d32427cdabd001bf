/** Journeys between kube-proxy nodes, held to the kernel: the packet goes, the answer returns, and both sockets see the ends that were told. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseSave } from '#compile/iptables/parse-save'
import type { Walk } from '#model/walk'
import { type ConntrackTuple, parseConntrackLines } from '#trace/conntrack-entry'
import type { JourneyWorld } from '#trace/journey/journey-world'
import { walk, web, world } from '../journey/ask-journey'
import type { Raw } from '../policy/policy-objects'
import { describeKernel } from './describe-kernel'
import { createJourneyLab, type JourneyLab, type Label, type Seen } from './journey-lab'
import { loadRules, journeyNodes as nodes } from './journey-rules'

const lone: Raw = {
  ...web({ type: 'ClusterIP', clusterIP: '10.96.0.51', selector: { app: 'none' } }),
  metadata: { namespace: 'shop', name: 'lone' },
}
const local: Raw = {
  ...web({
    type: 'LoadBalancer',
    clusterIP: '10.96.0.52',
    externalTrafficPolicy: 'Local',
    ports: [{ port: 80, targetPort: 8080, nodePort: 30082 }],
  }),
  metadata: { namespace: 'shop', name: 'local' },
  status: { loadBalancer: { ingress: [{ ip: '203.0.113.9' }] } },
}
const sticky: Raw = {
  ...web({ type: 'ClusterIP', clusterIP: '10.96.0.53', sessionAffinity: 'ClientIP' }),
  metadata: { namespace: 'shop', name: 'sticky' },
}
const objects = [web(), lone, local, sticky]

describeKernel('journeys', () => {
  let lab: JourneyLab
  let port = 40_000

  beforeAll(async () => {
    lab = await createJourneyLab()
  })
  afterAll(() => lab.close())

  function reset(): void {
    for (const node of nodes) {
      lab.run(node, ['nft', 'flush', 'ruleset'])
      lab.run(node, ['sh', '-c', 'conntrack -F 2>/dev/null'])
    }
  }

  type Asked = { readonly from: Label; readonly source: string; readonly to: string; readonly entryNode?: string }

  /** The kernel's choice of a backend is the one that is followed. */
  function go(one: JourneyWorld, { from, source, to, entryNode }: Asked): { readonly seen: Seen; readonly told: Walk } {
    port += 1
    for (const node of nodes) lab.run(node, ['sh', '-c', 'conntrack -F 2>/dev/null'])
    const [host = '', number = ''] = to.split(':')
    const seen = lab.connect(from, host, Number(number), port)
    const backend = seen.error === undefined ? seen.server.local : undefined
    const more = {
      sourcePort: port,
      ...(entryNode !== undefined && { entryNode }),
      ...(backend !== undefined && { backend }),
    }
    return { seen, told: walk(one, source, to, more) }
  }

  /** Ports that the kernel draws are told by what they are: drawn. */
  function settled(text: string): string {
    const [ip, number] = text.split(':')
    return `${ip}:${['80', '443', '8080', '30080', '30082', String(port)].includes(number ?? '') ? number : 'drawn'}`
  }

  /** A port that is drawn may be that of a Service. */
  function settledClient(text: string): string {
    const [ip, number] = text.split(':')
    return `${ip}:${number === String(port) ? number : 'drawn'}`
  }

  function tupleText({ source, destination, sourcePort, destinationPort }: ConntrackTuple): string {
    return `${settled(`${source}:${sourcePort}`)} ${settled(`${destination}:${destinationPort}`)}`
  }

  function tracked(node: (typeof nodes)[number]): readonly string[] {
    const { entries } = parseConntrackLines(lab.run(node, ['sh', '-c', 'conntrack -L -p tcp 2>/dev/null || true']))
    return entries.map(({ original, reply }) => `${node} ${tupleText(original)} / ${tupleText(reply)}`)
  }

  function expectAgreement({ seen, told }: { readonly seen: Seen; readonly told: Walk }): void {
    const { request, reply } = told
    expect(request.verdict.kind).toBe('allowed')
    if (seen.error !== undefined)
      throw new Error(`${request.steps[0]?.packet.destination}: the client met ${seen.error}`)
    const arrived = request.steps.at(-1)?.packet
    expect([settledClient(arrived?.source ?? ''), arrived?.destination]).toEqual([
      settledClient(seen.server.remote),
      seen.server.local,
    ])
    const back = reply?.steps.at(-1)?.packet
    expect([back?.source, back?.destination]).toEqual([seen.client.remote, seen.client.local])
    const rows = told.after.filter(({ table }) => table === 'conntrack')
    const foretold = rows.flatMap(({ node, row }) =>
      parseConntrackLines(row).entries.map((one) => `${node} ${tupleText(one.original)} / ${tupleText(one.reply)}`),
    )
    expect([...foretold].sort()).toEqual(nodes.flatMap(tracked).sort())
  }

  const a = { from: 'a', source: 'shop/a' } as const
  const world7 = { from: 'world', source: '192.168.1.254' } as const

  for (const datapath of ['iptables', 'nftables'] as const) {
    test(`${datapath}: pods, ClusterIPs and node ports, and the rows that they leave`, () => {
      reset()
      const one = world({ datapath, objects })
      loadRules(lab, one, datapath)
      const cases: readonly Asked[] = [
        { ...a, to: '10.244.1.20:8080' },
        { ...a, to: '10.244.2.30:8080' },
        ...Array.from({ length: 3 }, () => ({ ...a, to: '10.96.0.50:80' })),
        ...Array.from({ length: 3 }, () => ({ from: 'b', source: 'shop/b', to: '10.96.0.50:80' }) as const),
        { from: 'n1', source: 'node/n1', to: '10.96.0.50:80' },
        { from: 'n3', source: 'node/n3', to: '10.244.2.30:8080' },
        ...Array.from({ length: 2 }, () => ({ ...world7, to: '192.168.1.3:30080' })),
        { ...world7, to: '192.168.1.1:30082' },
        { ...world7, to: '203.0.113.9:80', entryNode: 'n1' },
        { ...a, to: '192.168.1.3:30080' },
      ]
      for (const asked of cases) expectAgreement(go(one, asked))
    })

    test(`${datapath}: what is rejected is refused, and what is dropped waits in vain`, () => {
      reset()
      const one = world({ datapath, objects })
      loadRules(lab, one, datapath)
      const rejected = go(one, { ...a, to: '10.96.0.51:80' })
      expect([rejected.told.request.verdict.kind, rejected.seen.error]).toEqual(['rejected', 'ECONNREFUSED'])
      expect(nodes.flatMap(tracked)).toEqual([])
      const wrong = go(one, { ...world7, to: '192.168.1.3:30082' })
      expect([wrong.told.request.verdict.kind, wrong.seen.error]).toEqual(['dropped', 'ETIMEDOUT'])
      expect(wrong.told.after).toEqual([])
      const nobody = go(one, { ...a, to: '10.96.0.50:81' })
      const kind = datapath === 'iptables' ? ['dropped', 'ETIMEDOUT'] : ['rejected', 'ECONNREFUSED']
      expect([nobody.told.request.verdict.kind, nobody.seen.error]).toEqual(kind)
    })

    test(`${datapath}: a client that was noted goes back where it went`, () => {
      reset()
      const plain = world({ datapath, objects })
      loadRules(lab, plain, datapath)
      const first = go(plain, { ...a, to: '10.96.0.53:80' })
      expectAgreement(first)
      const remembered = first.told.after.filter(({ table }) => table !== 'conntrack')
      const later = world({ datapath, objects, setting: { remembered } })
      for (let again = 0; again < 3; again++) {
        const { seen, told } = go(later, { ...a, to: '10.96.0.53:80' })
        expectAgreement({ seen, told })
        expect(told.request.targets).toHaveLength(1)
      }
    })
  }

  test('the rules of a real node take the place of the computed ones: a plugin’s masquerade is walked', () => {
    reset()
    const plain = world({ datapath: 'iptables', objects })
    loadRules(lab, plain, 'iptables')
    const plugin = '*nat\n-A POSTROUTING -s 10.244.0.0/16 ! -d 10.244.0.0/16 -j MASQUERADE\nCOMMIT\n'
    for (const node of nodes) lab.run(node, ['iptables-restore', '--noflush'], plugin)
    const rulesets = new Map(
      nodes.map((node) => [node, { rulesets: parseSave(lab.run(node, ['iptables-save']), node).rulesets }]),
    )
    const real = world({ datapath: 'iptables', objects, setting: { rulesets } })
    const out = go(real, { ...a, to: '8.8.8.8:443' })
    expectAgreement(out)
    expect(out.told.findings).toEqual([])
    expect(out.seen.error === undefined && out.seen.server.remote.split(':')[0]).toBe('192.168.1.1')
    expectAgreement(go(real, { ...a, to: '10.96.0.50:80' }))
  })
})

/** Proves the tools of this folder on a kernel: packets pass, every walk is read, translations are seen, nothing is left behind. */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { startCapture } from './capture'
import { readConnections } from './connections'
import { describeKernel } from './describe-kernel'
import { createNode, type KernelNode } from './kernel-node'
import {
  addRules,
  ipv4Rules,
  ipv6Rules,
  loadNftables,
  loadRules,
  loadSets,
  saveRules,
  saveSets,
  withoutMoments,
} from './rules'
import { fromLocal, type SentPacket } from './sent-packet'
import { type PacketOutcome, tracePackets } from './trace-packets'
import { startTrace, type TraceReader } from './trace-reader'
import type { Walk } from './walk'

const service = `*nat
:SERVICE - [0:0]
:ENDPOINT - [0:0]
:MARK-MASQ - [0:0]
:MASQ - [0:0]
-A PREROUTING -m comment --comment "to the service # handle 3" -j SERVICE
-A OUTPUT -j SERVICE
-A POSTROUTING -j MASQ
-A ENDPOINT -s 198.51.100.0/24 -j RETURN
-A ENDPOINT -j MARK-MASQ
-A ENDPOINT -p tcp -m tcp -j DNAT --to-destination 10.244.1.9:8080
-A MARK-MASQ -j MARK --set-xmark 0x4000/0x4000
-A MASQ -m mark ! --mark 0x4000/0x4000 -j RETURN
-A MASQ -j MARK --set-xmark 0x4000/0x0
-A MASQ -j MASQUERADE --random-fully
-A SERVICE -d 10.96.0.1/32 -p tcp -m tcp --dport 80 -g ENDPOINT
-A SERVICE -d 10.96.0.2/32 -p udp -m udp --dport 53 -j DNAT --to-destination 192.168.50.11:5353
COMMIT
*filter
-A INPUT -p tcp -m tcp --dport 99 -j DROP
-A FORWARD -p tcp -m tcp --dport 9999 -j REJECT --reject-with icmp-port-unreachable
-A OUTPUT -p udp -m udp --dport 98 -j DROP
COMMIT
`

const toService: SentPacket = {
  from: 'eth0',
  protocol: 'tcp',
  source: '203.0.113.7',
  sourcePort: 5000,
  destination: '10.96.0.1',
  destinationPort: 80,
}

const fromNode: SentPacket = { ...toService, from: fromLocal, source: '192.168.50.11' }

/** A walk in short: each step's chain with its rule's text or its policy. */
function linesOf(walk: Walk): string[] {
  return walk.steps.map((step) => `${step.table} ${step.kind === 'rule' ? step.rule : `${step.chain} ${step.kind}`}`)
}

function onlyWalk(outcomes: readonly PacketOutcome[]): Walk {
  const [outcome] = outcomes
  if (outcome === undefined || outcome.walks.length !== 1) throw new Error('not one walk')
  return outcome.walks[0]
}

describeKernel('a node in a namespace', () => {
  let node: KernelNode
  let reader: TraceReader
  const trace = (...packets: readonly SentPacket[]) => tracePackets({ node, reader }, packets)

  beforeAll(() => {
    node = createNode()
    reader = startTrace(node)
  })
  beforeEach(() => {
    expect(loadRules(node, ipv4Rules, service)).toMatchObject({ ok: true })
  })
  afterAll(() => {
    reader?.close()
    node?.close()
  })

  test.each(['tcp', 'udp', 'sctp', 'icmp'] as const)('%s passes in both families, and its walk is read', (protocol) => {
    expect(loadRules(node, ipv6Rules, '*filter\n-A FORWARD -m conntrack --ctstate INVALID -j DROP\nCOMMIT\n').ok).toBe(
      true,
    )
    const ports = { sourcePort: 4000, destinationPort: 8080 }
    const ipv4 = { from: 'eth0', protocol, source: '203.0.113.9', destination: '10.244.1.9', ...ports }
    const ipv6 = { ...ipv4, source: '2001:db8::9', destination: 'fd00:10:244:1::9' }
    for (const { packet, walks } of trace(ipv4, ipv6)) {
      const family = packet === ipv4 ? 'ipv4' : 'ipv6'
      const name = protocol === 'icmp' && family === 'ipv6' ? 'icmpv6' : protocol
      expect(walks[0]).toMatchObject({
        entry: 'wire',
        packet: { family, protocol: name, inInterface: 'eth0', ttl: 64 },
      })
      expect(linesOf(walks[0])).toContain('filter FORWARD policy')
      expect(walks[0].fate).toMatchObject({ kind: 'left', outInterface: 'cni0', packet: { ttl: 63 } })
    }
  })

  test('a translated and masqueraded packet is one walk from PREROUTING through POSTROUTING', () => {
    const walk = onlyWalk(trace(toService))
    expect(linesOf(walk)).toEqual([
      'nat -A PREROUTING -m comment --comment "to the service # handle 3" -j SERVICE',
      'nat -A SERVICE -d 10.96.0.1/32 -p tcp -m tcp --dport 80 -g ENDPOINT',
      'nat -A ENDPOINT -j MARK-MASQ',
      'nat -A MARK-MASQ -j MARK --set-xmark 0x4000/0x4000',
      'nat -A ENDPOINT -p tcp -m tcp -j DNAT --to-destination 10.244.1.9:8080',
      'filter FORWARD policy',
      'nat -A POSTROUTING -j MASQ',
      'nat -A MASQ -j MARK --set-xmark 0x4000/0x0',
      'nat -A MASQ -j MASQUERADE --random-fully',
    ])
    expect(walk.steps.map((step) => step.verdict.kind)).toEqual([
      'jump',
      'goto',
      'jump',
      'continue',
      'accept',
      'accept',
      'jump',
      'continue',
      'accept',
    ])
    expect(walk.steps[4]).toMatchObject({ index: 2, packet: { destination: '10.96.0.1', destinationPort: 80 } })
    expect(walk.sights.map((sight) => [sight.hook, sight.packet.source, sight.packet.destination, sight.mark])).toEqual(
      [
        ['prerouting', '203.0.113.7', '10.244.1.9', 0x4000],
        ['forward', '203.0.113.7', '10.244.1.9', 0x4000],
        ['postrouting', '10.244.1.1', '10.244.1.9', 0],
      ],
    )
  })

  test('RETURN goes back to the caller, and a base chain ends with its policy', () => {
    const walk = onlyWalk(trace({ ...toService, source: '198.51.100.7' }))
    expect(linesOf(walk)).toEqual([
      'nat -A PREROUTING -m comment --comment "to the service # handle 3" -j SERVICE',
      'nat -A SERVICE -d 10.96.0.1/32 -p tcp -m tcp --dport 80 -g ENDPOINT',
      'nat -A ENDPOINT -s 198.51.100.0/24 -j RETURN',
      'nat PREROUTING policy',
      'filter FORWARD policy',
      'nat -A POSTROUTING -j MASQ',
      'nat -A MASQ -m mark ! --mark 0x4000/0x4000 -j RETURN',
      'nat POSTROUTING policy',
    ])
  })

  test('DROP and REJECT are told apart, with the rule that did it', () => {
    const [dropped, rejected] = trace(
      { ...toService, destination: '192.168.50.11', destinationPort: 99 },
      { ...toService, destination: '10.244.1.9', destinationPort: 9999 },
    )
    expect(dropped?.walks[0].fate).toMatchObject({ kind: 'dropped', at: { chain: 'INPUT', index: 0 } })
    expect(rejected?.walks[0].fate).toMatchObject({ kind: 'rejected', at: { chain: 'FORWARD', index: 0 } })
  })

  test('a packet that no rule ends but routing does vanishes after PREROUTING', () => {
    const walk = onlyWalk(trace({ ...toService, ttl: 1 }))
    expect(walk.fate).toEqual({ kind: 'vanished' })
    expect(walk.sights.map((sight) => sight.hook)).toEqual(['prerouting'])
  })

  test('a process on the node sends through OUTPUT', () => {
    const [syn, echo] = trace(fromNode, { ...fromNode, protocol: 'icmp', icmp: { type: 8, code: 0, id: 4711 } })
    expect(syn?.walks[0]).toMatchObject({
      entry: 'local',
      fate: { kind: 'left', packet: { destination: '10.244.1.9' } },
    })
    expect(syn?.walks[0].steps[0]).toMatchObject({ chain: 'OUTPUT', rule: '-A OUTPUT -j SERVICE' })
    expect(echo?.walks[0].packet.icmp).toEqual({ type: 8, code: 0, id: 4711 })
  })

  test('a local packet that DNAT turns back to the node has a second walk, on lo', () => {
    const [outcome] = trace({ ...fromNode, protocol: 'udp', destination: '10.96.0.2', destinationPort: 53 })
    expect(outcome?.walks.map(({ entry, fate }) => [entry, fate.kind])).toEqual([
      ['local', 'left'],
      ['wire', 'delivered'],
    ])
  })

  test('the system call of a local sender tells what OUTPUT dropped', () => {
    const [outcome] = trace({ ...fromNode, protocol: 'udp', destinationPort: 98 })
    expect(outcome).toMatchObject({ sendError: 'EPERM', walks: [{ fate: { kind: 'dropped' } }] })
  })

  test('frames at the far ends and connections show the same translation as the walks', () => {
    const capture = startCapture(node, 'cni0')
    const walk = onlyWalk(trace(toService))
    const frames = capture.read(1)
    capture.close()
    const { source, sourcePort, destination, destinationPort, id } = walk.sights.at(-1)?.packet ?? {}
    expect(frames).toEqual([{ protocol: 6, source, sourcePort, destination, destinationPort, id }])
    expect(readConnections(node)).toContainEqual({
      protocol: 'tcp',
      original: { source: '203.0.113.7', sourcePort: 5000, destination: '10.96.0.1', destinationPort: 80 },
      reply: { source: destination, sourcePort: destinationPort, destination: source, destinationPort: sourcePort },
      mark: 0,
    })
  })

  test('1500 packets in one call lose no walk', { timeout: 60_000 }, () => {
    const packets = Array.from({ length: 1500 }, (_, index) => ({ ...toService, sourcePort: 10_000 + index }))
    const outcomes = trace(...packets)
    expect(outcomes.map(({ packet }) => packet)).toEqual(packets)
    expect(outcomes.map(({ walks: [walk] }) => walk.packet.sourcePort)).toEqual(packets.map((one) => one.sourcePort))
    expect(new Set(outcomes.map(({ walks: [walk] }) => `${walk.steps.length} ${walk.fate.kind}`))).toEqual(
      new Set(['9 left']),
    )
  })

  test('rules that come while the trace runs are named as they are now', () => {
    expect(addRules(node, ipv4Rules, '*filter\n-I FORWARD -m mark --mark 0x4000/0x4000 -j ACCEPT\nCOMMIT\n').ok).toBe(
      true,
    )
    expect(linesOf(onlyWalk(trace(toService)))).toContain('filter -A FORWARD -m mark --mark 0x4000/0x4000 -j ACCEPT')
  })

  test('what is loaded is saved back, and what cannot be loaded says why', () => {
    expect(withoutMoments(saveRules(node, ipv4Rules))).toContain(':FORWARD ACCEPT\n')
    expect(saveRules(node, ipv4Rules, ['--counters'])).toMatch(/^\[\d+:\d+\] -A OUTPUT -j SERVICE$/m)
    const refused = loadRules(node, ipv4Rules, '*nat\n-A PREROUTING -j NOWHERE\nCOMMIT\n')
    expect(refused).toMatchObject({ ok: false, message: expect.stringContaining("'NOWHERE' does not exist") })
    expect(loadSets(node, 'create ports bitmap:port range 80-90\nadd ports 81\n').ok).toBe(true)
    expect(saveSets(node)).toBe('create ports bitmap:port range 80-90\nadd ports 81\n')
  })
})

describeKernel('a node under nftables', () => {
  test('its walks name the rules as nft lists them', () => {
    const node = createNode()
    const reader = startTrace(node)
    try {
      const map = '10.96.0.1 . tcp . 80 : goto endpoint, 10.96.0.3 . tcp . 80 : goto nothing'
      const script = `table ip proxy {
        chain nothing { reject; }
        chain endpoint { meta l4proto tcp dnat to 10.244.1.9:8080; }
        chain services { ip daddr . meta l4proto . th dport vmap { ${map} }; }
        chain pre { type nat hook prerouting priority dstnat; jump services; }
      }`
      expect(loadNftables(node, script)).toEqual({ ok: true, output: '' })
      const [passed, rejected] = tracePackets({ node, reader }, [toService, { ...toService, destination: '10.96.0.3' }])
      expect(passed && linesOf(passed.walks[0])).toEqual([
        'proxy jump services',
        `proxy ip daddr . meta l4proto . th dport vmap { ${map} }`,
        'proxy meta l4proto tcp dnat to 10.244.1.9:8080',
      ])
      expect(rejected?.walks[0].fate).toMatchObject({ kind: 'rejected', at: { chain: 'nothing', index: 0 } })
    } finally {
      reader.close()
      node.close()
    }
  })
})

describeKernel('a node under iptables-legacy', () => {
  test('its packets are seen at every hook, though its rules report nothing', () => {
    const node = createNode()
    const reader = startTrace(node)
    try {
      expect(loadRules(node, { variant: 'legacy', family: 'ipv4' }, service)).toMatchObject({ ok: true })
      const walk = onlyWalk(tracePackets({ node, reader }, [toService]))
      expect(walk.steps).toEqual([])
      expect(walk.fate).toMatchObject({ kind: 'left', packet: { source: '10.244.1.1', destination: '10.244.1.9' } })
    } finally {
      reader.close()
      node.close()
    }
  })
})

describeKernel('namespaces', () => {
  const moduleUrl = new URL('./kernel-node.ts', import.meta.url).href
  const namespacesOf = (pid: number | undefined) =>
    readdirSync('/run/netns').filter((name) => name.startsWith(`portolan-${pid}-`))

  test('are gone when their node is closed', () => {
    const node = createNode()
    expect(existsSync(`/run/netns/${node.namespace}`)).toBe(true)
    node.close()
    expect(namespacesOf(process.pid)).toEqual([])
  })

  test.each([
    ['a normal exit', 'process.exit(0)'],
    ['an exception', 'throw new Error("on purpose")'],
    ['SIGTERM', 'process.kill(process.pid, "SIGTERM"); setInterval(() => {}, 1000)'],
    ['SIGINT', 'process.kill(process.pid, "SIGINT"); setInterval(() => {}, 1000)'],
  ])('are gone after %s', (_, ending) => {
    const program = `const { createNode } = await import('${moduleUrl}')
      const node = createNode()
      console.log(node.namespace)
      ${ending}`
    const args = ['--import', 'tsx', '--input-type=module', '--eval', program]
    const child = spawnSync(process.execPath, args, { encoding: 'utf8', timeout: 30_000 })
    expect(child.stdout).toContain(`portolan-${child.pid}-`)
    expect(namespacesOf(child.pid)).toEqual([])
  })
})

/** The golden scenario's packets, each with the fate that real packets met; and what a trace says of what it does not know. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { parseEndpoint } from '#base/ip'
import { parseSave } from '#compile/iptables/parse-save'
import type { PacketProtocol } from '#model/packet'
import type { Trace, VerdictKind } from '#model/trace'
import { type RulesetTraceInput, traceRuleset } from './trace-ruleset'

const g1 = readFileSync(new URL('../../test/golden/g1.save.txt', import.meta.url), 'utf8')
const nodeIp = '192.168.50.11'

type Ask = Partial<RulesetTraceInput> & {
  readonly to: string
  readonly from?: string
  readonly proto?: PacketProtocol
  readonly text?: string
}

function ask({ to, from, proto = 'tcp', text = g1, ...rest }: Ask): Trace {
  const target = parseEndpoint(to)
  if (target === undefined) throw new Error(`bad test address ${to}`)
  const source = from === undefined ? undefined : parseEndpoint(from)
  const packet = {
    destination: target.ip,
    protocol: proto,
    ...(target.port === undefined ? {} : { destinationPort: target.port }),
    ...(source === undefined ? {} : { source: source.ip }),
    ...(proto === 'icmp' ? { icmp: { type: 8, code: 0 } } : {}),
  }
  return traceRuleset({ rulesets: parseSave(text, 'g1.save').rulesets, nodeIps: [nodeIp], packet, ...rest }).value
}

const addresses = (trace: Trace): readonly string[] => trace.targets.map((target) => target.address)
const web = ['10.244.1.10:8080', '10.244.1.9:8080', '10.244.2.3:8080']
const api = ['10.244.1.9:9000', '10.244.2.3:9000']
const pay = ['10.244.1.11:8443', '10.244.2.11:8443']
const pod = '10.244.1.30'
const outside = '203.0.113.5'

type Case = readonly [
  id: string,
  from: string,
  to: string,
  kind: VerdictKind,
  targets: readonly string[],
  source: 'kept' | 'translated',
]

const cases: readonly Case[] = [
  ['T1', pod, '10.96.10.1:80', 'allowed', web, 'kept'],
  ['T3', outside, '10.96.10.1:80', 'allowed', web, 'translated'],
  ['T4', nodeIp, '10.96.10.1:80', 'allowed', web, 'translated'],
  ['T5', outside, '198.51.100.20:80', 'allowed', ['10.244.1.9:9000'], 'kept'],
  ['T6', pod, '198.51.100.20:80', 'allowed', api, 'kept'],
  ['T7', nodeIp, '198.51.100.20:80', 'allowed', api, 'translated'],
  ['T8', outside, '192.168.50.11:31080', 'allowed', ['10.244.1.9:9000'], 'kept'],
  ['T9', pod, '192.168.50.11:31080', 'allowed', api, 'kept'],
  ['T10', '127.0.0.1', '127.0.0.1:31080', 'allowed', api, 'translated'],
  ['T11', pod, '10.96.20.4:6379', 'dropped', [], 'kept'],
  ['T12', outside, '198.51.100.21:443', 'allowed', pay, 'translated'],
  ['T13', '203.0.113.200', '198.51.100.21:443', 'dropped', [], 'kept'],
  ['T14', pod, '198.51.100.21:443', 'dropped', [], 'kept'],
  ['T15', nodeIp, '198.51.100.21:443', 'allowed', pay, 'translated'],
  ['T16', '198.51.100.21', '198.51.100.21:443', 'allowed', pay, 'translated'],
  ['T17', '203.0.113.200', '192.168.50.11:31443', 'allowed', pay, 'translated'],
  ['T18', pod, '10.96.20.3:80', 'rejected', [], 'kept'],
  ['T19', outside, '192.168.50.11:31090', 'rejected', [], 'kept'],
  ['T20', pod, '10.96.10.1:443', 'allowed', [], 'kept'],
  ['T21', pod, '10.96.99.99:80', 'allowed', [], 'kept'],
  ['T22', outside, '192.168.50.11:32111', 'allowed', [], 'kept'],
  ['T23', outside, '203.0.113.77:80', 'allowed', ['10.244.1.9:9000'], 'kept'],
]

describe('the golden scenario', () => {
  test.each(cases)('%s: %s to %s is %s', (_, from, to, kind, targets, source) => {
    const trace = ask({ from, to })
    expect(trace.verdict.kind).toBe(kind)
    expect(addresses(trace)).toEqual(targets)
    expect(trace.masquerade.map((entry) => entry.condition)).toEqual(source === 'kept' ? [] : ['always'])
  })

  test('T2: a pod that reaches itself is masqueraded, and only then', () => {
    const trace = ask({ from: '10.244.1.9', to: '10.96.10.1:80' })
    expect(addresses(trace)).toEqual(web)
    const marked = trace.hops.filter((hop) => hop.at.chain === 'KUBE-MARK-MASQ' && hop.at.line !== undefined)
    expect(marked).toHaveLength(1)
    expect(marked[0]?.share).toBe(0.3333)
    expect(trace.masquerade.map((entry) => entry.condition)).toEqual(['it is sent to 10.244.1.9:8080'])
  })

  test('T24: a client that is remembered goes where it went before', () => {
    const trace = ask({ from: outside, to: '192.168.50.11:31443' })
    expect(trace.branches?.map((branch) => [branch.when, branch.targets])).toEqual([
      [
        'the client is in list KUBE-SEP-OQ6BRIBHDQ4LYMDD of the last 600 s',
        [{ address: '10.244.1.11:8443', share: 1 }],
      ],
      [
        'the client is in list KUBE-SEP-UF36FKB4MVUNAFHY of the last 600 s',
        [{ address: '10.244.2.11:8443', share: 1 }],
      ],
    ])
  })

  test('T29: the other protocol has no rule', () => {
    const trace = ask({ from: pod, to: '10.96.10.1:80', proto: 'udp' })
    expect(trace.verdict.kind).toBe('allowed')
    expect(trace.targets).toEqual([])
  })

  test('T30: one port number, two protocols, two Services ports', () => {
    const udp = ask({ from: pod, to: '10.96.0.10:53', proto: 'udp' })
    const tcp = ask({ from: pod, to: '10.96.0.10:53', proto: 'tcp' })
    expect(udp.verdict.because[0].sentence).toContain('kube-system/kube-dns:dns cluster IP')
    expect(tcp.verdict.because[0].sentence).toContain('kube-system/kube-dns:dns-tcp cluster IP')
  })

  test('T31: a chain that is missing from the dump makes the answer unknown and is named', () => {
    const text = g1
      .split('\n')
      .filter((line) => !line.includes(':KUBE-SVC-E3') && !line.startsWith('-A KUBE-SVC-E3'))
      .join('\n')
    const parsed = parseSave(text, 'g1.save')
    expect(parsed.findings.map((finding) => finding.message)).toEqual([
      'KUBE-SERVICES refers to a chain that is not in this dump: KUBE-SVC-E3PXEPMWAWIUT6ZV (table nat)',
    ])
    const trace = ask({ text, from: pod, to: '10.96.10.1:80' })
    expect(trace.verdict.kind).toBe('unknown')
    expect(trace.verdict.because[0].line).toBe(parsed.findings[0]?.origin?.line)
  })
})

describe('what is not known of the packet', () => {
  test('a masquerade that depends on the source is a condition', () => {
    const trace = ask({ to: '10.96.10.1:80' })
    expect(trace.masquerade[0]?.condition).toBe('the source is outside 10.244.0.0/16')
    expect(trace.masquerade.slice(1).map((entry) => entry.condition)).toEqual([
      'the source is 10.244.1.10 and it is sent to 10.244.1.10:8080',
      'the source is 10.244.1.9 and it is sent to 10.244.1.9:8080',
      'the source is 10.244.2.3 and it is sent to 10.244.2.3:8080',
    ])
  })

  test('a Local node port: the main answer is for a client on the wire, pods and the node are branches', () => {
    const trace = ask({ to: '192.168.50.11:31080' })
    expect(addresses(trace)).toEqual(['10.244.1.9:9000'])
    expect(
      trace.branches?.map((branch) => [
        branch.when,
        branch.targets.length,
        branch.masquerade.map((entry) => entry.condition),
      ]),
    ).toEqual([
      [
        'the source is inside 10.244.0.0/16',
        2,
        [
          'the source is 10.244.1.9 and it is sent to 10.244.1.9:9000',
          'the source is 10.244.2.3 and it is sent to 10.244.2.3:9000',
        ],
      ],
      ['a process on the node sends it', 2, ['always']],
    ])
  })

  test('a node port without the node’s addresses is unknown, and both answers are given', () => {
    const trace = traceRuleset({
      rulesets: parseSave(g1, 'g1.save').rulesets,
      packet: {
        destination: { family: 'ipv4', words: [0xc0a8320b] },
        destinationPort: 31443,
        protocol: 'tcp',
        source: { family: 'ipv4', words: [0xcb007105] },
      },
    }).value
    expect(trace.verdict.kind).toBe('unknown')
    expect(trace.verdict.because[0].sentence).toContain('--node-local')
    expect(trace.branches?.map((branch) => branch.when).slice(0, 2)).toEqual([
      '192.168.50.11 is not an address of this node',
      '192.168.50.11 is an address of this node',
    ])
  })

  test('a ping to a ClusterIP gets nothing, and the reason', () => {
    const trace = ask({ to: '10.96.10.1', proto: 'icmp' })
    expect(trace.verdict.kind).toBe('allowed')
    expect(trace.targets).toEqual([])
    expect(trace.verdict.because[1]?.sentence).toContain('is on no interface')
  })

  test('a port that the Service does not have is told beside the ports it has', () => {
    const trace = ask({ to: '10.96.10.1:443', from: pod })
    expect(trace.verdict.because[1]?.sentence).toBe(
      '10.96.10.1 is the ClusterIP of Service shop/web, which has no rule for tcp 443 (its rules: tcp 80); the address is on no interface, so nothing answers and the client times out',
    )
  })
})

describe('real-life forms', () => {
  const counted = g1.replaceAll(/^-A /gm, '[12:720] -A ')
  const pasted = `root@node-a:~# iptables-save\n${g1}`.replaceAll('\n', '\r\n').replaceAll(/^/gm, '        ')
  test.each([
    ['P1: counters', counted],
    ['P2: CRLF, indentation and a prompt', pasted],
  ])('%s change no answer', (_, text) => {
    expect(ask({ text, to: '10.96.10.1:80' }).targets).toEqual(ask({ to: '10.96.10.1:80' }).targets)
    expect(ask({ text, to: '10.96.20.3:80', from: pod }).verdict.kind).toBe('rejected')
  })

  test('P10: the order of tables changes nothing', () => {
    const tables = g1.split(/(?<=^COMMIT\n# Completed on .*\n)/m)
    expect(tables).toHaveLength(3)
    const text = [...tables].reverse().join('')
    const both = [g1, text].map((one) => ask({ text: one, to: '198.51.100.21:443', from: outside }))
    expect(both[1]?.targets).toEqual(both[0]?.targets)
  })

  test('a dump of the nat table alone is answered, with what the filter table could change', () => {
    const text = g1.slice(g1.indexOf('*nat'))
    const { value, findings } = traceRuleset({
      rulesets: parseSave(text, 'nat.save').rulesets,
      packet: { destination: { family: 'ipv4', words: [0x0a601403] }, destinationPort: 80, protocol: 'tcp' },
    })
    expect(value.verdict.kind).toBe('allowed')
    expect(findings.map((finding) => finding.code)).toEqual(['trace.missing-table'])
    expect(findings[0]?.message).toContain('may be rejected or dropped there')
  })
})

test('drawing connections is repeatable and close to the shares', () => {
  const first = ask({ to: '10.96.10.1:80', from: pod, simulate: { count: 9000, seed: 1 } }).simulated ?? {}
  expect(ask({ to: '10.96.10.1:80', from: pod, simulate: { count: 9000, seed: 1 } }).simulated).toEqual(first)
  for (const count of Object.values(first)) expect(Math.abs(count - 3000)).toBeLessThan(200)
})

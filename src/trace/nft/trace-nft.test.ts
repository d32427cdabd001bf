/** The golden scenario's packets through kube-proxy's nftables tables, each with the fate that real packets met. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { parseEndpoint } from '#base/ip'
import { parseNftJson } from '#compile/nftables/parse-json'
import { parseNftList } from '#compile/nftables/parse-list'
import { printJson } from '#compile/nftables/print-json'
import type { PacketProtocol } from '#model/packet'
import type { Trace, VerdictKind } from '#model/trace'
import { type RulesetTraceInput, traceRuleset } from '../trace-ruleset'

const golden = (name: string): string => readFileSync(new URL(`../../../test/golden/${name}`, import.meta.url), 'utf8')
const texts = {
  A: golden('nftables-g1-1.31.list.txt'),
  B: golden('nftables-g1.list.txt'),
  C: golden('nftables-g1-1.36.list.txt'),
}
const nodeIp = '192.168.50.11'

type Ask = Partial<RulesetTraceInput> & {
  readonly to: string
  readonly from?: string
  readonly proto?: PacketProtocol
  readonly text: string
}

function ask({ to, from, proto = 'tcp', text, ...rest }: Ask): Trace {
  const target = parseEndpoint(to)
  if (target === undefined) throw new Error(`bad test address ${to}`)
  const source = from === undefined ? undefined : parseEndpoint(from)
  const { ruleset, findings } = parseNftList(text, 'g1.nft')
  expect(findings).toEqual([])
  const packet = {
    destination: target.ip,
    protocol: proto,
    ...(target.port === undefined ? {} : { destinationPort: target.port }),
    ...(source === undefined ? {} : { source: source.ip }),
  }
  return traceRuleset({ rulesets: [], nft: ruleset, nodeIps: [nodeIp], packet, ...rest }).value
}

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
  ['T11', pod, '10.96.20.4:6379', 'dropped', [], 'kept'],
  ['T12', outside, '198.51.100.21:443', 'allowed', pay, 'translated'],
  ['T13', '203.0.113.200', '198.51.100.21:443', 'dropped', [], 'kept'],
  ['T14', pod, '198.51.100.21:443', 'dropped', [], 'kept'],
  ['T15', nodeIp, '198.51.100.21:443', 'allowed', pay, 'translated'],
  ['T16', '198.51.100.21', '198.51.100.21:443', 'allowed', pay, 'translated'],
  ['T17', '203.0.113.200', '192.168.50.11:31443', 'allowed', pay, 'translated'],
  ['T18', pod, '10.96.20.3:80', 'rejected', [], 'kept'],
  ['T19', outside, '192.168.50.11:31090', 'rejected', [], 'kept'],
  ['T20', pod, '10.96.10.1:443', 'rejected', [], 'kept'],
  ['T21', pod, '10.96.99.99:80', 'dropped', [], 'kept'],
  ['T22', outside, '192.168.50.11:32111', 'allowed', [], 'kept'],
  ['T23', outside, '203.0.113.77:80', 'allowed', ['10.244.1.9:9000'], 'kept'],
]

describe.each(Object.entries(texts))('the golden scenario, layout %s', (layout, text) => {
  test.each(cases)('%s: %s to %s is %s', (_, from, to, kind, targets, source) => {
    const trace = ask({ text, from, to })
    expect(trace.verdict.kind).toBe(kind)
    expect(trace.targets.map((target) => target.address)).toEqual(targets)
    expect(trace.masquerade.map((entry) => entry.condition)).toEqual(source === 'kept' ? [] : ['always'])
  })

  test('T2: a pod that reaches itself is masqueraded, and only then', () => {
    const trace = ask({ text, from: '10.244.1.9', to: '10.96.10.1:80' })
    expect(trace.targets.map((target) => target.address)).toEqual(web)
    expect(trace.masquerade.map((entry) => entry.condition)).toEqual(['it is sent to 10.244.1.9:8080'])
  })

  test('T10: a node port on the loopback address is not handled', () => {
    const trace = ask({ text, from: '127.0.0.1', to: '127.0.0.1:31080' })
    expect([trace.verdict.kind, trace.targets]).toEqual(['allowed', []])
  })

  test('T29: the other protocol is rejected', () => {
    expect(ask({ text, from: pod, to: '10.96.10.1:80', proto: 'udp' }).verdict.kind).toBe('rejected')
  })

  test('what is not known of the packet is a condition', () => {
    const trace = ask({ text, to: '10.96.10.1:80' })
    expect(trace.targets.map((target) => target.share)).toEqual([0.3333, 0.3333, 0.3333])
    expect(trace.masquerade[0]?.condition).toBe('the source is outside 10.244.0.0/16')
  })

  test('T24: a client that is remembered goes where it went before', () => {
    const trace = ask({ text, from: outside, to: '192.168.50.11:31443' })
    const listed = trace.branches?.map((branch) => branch.targets.map((target) => target.address)) ?? []
    expect(layout === 'A' || layout === 'B' || layout === 'C').toBe(true)
    expect(listed.every((targets) => targets.length === 1)).toBe(true)
  })
})

test('a mark of one bit is listed as a prefix', () => {
  const text =
    'table ip t {\n\tchain c {\n\t\ttype filter hook forward priority filter; policy drop;\n\t\tmeta mark 0x00000000/1 accept\n\t}\n}\n'
  expect(ask({ text, from: pod, to: '10.0.0.1:80' }).verdict.kind).toBe('allowed')
})

describe('a chain at ingress', () => {
  const text = `table netdev edge {
	chain in {
		type filter hook ingress device "eth0" priority filter; policy accept;
		ip saddr 203.0.113.0/24 drop
	}
}
`
  test('drops what comes in through its device', () => {
    const { ruleset } = parseNftList(text, 'edge.nft')
    const to = parseEndpoint('10.0.0.1:80')
    const from = parseEndpoint(outside)
    if (to === undefined || from === undefined) throw new Error('bad test address')
    const packet = { destination: to.ip, destinationPort: 80, protocol: 'tcp', source: from.ip } as const
    const answers = ['eth0', 'eth1'].map((inInterface) =>
      traceRuleset({ rulesets: [], nft: ruleset, packet: { ...packet, inInterface } }),
    )
    expect(answers.map((answer) => answer.value.verdict.kind)).toEqual(['dropped', 'allowed'])
  })

  test('is a branch when the interface is not known', () => {
    const trace = ask({ text, to: '10.0.0.1:80' })
    expect(trace.verdict.kind).toBe('allowed')
    expect(trace.branches?.map((branch) => [branch.when, branch.verdict.kind])).toEqual([
      ['it comes in through eth0 and the source is inside 203.0.113.0/24', 'dropped'],
    ])
  })
})

test('rules that were told in JSON are shown as a listing would print them', () => {
  const listed = parseNftList(texts.B, 'g1.nft').ruleset
  const { ruleset } = parseNftJson(printJson(listed), 'g1.json')
  const destination = parseEndpoint('10.96.10.1:80')
  if (destination === undefined) throw new Error('address')
  const packet = { destination: destination.ip, destinationPort: 80, protocol: 'tcp' as const }
  const rulesOf = (nft: RulesetTraceInput['nft']): readonly (string | undefined)[] =>
    traceRuleset({ rulesets: [], ...(nft !== undefined && { nft }), packet }).value.hops.map(({ rule }) => rule?.trim())
  expect(rulesOf(ruleset)).toEqual(rulesOf(listed))
})

test('where a listing leaves elements out, no answer rests on there being none', () => {
  const terse = texts.B.replaceAll(/\t\telements = \{[^}]*\}\n/g, '')
  const { ruleset, findings } = parseNftList(terse, 'g1.nft')
  expect(findings.map(({ code }) => code)).toEqual(['nft.terse'])
  const destination = parseEndpoint('10.96.10.1:80')
  if (destination === undefined) throw new Error('address')
  const packet = { destination: destination.ip, destinationPort: 80, protocol: 'tcp' as const }
  expect(traceRuleset({ rulesets: [], nft: ruleset, packet }).value.verdict.kind).toBe('unknown')
})

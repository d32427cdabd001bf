/** The sheet's cases about rules, decisions, compilation and NAT64, each with its number and its value. */
import { expect, test } from 'vitest'
import { parseIp } from '#base/ip'
import { parseCluster } from '#manifests/parse-cluster'
import type { TrafficPolicy } from '#model/traffic-policy'
import { buildSnapshot, hasSameContent, snapshotContent } from './build-snapshot'
import { type CompiledPolicy, compilePolicy } from './compile-policy'
import { compiledDefaultDenyAll, defaultDenyAll } from './default-deny-all'
import type { PathClass } from './entry'
import { evaluateEntries } from './evaluate-entries'
import { evaluatePolicy } from './evaluate-policy'
import { explainPacket } from './explain-packet'
import type { Decision, PolicyPacket } from './policy-packet'

function policyOf(spec: string): TrafficPolicy {
  const text = `apiVersion: portolan.dev/v1alpha1\nkind: TrafficPolicy\nmetadata: {namespace: tenant, name: web, uid: u1, generation: 7}\nspec: ${spec}\n`
  const policy = parseCluster(text).value.trafficPolicies.get('tenant/web')
  if (policy === undefined) throw new Error('the text holds no policy')
  return policy
}

function compile(spec: string): CompiledPolicy {
  const compilation = compilePolicy(policyOf(spec))
  if (compilation.kind === 'refused') throw new Error(JSON.stringify(compilation.problems))
  return compilation.compiled
}

function refusals(spec: string): readonly string[] {
  const compilation = compilePolicy(policyOf(spec))
  return compilation.kind === 'refused' ? compilation.problems.map(({ path, message }) => `${path}: ${message}`) : []
}

type Given = { readonly path?: PathClass; readonly source?: string; readonly destination?: string } & Partial<
  Omit<PolicyPacket, 'source' | 'destination' | 'path'>
>

function packetOf({
  path = 'unclassified',
  source = '10.0.0.1',
  destination = '10.0.0.2',
  ...rest
}: Given): PolicyPacket {
  const [from, to] = [parseIp(source), parseIp(destination)]
  if (from === undefined || to === undefined) throw new Error('no address')
  const ports = rest.isLaterFragment === true ? {} : { sourcePort: 40000, destinationPort: 80 }
  return { source: from, destination: to, path, protocol: 'tcp', ...ports, ...rest }
}

/** By both evaluators, which must agree. */
function decide(spec: string, given: Given): Decision {
  const packet = packetOf(given)
  const plain = evaluatePolicy(policyOf(spec).spec ?? { rules: [] }, packet)
  expect(evaluateEntries(compile(spec), packet)).toEqual(plain)
  return plain
}

const http =
  '{rules: [{name: http, action: Allow, match: {paths: [Private], protocols: [TCP], destinationPorts: [{from: 80}]}}]}'

test('19: the packet of the rule is allowed by it, and the policy is one compiled entry', () => {
  expect(decide(http, { path: 'Private' })).toEqual({ verdict: 'allow', reason: 'rule', rule: 0 })
  expect(compile(http).entries).toHaveLength(1)
})

test('20: another destination port is denied by no rule', () => {
  expect(decide(http, { path: 'Private', destinationPort: 81 })).toEqual({ verdict: 'deny', reason: 'no_match' })
})

test('21: a rule with a path never takes unclassified traffic, and one without takes any', () => {
  expect(decide(http, {})).toEqual({ verdict: 'deny', reason: 'no_match' })
  const any = '{rules: [{name: any, action: Allow}]}'
  for (const path of ['unclassified', 'Private', 'Internet', 'VIP', 'Service', 'Edge'] as const) {
    expect(decide(any, { path })).toEqual({ verdict: 'allow', reason: 'rule', rule: 0 })
    expect(decide(http, { path }).verdict).toBe(path === 'Private' ? 'allow' : 'deny')
  }
})

test('22: the first rule that matches decides', () => {
  const deny = '{name: bad, action: Deny, match: {sources: [10.0.0.0/24]}}'
  const allow = '{name: any, action: Allow}'
  const denyFirst = `{rules: [${deny}, ${allow}]}`
  expect(decide(denyFirst, { source: '10.0.0.5' })).toEqual({ verdict: 'deny', reason: 'rule', rule: 0 })
  expect(decide(denyFirst, { source: '10.0.1.5' })).toEqual({ verdict: 'allow', reason: 'rule', rule: 1 })
  for (const source of ['10.0.0.5', '10.0.1.5']) {
    expect(decide(`{rules: [${allow}, ${deny}]}`, { source })).toEqual({ verdict: 'allow', reason: 'rule', rule: 0 })
  }
})

test('23: 64 rules are taken, 65 refused', () => {
  const rules = (count: number): string =>
    `{rules: [${Array.from({ length: count }, (_, at) => `{name: rule-${at}, action: Deny, match: {sources: [10.0.${at}.0/24]}}`).join(', ')}]}`
  expect(compile(rules(64)).rules).toHaveLength(64)
  expect(refusals(rules(65))).toEqual(['spec.rules: it has 65 items, where at most 64 are taken'])
})

test('24: two rules of one name are refused', () => {
  expect(refusals('{rules: [{name: a, action: Deny}, {name: b, action: Deny}, {name: a, action: Allow}]}')).toEqual([
    'spec.rules[2].name: rule "a": the name "a" is taken by a rule before it',
  ])
})

const six =
  '{rules: [{name: six, action: Allow, match: {sources: [10.0.0.0/24, 10.0.1.0/24], destinationPorts: [{from: 80}, {from: 443}, {from: 8000, to: 8080}]}}]}'

test('25: two sources and three ports are six entries, in a fixed order, of one rule with one counter row', () => {
  const { entries, rules } = compile(six)
  expect(rules).toEqual([{ name: 'six', action: 'allow' }])
  expect(entries.map(({ source, destinationPorts }) => `${source?.ip.words[0]} ${destinationPorts?.from}`)).toEqual(
    [0x0a000000, 0x0a000100].flatMap((word) => [80, 443, 8000].map((port) => `${word} ${port}`)),
  )
  expect(new Set(entries.map(({ rule }) => rule))).toEqual(new Set([0]))
  expect(decide(six, { source: '10.0.1.7', destinationPort: 8001 })).toEqual({
    verdict: 'allow',
    reason: 'rule',
    rule: 0,
  })
  // Ports without a protocol are those of TCP, UDP and SCTP.
  expect(decide(six, { protocol: 'sctp' }).verdict).toBe('allow')
})

test('26: an empty list of rules is valid and denies everything', () => {
  expect(compile('{rules: []}')).toMatchObject({ rules: [], entries: [] })
  expect(decide('{rules: []}', {})).toEqual({ verdict: 'deny', reason: 'no_match' })
})

test('28: one corrupted entry makes the deciders disagree, and both answers are told', () => {
  const { spec = { rules: [] } } = policyOf(http)
  const compiled = compile(http)
  const [entry] = compiled.entries
  const corrupted = [{ ...(entry ?? { action: 'allow', rule: 0 }), destinationPorts: { from: 81, to: 81 } }] as const
  const packet = packetOf({ path: 'Private' })
  expect(explainPacket(packet, { spec, compiled }).kind).toBe('agreed')
  expect(explainPacket(packet, { spec, compiled: { ...compiled, entries: corrupted } })).toEqual({
    kind: 'disagreed',
    packet,
    answers: [
      { name: 'policy', decision: { verdict: 'allow', reason: 'rule', rule: 0 } },
      { name: 'compiled entries', decision: { verdict: 'deny', reason: 'no_match' } },
    ],
  })
})

test('29: without state a later fragment misses an allow of ports, and meets a deny of ports or a rule without', () => {
  const tcp80 = (action: string): string =>
    `{name: web, action: ${action}, match: {protocols: [TCP], destinationPorts: [{from: 80}]}}`
  const broad = '{name: broad, action: Allow, match: {protocols: [TCP]}}'
  const fragment: Given = { isLaterFragment: true }
  const stateless = (...rules: readonly string[]): string => `{stateful: false, rules: [${rules.join(', ')}]}`
  expect(decide(stateless(tcp80('Allow')), fragment)).toEqual({ verdict: 'deny', reason: 'no_match' })
  expect(decide(stateless(tcp80('Allow'), broad), fragment)).toEqual({ verdict: 'allow', reason: 'rule', rule: 1 })
  expect(decide(stateless(tcp80('Deny'), broad), fragment)).toEqual({ verdict: 'deny', reason: 'rule', rule: 0 })
  // A deny of another protocol is no "cannot tell".
  const udp = '{name: dns, action: Deny, match: {protocols: [UDP], destinationPorts: [{from: 53}]}}'
  expect(decide(stateless(udp, broad), fragment)).toEqual({ verdict: 'allow', reason: 'rule', rule: 1 })
})

test('29: with state a later fragment passes by its first one only', () => {
  const fragment: Given = { isLaterFragment: true }
  expect(decide('{rules: [{name: any, action: Allow}]}', fragment)).toEqual({ verdict: 'deny', reason: 'fragment' })
})

test('30: one policy bound twice makes two snapshots, with counters of their own and the same content but for direction', () => {
  const place = { token: 1n, binding: 1, publication: 1 }
  const ingress = buildSnapshot(compile(six), { ...place, direction: 'ingress', counterRows: [4] })
  const egress = buildSnapshot(compile(six), { ...place, token: 2n, direction: 'egress', counterRows: [9] })
  expect(ingress.rules[0]?.counterRow).not.toBe(egress.rules[0]?.counterRow)
  expect(ingress.entries).toEqual(egress.entries)
  expect(hasSameContent(ingress, { ...egress, direction: 'ingress' })).toBe(true)
})

test('content ignores counter rows and covers entries, names, actions, their order and statefulness', () => {
  const place = { token: 1n, direction: 'ingress', binding: 1, publication: 1, counterRows: [0, 1] } as const
  const snapshot = buildSnapshot(compile('{rules: [{name: a, action: Deny}, {name: b, action: Allow}]}'), place)
  const content = (spec: string): Uint8Array =>
    snapshotContent(buildSnapshot(compile(spec), { ...place, binding: 2, publication: 2, counterRows: [7, 8] }))
  expect(content('{rules: [{name: a, action: Deny}, {name: b, action: Allow}]}')).toEqual(snapshotContent(snapshot))
  for (const other of [
    '{rules: [{name: a, action: Deny}, {name: c, action: Allow}]}',
    '{rules: [{name: a, action: Deny}, {name: b, action: Deny}]}',
    '{rules: [{name: b, action: Allow}, {name: a, action: Deny}]}',
    '{rules: [{name: a, action: Deny}, {name: b, action: Allow, match: {protocols: [TCP]}}]}',
    '{stateful: false, rules: [{name: a, action: Deny}, {name: b, action: Allow}]}',
  ]) {
    expect(content(other), other).not.toEqual(snapshotContent(snapshot))
  }
})

test('the built-in policy compiles to what is built in', () => {
  const spec = JSON.stringify(defaultDenyAll.spec)
  expect({ ...compile(spec), uid: defaultDenyAll.uid, generation: 1 }).toEqual(compiledDefaultDenyAll)
})

const client = { source: '64:ff9b::cb00:7107', destination: 'fd00::2' }

test('71: a rule for IPv4 sources does not match the client of an IPv4 VIP', () => {
  const rule = '{rules: [{name: a, action: Allow, match: {sources: [203.0.113.0/24]}}]}'
  expect(decide(rule, client)).toEqual({ verdict: 'deny', reason: 'no_match' })
})

test('72: a rule for the translated sources does', () => {
  const rule = '{rules: [{name: a, action: Allow, match: {sources: ["64:ff9b::cb00:7100/120"]}}]}'
  expect(decide(rule, client)).toEqual({ verdict: 'allow', reason: 'rule', rule: 0 })
})

test('73 and 74: the client is of the family IPv6', () => {
  const rule = (family: string): string => `{rules: [{name: a, action: Allow, match: {ipFamily: ${family}}}]}`
  expect(decide(rule('IPv4'), client)).toEqual({ verdict: 'deny', reason: 'no_match' })
  expect(decide(rule('IPv6'), client)).toEqual({ verdict: 'allow', reason: 'rule', rule: 0 })
})

test('a protocol that no rule can name is denied before the rules', () => {
  expect(decide('{rules: [{name: any, action: Allow}]}', { protocol: 47 })).toEqual({
    verdict: 'deny',
    reason: 'unsupported',
  })
})

const one = (match: string): string => `{rules: [{name: web, action: Allow, match: ${match}}]}`

test.each([
  [
    'reversed ports',
    '{destinationPorts: [{from: 90, to: 80}]}',
    'destinationPorts[0]: rule "web": the range 90 to 80 is reversed',
  ],
  [
    'port 0',
    '{destinationPorts: [{from: 0}]}',
    'destinationPorts[0].from: rule "web": 0 is not a whole number from 1 to 65535',
  ],
  [
    'a network of the wrong family',
    '{ipFamily: IPv4, sources: ["fd00::/8"]}',
    'sources[0]: rule "web": fd00::/8 is not of the family IPv4',
  ],
  ['host bits', '{sources: [10.0.0.1/8]}', 'sources[0]: rule "web": "10.0.0.1/8" has bits set beyond its length'],
  ['a bare address', '{sources: [10.0.0.1]}', 'sources[0]: rule "web": "10.0.0.1" is no network of ADDRESS/LENGTH'],
  [
    'IPv4-mapped IPv6',
    '{sources: ["::ffff:10.0.0.0/104"]}',
    'sources[0]: rule "web": "::ffff:10.0.0.0/104" is no network of ADDRESS/LENGTH',
  ],
  [
    'ICMP fields on TCP',
    '{protocols: [TCP], icmp: [{type: 8}]}',
    'icmp: rule "web": it gives ICMP types, and TCP has none',
  ],
  ['ICMP fields alone', '{icmp: [{type: 8}]}', 'icmp: rule "web": it gives ICMP types and names no protocol'],
  [
    'ports on ICMP',
    '{protocols: [ICMP], sourcePorts: [{from: 1}]}',
    'protocols: rule "web": it gives ports, and ICMP has none',
  ],
  [
    'ICMP of the other family',
    '{ipFamily: IPv6, protocols: [ICMP]}',
    'protocols: rule "web": ICMP is not of the family IPv6',
  ],
  [
    'ends of two families',
    '{sources: [10.0.0.0/8], destinations: ["fd00::/8"]}',
    'destinations: rule "web": no destination is of the family of a source',
  ],
  [
    'a path that is none',
    '{paths: [private]}',
    'paths[0]: rule "web": "private" is none of Private, Internet, VIP, Service, Edge',
  ],
  ['a misspelt field, which would match more', '{source: [10.0.0.0/8]}', 'source: rule "web": there is no such field'],
  [
    '17 networks',
    `{sources: [${Array.from({ length: 17 }, (_, at) => `10.${at}.0.0/16`).join(', ')}]}`,
    'sources: rule "web": it has 17 items, where at most 16 are taken',
  ],
])('refused with its rule and place: %s', (_, match, told) => {
  expect(refusals(one(match))).toEqual([`spec.rules[0].match.${told}`])
})

test('a rule that compiles to no entry is refused, not dropped', () => {
  expect(refusals(one('{protocols: [ICMP], sources: ["fd00::/8"]}'))).toEqual([
    'spec.rules[0]: rule "web" matches no packet: its networks, protocols and family exclude each other',
  ])
})

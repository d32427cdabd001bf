/** The sheet's cases about series (1, 35, 37 to 44, 46, 70), as values of what an agent tells. */
import { expect, test } from 'vitest'
import { fallbackReasons } from '#compile/traffic-policy/reasons'
import { type Labels, metricFamilies, nodeModes } from './metric-series'
import type { DirectionView, InterfaceView, NodeView, RuleView } from './node-view'

const fallbacks = (hits: Partial<Record<string, bigint>> = {}) =>
  Object.fromEntries(fallbackReasons.map((reason) => [reason, hits[reason] ?? 0n])) as NonNullable<
    DirectionView['fallbacks']
  >

const direction = (rules: readonly RuleView[], rest: Partial<DirectionView> = {}): DirectionView => ({
  direction: 'ingress',
  installed: { policyNamespace: 'tenant', policyName: 'web', policyUid: 'u1', generation: 7, rules },
  fallbacks: fallbacks(),
  ...rest,
})

const held = (directions: readonly DirectionView[], rest: Partial<InterfaceView> = {}): InterfaceView => ({
  kind: 'VPCAttachment',
  namespace: 'tenant',
  attachment: 'web-0',
  vpc: '1x9',
  interface: 'web0',
  directions,
  ...rest,
})

const view = (interfaces: readonly InterfaceView[], rest: Partial<NodeView> = {}): NodeView => ({
  node: 'n1',
  mode: 'enforce',
  interfaces,
  counterReadErrors: 0,
  ...rest,
})

type Told = { readonly labels: Labels; readonly value: number }

function samplesOf(name: string, of: NodeView): readonly Told[] {
  const family = metricFamilies.find((one) => one.name === `portolan_traffic_policy_${name}`)
  if (family === undefined) throw new Error(`there is no ${name}`)
  return family.read(of).map(({ shared, own, value }) => ({ labels: { ...shared, ...own }, value }))
}

const rule = (name: string, rest: Partial<RuleView> = {}): RuleView => ({
  name,
  action: 'allow',
  hits: 0n,
  bytes: 0n,
  ...rest,
})

test('1: the built-in policy has its deny-all at 0, each direction under its UID', () => {
  const builtIn = {
    policyUid: 'builtin:default-deny-all:v1',
    generation: 1,
    rules: [rule('deny-all', { action: 'deny' })],
  }
  const both = (['ingress', 'egress'] as const).map((one) => direction([], { direction: one, installed: builtIn }))
  const hits = samplesOf('rule_hits_total', view([held(both)]))
  expect(hits.map(({ value }) => value)).toEqual([0, 0])
  expect(hits.map(({ labels }) => labels.direction)).toEqual(['ingress', 'egress'])
  expect(hits[0]?.labels).toEqual({
    attachment_kind: 'VPCAttachment',
    resource_namespace: 'tenant',
    attachment: 'web-0',
    vpc: '1x9',
    interface: 'web0',
    direction: 'ingress',
    policy_namespace: '',
    policy: 'default-deny-all',
    policy_uid: 'builtin:default-deny-all:v1',
    rule: 'deny-all',
    action: 'deny',
  })
})

test('35: an unknown mode is 1 for unknown and 0 for the other four; and each mode is alone', () => {
  for (const mode of nodeModes) {
    const samples = samplesOf('mode', view([], { mode }))
    expect(samples).toHaveLength(5)
    expect(samples.filter(({ value }) => value === 1).map(({ labels }) => labels.mode)).toEqual([mode])
    expect(samples.filter(({ value }) => value === 0)).toHaveLength(4)
  }
})

test('37 to 40: a series is told by interface, direction, policy UID, rule and action, and not by generation or place', () => {
  const keyOf = (of: DirectionView) =>
    samplesOf('rule_hits_total', view([held([of])])).map(({ labels }) => JSON.stringify(labels))
  const [before] = keyOf(direction([rule('http', { hits: 10n })]))
  const installed = { policyNamespace: 'tenant', policyName: 'web', policyUid: 'u1', generation: 8 }
  const edited = keyOf(direction([], { installed: { ...installed, rules: [rule('new'), rule('http')] } }))
  expect(edited[1]).toBe(before)
  expect(keyOf(direction([rule('web-http')]))[0]).not.toBe(before)
  expect(keyOf(direction([rule('http', { action: 'deny' })]))[0]).not.toBe(before)
  expect(keyOf(direction([], { installed: { ...installed, policyUid: 'u2', rules: [rule('http')] } }))[0]).not.toBe(
    before,
  )
})

test('42: an interface that is not reconciled yet, or adopted without being readable, has no rule series at all', () => {
  const adopted = { policyUid: 'u1', generation: 7 }
  expect(samplesOf('rule_hits_total', view([]))).toEqual([])
  expect(samplesOf('rule_hits_total', view([held([direction([], { installed: adopted })])]))).toEqual([])
})

test('a policy whose object is not known is told by its UID alone, and never by the name of the built-in one', () => {
  const namesOf = (policyUid: string): readonly (string | undefined)[] => {
    const installed = { policyUid, generation: 1, rules: [rule('#0')] }
    return samplesOf('rule_hits_total', view([held([direction([], { installed })])])).map(({ labels }) => labels.policy)
  }
  expect(namesOf('u9')).toEqual([''])
  expect(namesOf('builtin:default-deny-all:v1')).toEqual(['default-deny-all'])
})

test('44: an unreadable row is missing, the others are there, and it is counted', () => {
  const rows: readonly RuleView[] = [{ name: 'lost', action: 'deny' }, rule('http', { hits: 3n, bytes: 180n })]
  const of = view([held([direction(rows)])], { counterReadErrors: 1 })
  expect(samplesOf('rule_hits_total', of).map(({ labels, value }) => [labels.rule, value])).toEqual([['http', 3]])
  expect(samplesOf('rule_bytes_total', of).map(({ value }) => value)).toEqual([180])
  expect(samplesOf('counter_read_errors', of)).toEqual([{ labels: {}, value: 1 }])
})

test('a direction with nothing bound has its fallback counts, and one whose row cannot be read has none', () => {
  const unbound: DirectionView = { direction: 'egress', fallbacks: fallbacks({ policy_unavailable: 4n }) }
  const of = view([held([unbound, { direction: 'ingress' }])])
  const counts = samplesOf('fallback_total', of)
  expect(counts).toHaveLength(fallbackReasons.length)
  expect(counts.find(({ labels }) => labels.reason === 'policy_unavailable')).toMatchObject({
    labels: { direction: 'egress', attachment: 'web-0' },
    value: 4,
  })
  expect(counts.every(({ labels }) => labels.direction === 'egress')).toBe(true)
})

test('46: 100 interfaces of 64 rules both ways have 27,200 series, and the node itself six', () => {
  const rules = Array.from({ length: 64 }, (_, at) => rule(`rule-${at}`))
  const both = (['ingress', 'egress'] as const).map((one) => direction(rules, { direction: one }))
  const many = Array.from({ length: 100 }, (_, at) => held(both, { attachment: `web-${at}`, interface: `web${at}` }))
  const counts = Object.fromEntries(metricFamilies.map((one) => [one.name.slice(24), one.read(view(many)).length]))
  expect(counts).toEqual({
    rule_hits_total: 12_800,
    rule_bytes_total: 12_800,
    fallback_total: 1600,
    mode: 5,
    counter_read_errors: 1,
  })
})

test('70: counters of an edge link carry the attachment’s namespace and name, the service’s VPC and the host link', () => {
  const edge = held([direction([rule('dns')])], {
    kind: 'EdgeAttachment',
    namespace: 'provider',
    attachment: 'resolver-0',
    vpc: 'blue',
    interface: 'edge0',
  })
  expect(samplesOf('rule_hits_total', view([edge]))[0]?.labels).toMatchObject({
    attachment_kind: 'EdgeAttachment',
    resource_namespace: 'provider',
    attachment: 'resolver-0',
    vpc: 'blue',
    interface: 'edge0',
    policy_namespace: 'tenant',
  })
})

test('every sample has the labels of its family, and no two are of one series', () => {
  const both = (['ingress', 'egress'] as const).map((one) => direction([rule('a'), rule('b')], { direction: one }))
  const of = view([held(both), held(both, { kind: 'EdgeAttachment', interface: 'edge0' })])
  for (const { labels, read } of metricFamilies) {
    const samples = read(of).map(({ shared, own }) => ({ labels: { ...shared, ...own } }))
    expect(samples.length).toBeGreaterThan(0)
    for (const sample of samples) expect(Object.keys(sample.labels)).toEqual(labels)
    expect(new Set(samples.map((one) => JSON.stringify(one.labels))).size).toBe(samples.length)
  }
})

/** Slices and conditions: which endpoints take connections, and whether the pods imply them. */
import { expect, test } from 'vitest'
import {
  codesOf,
  explain,
  layerIn,
  rawNode,
  rawPod,
  rawService,
  rawSlice,
  twoNodes,
  twoPods,
} from '../../test/explain/explain-objects'

const ready = { ready: true, serving: true, terminating: false }
const endpoint = (ip: string, pod: string, node = 'node-a', more = {}) => ({
  addresses: [ip],
  conditions: ready,
  nodeName: node,
  targetRef: { kind: 'Pod', namespace: 'shop', name: pod },
  ...more,
})
const both = [endpoint('10.244.1.5', 'web-0'), endpoint('10.244.2.7', 'web-1', 'node-b')]

test('slices that are what the pods imply are in order', () => {
  const explanation = explain([...twoNodes, ...twoPods, rawService(), rawSlice('web-x', both)])
  expect(codesOf(explanation)).toEqual([])
  expect(layerIn(explanation, 'slices').facts).toEqual(['1 slice, 2 endpoints, 2 ready, as the input has them'])
})

test('without slices of its own in the input, those that the pods imply are used', () => {
  const other = rawSlice('other-x', [], { labels: { 'kubernetes.io/service-name': 'other' } })
  const explanation = explain([...twoNodes, ...twoPods, rawService(), other])
  expect(layerIn(explanation, 'slices').facts[0]).toMatch(/computed from the pods: the input has no slice/)
})

test('--slices computed sets those of the input aside, and still tells how they differ', () => {
  const objects = [...twoNodes, ...twoPods, rawService(), rawSlice('web-x', both.slice(0, 1))]
  const explanation = explain(objects, { slices: 'computed' })
  expect(codesOf(explanation)).toEqual(['explain.slice-lacks-pod'])
  expect(layerIn(explanation, 'rules').table?.rows[0]?.[4]).toBe('10.244.1.5:8080 and 10.244.2.7:8080, 50.0 % each')
})

test.each([
  ['a pod that is gone', endpoint('10.244.1.9', 'web-9'), '10.244.1.9: pod web-9 does not exist any more'],
  ['a pod with another address now', endpoint('10.244.1.9', 'web-0'), '10.244.1.9: pod web-0 now has 10.244.1.5'],
  [
    'a pod whose label was changed',
    endpoint('10.244.1.8', 'odd'),
    '10.244.1.8: pod odd has app=old where web is selected',
  ],
  ['nobody', { addresses: ['192.0.2.1'] }, '192.0.2.1: no pod or node of the input has it'],
])('a stale endpoint says what became of it: %s', (_, stale, why) => {
  const odd = rawPod('odd', '10.244.1.8', { labels: { app: 'old' } })
  const slice = rawSlice('web-x', [...both, stale])
  const explanation = explain([...twoNodes, ...twoPods, odd, rawService(), slice])
  expect(codesOf(explanation)).toEqual(['explain.stale-slice'])
  expect(explanation.findings[0]).toMatchObject({ object: { kind: 'EndpointSlice', name: 'web-x' } })
  expect(explanation.findings[0]?.evidence[0]).toBe(why)
})

test('a stale endpoint that gets nothing anyway is only a difference', () => {
  const gone = endpoint('10.244.1.9', 'web-9', 'node-a', { conditions: { ready: false, serving: false } })
  const explanation = explain([...twoNodes, ...twoPods, rawService(), rawSlice('web-x', [...both, gone])])
  expect(codesOf(explanation)).toEqual(['explain.slice-differs'])
})

test('slices of a Service without selector have nothing to be compared with', () => {
  const slice = rawSlice('web-x', [{ addresses: ['192.0.2.1'] }])
  const explanation = explain([...twoNodes, ...twoPods, rawService({ selector: undefined }), slice])
  expect(codesOf(explanation)).toEqual([])
})

test('a hidden slice is told with its Service', () => {
  const slice = rawSlice('web-x', both, { labels: { 'service.kubernetes.io/headless': '' } })
  const explanation = explain([...twoNodes, ...twoPods, rawService(), slice])
  expect(codesOf(explanation)).toContain('services.hidden-slice')
  expect(codesOf(explanation)).toContain('explain.no-endpoints')
})

test.each([
  ['no pod is there', [], 'no pod of namespace shop has app=web'],
  [
    'pods have no address',
    [rawPod('web-0', '', { ips: [], phase: 'Pending' })],
    'no pod that it selects has an address yet',
  ],
  ['no pod is ready', [rawPod('web-0', '10.244.1.5', { isReady: false })], 'not one of its endpoints is ready'],
])('an empty Service says what is missing first: %s', (_, pods, because) => {
  const other = rawPod('other', '10.244.1.50', { labels: { app: 'other' } })
  const explanation = explain([...twoNodes, ...pods, other, rawService()])
  const finding = explanation.findings.find(({ code }) => code === 'explain.no-endpoints')
  expect(finding?.message).toBe(
    `port 80/TCP at 10.96.0.20 has no endpoint, because ${because}; connections are refused at once`,
  )
})

test('an empty Service names what nearly matches: another value, another namespace', () => {
  const other = rawPod('other', '10.244.1.50', { labels: { app: 'web-v2' } })
  const far = { ...rawPod('far', '10.244.1.51'), metadata: { name: 'far', namespace: 'prod', labels: { app: 'web' } } }
  const finding = explain([...twoNodes, other, far, rawService()]).findings.find(
    ({ code }) => code === 'explain.no-endpoints',
  )
  expect(finding?.evidence).toEqual(['label app in namespace shop: web-v2 on 1 pod', 'in another namespace: prod/far'])
})

test('an input without pods and slices is no proof that there are no endpoints', () => {
  const explanation = explain([...twoNodes, rawService()])
  expect(codesOf(explanation)).toEqual(['endpointslices.no-pods-read'])
})

test('hints that are complete are no finding', () => {
  const nodes = [rawNode('a', 'x'), rawNode('b', 'y')]
  const explanation = explain([...nodes, ...twoPods, rawService({ trafficDistribution: 'PreferSameZone' })])
  expect(codesOf(explanation)).toEqual([])
  expect(layerIn(explanation, 'rules').table?.rows.map((row) => [row[0], row[4]])).toEqual([
    ['node-a', '10.244.1.5:8080'],
    ['node-b', '10.244.2.7:8080'],
  ])
})

test('hints that lead to another zone than the node’s are told when that node is asked for', () => {
  const nodes = [rawNode('a', 'x'), rawNode('b', 'y'), rawNode('c', 'z')]
  const objects = [...nodes, ...twoPods, rawService({ trafficDistribution: 'PreferSameZone' })]
  expect(codesOf(explain(objects, { node: 'node-c' }))).toEqual(['services.hints-ignored'])
  expect(codesOf(explain(objects, { node: 'node-a' }))).toEqual([])
})

/** Which nodes are looked at, and what each class of clients gets there. */
import { expect, test } from 'vitest'
import { codesOf, explain, layerIn, rawNode, rawPod, rawService, twoNodes } from '../../test/explain/explain-objects'

const nodePort = { type: 'NodePort', ports: [{ name: 'http', port: 80, targetPort: 'http', nodePort: 30080 }] }
const local = { ...nodePort, externalTrafficPolicy: 'Local' }
const letters = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l']
const manyNodes = letters.map((letter) => rawNode(letter))
const podOn = (letter: string) =>
  rawPod(`web-${letter}`, `10.244.${letter.charCodeAt(0) - 96}.5`, { node: `node-${letter}` })

test('nodes whose rules do not differ are looked at once', () => {
  const { facts } = layerIn(explain([...manyNodes, podOn('a'), rawService()]), 'rules')
  expect(facts).toEqual([
    'computed for node-a, no rules of a node were given; the same on node-b, node-c, node-d, node-e, node-f, node-g and 5 more',
  ])
})

test('nodes with an endpoint of their own are looked at up to a number, those without all at once', () => {
  const explanation = explain([...manyNodes, ...letters.slice(2).map(podOn), rawService(local)])
  const { facts } = layerIn(explanation, 'rules')
  expect(facts[0]).toBe('computed for node-a, no rules of a node were given; the same on node-b')
  expect(facts.at(-1)).toBe('3 nodes with endpoints of their own not traced: name one with --node')
  expect(codesOf(explanation)).toEqual(['explain.no-local-endpoint', 'explain.answers-differ-by-source'])
  expect(explanation.findings[0]?.message).toMatch(/^clients outside that use node-a and node-b time out/)
})

test('--node looks at that node alone', () => {
  const objects = [...twoNodes, podOn('b'), rawService(local)]
  expect(codesOf(explain(objects, { node: 'node-b' }))).toEqual([])
  expect(codesOf(explain(objects, { node: 'node-a' }))).toContain('explain.no-local-endpoint')
})

test('a load balancer with a health check leaves nodes without endpoint out, and that is no error', () => {
  const spec = { ...local, type: 'LoadBalancer', healthCheckNodePort: 32000 }
  const service = { ...rawService(spec), status: { loadBalancer: { ingress: [{ ip: '198.51.100.20' }] } } }
  const explanation = explain([...twoNodes, podOn('b'), service])
  expect(codesOf(explanation)).toEqual(['explain.answers-differ-by-source', 'explain.local-nodes'])
})

test('an external IP has no health check', () => {
  const spec = { ...local, type: 'LoadBalancer', healthCheckNodePort: 32000, externalIPs: ['203.0.113.7'] }
  const codes = codesOf(explain([...twoNodes, podOn('b'), rawService(spec)]))
  expect(codes).toContain('explain.no-local-endpoint')
})

test('the client outside is one that the source ranges let in', () => {
  const spec = { ...nodePort, type: 'LoadBalancer', loadBalancerSourceRanges: ['192.0.2.0/28'] }
  const service = { ...rawService(spec), status: { loadBalancer: { ingress: [{ ip: '198.51.100.20' }] } } }
  const explanation = explain([...twoNodes, podOn('b'), service])
  const rows = layerIn(explanation, 'traffic-policy').table?.rows.filter((row) => row[1] === '198.51.100.20:80/tcp')
  expect(rows?.map((row) => [row[0], row[2], row[3]])).toEqual([
    ['node-a', 'a pod and the node', 'dropped'],
    ['node-a', 'outside', 'allowed'],
  ])
})

test('policy Cluster hides the client, policy Local keeps it', () => {
  const address = (spec: object): unknown =>
    layerIn(explain([rawNode('a'), podOn('a'), rawService(spec as never)]), 'traffic-policy').table?.rows.find(
      (row) => row[1] === '192.168.50.11:30080/tcp' && String(row[2]).includes('outside'),
    )?.[5]
  expect(address(nodePort)).toBe('the node’s')
  expect(address(local)).toBe('kept')
})

test('without nodes in the input, those that pods name are assumed', () => {
  const { table } = layerIn(explain([podOn('b'), rawService()]), 'rules')
  expect(table?.rows.map((row) => row[0])).toEqual(['node-b'])
})

test('a detector by interface changes no verdict', () => {
  const settings = { detectLocal: { kind: 'InterfaceNamePrefix', prefix: 'cali' } } as const
  const explanation = explain([...twoNodes, podOn('a'), rawService(nodePort)], { settings })
  expect(codesOf(explanation)).toEqual(['explain.client-address-lost'])
})

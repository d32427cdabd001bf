/** The pods behind a Service: ports by name and number, readiness. */
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

const ports = (name: string, protocol = 'TCP') => [{ name, containerPort: 8080, protocol }]

test('pods that lack a named port are told with their names and reasons', () => {
  const pods = [
    rawPod('web-0', '10.244.1.5'),
    rawPod('web-1', '10.244.1.6', { ports: ports('web') }),
    rawPod('web-2', '10.244.1.7', { ports: ports('http', 'UDP') }),
  ]
  const [finding] = explain([...twoNodes, ...pods, rawService()]).findings
  expect(finding).toMatchObject({
    code: 'explain.target-port-in-some-pods',
    path: 'spec.ports[0].targetPort',
    message: 'targetPort http (TCP) resolves in web-0 but not in web-1 and web-2, which get no traffic on port 80',
    evidence: [
      '1 pod web-1: no container has a port named "http" (declared: web:8080/TCP)',
      '1 pod web-2: its port "http" is UDP and the Service wants TCP (declared: http:8080/UDP)',
    ],
  })
})

test('a finished pod is counted and left aside', () => {
  const done = rawPod('web-9', '10.244.1.9', { phase: 'Succeeded', isReady: false, ports: ports('web') })
  const explanation = explain([...twoNodes, rawPod('web-0', '10.244.1.5'), done, rawService()])
  expect(codesOf(explanation)).toEqual([])
  expect(layerIn(explanation, 'pods').facts).toEqual(['2 pods selected, 1 ready, 1 finished'])
})

test('a port number is no slip where no container declares any port', () => {
  const spec = { ports: [{ port: 80, targetPort: 8081 }] }
  expect(codesOf(explain([...twoNodes, rawPod('web-0', '10.244.1.5', { ports: [] }), rawService(spec)]))).toEqual([])
  expect(codesOf(explain([...twoNodes, rawPod('web-0', '10.244.1.5'), rawService(spec)]))).toEqual([
    'explain.target-port-undeclared',
  ])
})

test('pods are skipped where the Service has no selector, or the input no pods', () => {
  const slice = rawSlice('web-x', [{ addresses: ['192.0.2.1'] }])
  for (const spec of [{ selector: undefined }, {}]) {
    expect(layerIn(explain([...twoNodes, rawService(spec), slice]), 'pods').status).toBe('skipped')
  }
})

test('what was read amiss about its pods stands with the pods', () => {
  const pod = { ...rawPod('web-0', '10.244.1.5'), status: { phase: 'Running', podIPs: [{ ip: '10.244.1.5' }] } }
  const { findings } = layerIn(explain([rawNode('a'), pod, rawService()]), 'pods')
  expect(findings.map(({ code }) => code)).toContain('pod.no-ready-condition')
})

test.each([
  ['TCP', 'ss -ltn'],
  ['UDP', 'ss -lun'],
])('a %s port that no container declares is looked for with %s', (protocol, tool) => {
  const ports = [{ name: 'x', port: 80, targetPort: 9999, protocol }]
  const { findings } = layerIn(explain([...twoNodes, ...twoPods, rawService({ ports })]), 'pods')
  expect(findings[0]?.hint).toContain(tool)
})

test('a node that has both families is told of once', () => {
  const dual = { clusterIPs: ['10.96.0.20', 'fd00::20'], ipFamilies: ['IPv4', 'IPv6'] }
  const { facts } = layerIn(explain([rawNode('a'), rawPod('web-0', '10.244.1.5'), rawService(dual)]), 'rules')
  expect(facts).toEqual(['computed for node-a, no rules of a node were given'])
})

/** What a connection tracking table says of a Service. */
import { expect, test } from 'vitest'
import { codesOf, explain, layerIn, rawPod, rawService, twoNodes, twoPods } from '../../test/explain/explain-objects'
import type { Explanation } from './explanation'
import { parseConntrack } from './parse-conntrack'

type Flow = { readonly to?: string; readonly from: number; readonly target: string; readonly mark?: string }

function flow({ to = '10.96.0.20 80', from, target, mark = 'ESTABLISHED' }: Flow): string {
  const [ip, port] = to.split(' ')
  const [back, backPort] = target.split(':')
  const isUnreplied = mark === 'UNREPLIED'
  const state = isUnreplied ? 'SYN_SENT' : mark
  return `tcp 6 99 ${state} src=10.244.1.${from} dst=${ip} sport=5${from} dport=${port} ${isUnreplied ? '[UNREPLIED] ' : ''}src=${back} dst=10.244.1.${from} sport=${backPort} dport=5${from} use=1\n`
}

function explainFlows(flows: readonly Flow[], spec = {}, more: readonly object[] = []): Explanation {
  const conntrack = parseConntrack(flows.map(flow).join(''), 'table.txt')
  return explain([...twoNodes, ...twoPods, rawService(spec), ...(more as never[])], { conntrack })
}

test('connections to ready endpoints are in order', () => {
  const explanation = explainFlows([{ from: 100, target: '10.244.1.5:8080' }])
  expect(codesOf(explanation)).toEqual([])
  expect(layerIn(explanation, 'conntrack').facts[0]).toBe('1 of 1 tracked connection in table.txt goes to this Service')
})

test('a closing connection to a pod that is gone does no harm', () => {
  const explanation = explainFlows([{ from: 100, target: '10.244.1.99:8080', mark: 'TIME_WAIT' }])
  expect(codesOf(explanation)).toEqual([])
})

test('entries to another address with the same port are not of this Service', () => {
  expect(codesOf(explainFlows([{ to: '10.96.0.21 80', from: 100, target: '10.244.1.99:8080' }]))).toEqual([])
})

test('a node port is met at any address of a node', () => {
  const spec = { type: 'NodePort', ports: [{ name: 'http', port: 80, targetPort: 'http', nodePort: 30080 }] }
  const flows = [{ to: '192.168.50.12 30080', from: 100, target: '10.244.1.99:8080' }]
  expect(codesOf(explainFlows(flows, spec))).toContain('explain.conntrack-dead-endpoint')
})

test('the remedy deletes the very entry', () => {
  const [finding] = explainFlows([{ from: 100, target: '10.244.1.99:8080' }]).findings
  expect(finding?.hint).toBe(
    'delete what decides for them: conntrack -D -p tcp --orig-dst 10.96.0.20 --orig-port-dst 80 --reply-src 10.244.1.99',
  )
  expect(finding?.evidence).toEqual([
    'table.txt:1 tcp 10.244.1.100:5100 to 10.96.0.20:80 goes to 10.244.1.99:8080 ESTABLISHED',
  ])
})

test('a pod that is on its way out keeps its connections', () => {
  const leaving = rawPod('web-2', '10.244.1.6', { isLeaving: true })
  const explanation = explainFlows([{ from: 100, target: '10.244.1.6:8080' }], {}, [leaving])
  expect(codesOf(explanation)).toEqual(['explain.terminating-endpoints'])
  expect(layerIn(explanation, 'conntrack').facts.at(-1)).toBe(
    '1 to endpoints that take no new connections: they go on until the pod ends',
  )
})

test('a ready endpoint that does not answer most of its connections is told', () => {
  const flows = [101, 102, 103, 104].map((from) => ({ from, target: '10.244.1.5:8080', mark: 'UNREPLIED' }))
  const explanation = explainFlows([...flows, { from: 105, target: '10.244.2.7:8080' }])
  expect(codesOf(explanation)).toEqual(['explain.conntrack-unreplied'])
  expect(explanation.findings[0]?.evidence).toEqual(['10.244.1.5:8080: 4 of 4 connections without an answer'])
})

test('two unanswered connections may be chance', () => {
  const flows = [101, 102].map((from) => ({ from, target: '10.244.1.5:8080', mark: 'UNREPLIED' }))
  expect(codesOf(explainFlows(flows))).toEqual([])
})

test('clients that are spread are no skew', () => {
  const flows = [101, 102, 103, 104, 105, 106].map((from) => ({
    from,
    target: from % 2 === 0 ? '10.244.1.5:8080' : '10.244.2.7:8080',
  }))
  expect(codesOf(explainFlows(flows, { sessionAffinity: 'ClientIP' }))).toEqual(['explain.affinity-pinning'])
})

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { flowsFileReader, readFlowsFile } from './read-flows-file'

const row = {
  uuid: '6f1c1f0e-0000-4000-8000-000000000001',
  pod_name: 'db-0',
  pod_namespace: 'shop',
  pod_ip: '10.244.1.30',
  pod_port: '3306',
  ip_protocol: 'TCP',
  traffic_type: 'INGRESS',
  traffic_in_out_ip: '10.244.1.11',
  traffic_in_out_port: '0',
  decision: 'ALLOW',
  time_stamp: '2026-07-23T09:14:02.118377',
  peer_kind: 'pod',
  peer_namespace: 'shop',
  peer_name: 'web-1',
  peer_uid: 'uid-web-1',
  peer_workload_kind: 'Deployment',
  peer_workload_name: 'web',
  peer_resolved_at: '2026-07-23T09:14:05',
}
const record = {
  id: 'a',
  firstSeen: '2026-07-23T09:00:00Z',
  lastSeen: '2026-07-23T10:00:00+02:00',
  hits: 7,
  direction: 'EGRESS',
  protocol: 'tcp',
  decision: 'ALLOW',
  pod: {
    namespace: 'shop',
    name: 'web-1',
    uid: null,
    address: '10.244.1.11',
    port: 0,
    workload: { kind: 'Deployment', name: 'web' },
    labels: { app: 'web' },
  },
  peer: {
    address: '10.244.1.99',
    port: 3306,
    kind: null,
    outcome: { kind: 'rejected', reason: 'started-after', nearest: { kind: 'pod', namespace: 'shop', name: 'late-1' } },
  },
}
const hubble = {
  flow: {
    time: '2026-07-23T10:00:00.123456789Z',
    verdict: 'FORWARDED',
    IP: { source: '10.244.1.11', destination: '10.244.1.30', ipVersion: 'IPv4' },
    l4: { TCP: { source_port: 51000, destination_port: 3306, flags: { SYN: true } } },
    source: {
      ID: 1,
      identity: 4711,
      namespace: 'shop',
      labels: ['k8s:app=web', 'k8s:io.cilium.k8s.namespace.labels.team=a', 'k8s:io.kubernetes.pod.namespace=shop'],
      pod_name: 'web-1',
      workloads: [{ name: 'web', kind: 'Deployment' }],
    },
    destination: { identity: 4712, namespace: 'shop', labels: ['k8s:app=db'], pod_name: 'db-0' },
    Type: 'L3_L4',
    traffic_direction: 'INGRESS',
    is_reply: false,
  },
  node_name: 'worker-1',
  time: '2026-07-23T10:00:00.123456789Z',
}
const lines = (...rows: readonly object[]): string => rows.map((one) => `${JSON.stringify(one)}\n`).join('')

describe('the shapes of rows', () => {
  test('the compatible paths’', () => {
    const { value, findings } = readFlowsFile(JSON.stringify([row]))
    expect(findings).toEqual([])
    expect(value).toMatchObject([
      {
        direction: 'INGRESS',
        protocol: 'TCP',
        ownPort: 3306,
        peerPort: 0,
        pod: { namespace: 'shop', name: 'db-0', labels: null },
        peer: { kind: 'pod', name: 'web-1', uid: 'uid-web-1', workload: { kind: 'Deployment', name: 'web' } },
        outcome: { kind: 'resolved' },
      },
    ])
  })

  test('/api/v1’s, with why nobody is the peer', () => {
    const [flow] = readFlowsFile(JSON.stringify(record)).value
    expect(flow).toMatchObject({ protocol: 'TCP', hits: 7, peerPort: 3306, peer: null, outcome: record.peer.outcome })
    expect(flow?.lastSeen).toBe(Date.UTC(2026, 6, 23, 8) * 1000)
  })

  test('Hubble’s, wrapped and bare', () => {
    const { value } = readFlowsFile(lines(hubble, hubble.flow))
    expect(value[0]).toEqual(value[1])
    expect(value[0]).toMatchObject({
      direction: 'INGRESS',
      decision: 'ALLOW',
      ownPort: 3306,
      pod: { namespace: 'shop', name: 'db-0', labels: { app: 'db' }, workload: null },
      peer: {
        kind: 'pod',
        namespace: 'shop',
        name: 'web-1',
        labels: { app: 'web' },
        workload: { kind: 'Deployment', name: 'web' },
      },
    })
  })

  test('Hubble’s world is nobody’s, its host is a node, its API server is that', () => {
    const of = (...labels: readonly string[]) => ({ flow: { ...hubble.flow, source: { identity: 2, labels } } })
    const { value } = readFlowsFile(
      lines(
        of('reserved:world'),
        of('reserved:host'),
        of('reserved:kube-apiserver', 'reserved:remote-node'),
        of('reserved:unmanaged'),
      ),
    )
    expect(value.map(({ peer, outcome }) => [peer?.kind, peer?.entity, outcome?.kind])).toEqual([
      [undefined, undefined, 'never-held'],
      ['node', 'host', 'resolved'],
      ['node', 'kube-apiserver', 'resolved'],
      [undefined, undefined, undefined],
    ])
  })

  test('of Hubble’s, replies, requests, lost events and what a node saw are passed over, and counted', () => {
    const reply = { flow: { ...hubble.flow, is_reply: true } }
    const request = { flow: { ...hubble.flow, Type: 'L7' } }
    const host = { flow: { ...hubble.flow, destination: { identity: 1, labels: ['reserved:host'] } } }
    const { value, findings } = readFlowsFile(lines(reply, request, host, { lost_events: { source: 'PERF' } }), 'h')
    expect(value).toEqual([])
    expect(findings).toMatchObject([
      { code: 'flows.passed-over', message: '4 entries tell of no new connection of a pod and are passed over' },
    ])
  })

  test('a dropped packet is a drop, an audited one neither', () => {
    const of = (verdict: string) => ({ flow: { ...hubble.flow, verdict } })
    expect(
      readFlowsFile(lines(of('DROPPED'), of('AUDIT'), of('REDIRECTED'))).value.map(({ decision }) => decision),
    ).toEqual(['DROP', 'AUDIT', 'ALLOW'])
  })
})

describe('files that are not whole', () => {
  test('a last line that is cut short costs itself alone', () => {
    const text = `${lines(row, row)}${JSON.stringify(row).slice(0, 90)}`
    const { value, findings } = readFlowsFile(text, 'cut.jsonl')
    expect(value).toHaveLength(2)
    expect(findings).toMatchObject([{ code: 'flows.cut-short', origin: { file: 'cut.jsonl', line: 3 } }])
  })

  test.each([5, 90, 140, 151])('and so does one in the middle, after %i characters', (length) => {
    const text = `${lines(row)}${JSON.stringify(row).slice(0, length)}\n${lines(row, record)}`
    const { value, findings } = readFlowsFile(text)
    expect(value).toHaveLength(3)
    expect(findings).toMatchObject([{ code: 'flows.cut-short', origin: { line: 2 } }])
  })

  test('what is no JSON is told with its line', () => {
    const { value, findings } = readFlowsFile(`${lines(row)}hubble: lost connection {\n${lines(row)}{"a": nope}\n`)
    expect(value).toHaveLength(2)
    expect(findings.map(({ code, origin }) => [code, origin?.line])).toEqual([
      ['flows.not-json', 2],
      ['flows.not-json', 4],
    ])
  })

  test('an object that is no flow, and a row without what it must have', () => {
    const { value, findings } = readFlowsFile(
      lines(
        { kind: 'Pod' },
        { ...row, traffic_type: 'SIDEWAYS' },
        { ...row, time_stamp: 'soon' },
        { ...row, pod_name: ' ' },
      ),
    )
    expect(value).toEqual([])
    expect(findings.map(({ code, origin }) => [code, origin?.line])).toEqual(
      [1, 2, 3, 4].map((line) => ['flows.not-a-flow', line]),
    )
  })

  test('rows without ports and of unknown protocols are kept, and told', () => {
    const { value, findings } = readFlowsFile(
      lines(
        { ...row, pod_port: null },
        { ...row, ip_protocol: 'QUIC' },
        { ...row, ip_protocol: 'ICMP', pod_port: '0' },
      ),
    )
    expect(value).toHaveLength(3)
    expect(findings.map(({ code, origin }) => [code, origin?.line])).toEqual([
      ['flows.no-port', 1],
      ['flows.unknown-protocol', 2],
    ])
  })

  test('of many alike twenty are listed and the rest is counted', () => {
    const { findings } = readFlowsFile(lines(...Array.from({ length: 50 }, () => ({ ...row, pod_port: '70000' }))))
    expect(findings.filter(({ code }) => code === 'flows.no-port')).toHaveLength(20)
    expect(findings.at(-1)).toMatchObject({
      code: 'flows.more',
      message: '30 more rows are like those told as flows.no-port',
    })
  })

  test('one page of several says so, and what it holds beside rows is told', () => {
    const { value, findings } = readFlowsFile(JSON.stringify({ items: [record, 7], next: 'abc' }))
    expect(value).toHaveLength(1)
    expect(findings.map(({ code }) => code)).toEqual(['flows.not-a-flow', 'flows.more-pages'])
  })

  test('a decision that nobody knows is kept and told; a missing one is that of brokers that reported nothing else', () => {
    const { value, findings } = readFlowsFile(
      lines({ ...row, decision: 'Forwarded' }, { ...row, decision: 'drop' }, { ...row, decision: null }),
    )
    expect(value.map(({ decision }) => decision)).toEqual(['FORWARDED', 'DROP', 'ALLOW'])
    expect(findings.map(({ code, origin }) => [code, origin?.line])).toEqual([['flows.unknown-decision', 1]])
  })

  test.each([
    [1e308, 1],
    [1e15, 1_000_000_000_000],
    [-5, 1],
    [2.5, 1],
    ['7', 1],
    [7, 7],
  ])('of %s sightings %i are counted', (hits, counted) => {
    expect(readFlowsFile(lines({ ...record, hits })).value[0]?.hits).toBe(counted)
  })
})

describe('layouts', () => {
  const pretty = JSON.stringify([row, record, hubble], undefined, 2)
  const layouts = [
    lines(row, record, hubble),
    pretty,
    JSON.stringify({ items: [row, record, hubble], next: null }),
    `\ufeff${lines(row, record, hubble)}`.replaceAll('\n', '\r\n'),
  ]

  test.each([...layouts.entries()])('%i gives the same flows', (_, text) => {
    const { value, findings } = readFlowsFile(text)
    expect(findings).toEqual([])
    expect(value).toEqual(readFlowsFile(layouts[0] ?? '').value)
  })

  test('chunks may end anywhere (seed 7)', () => {
    const text = `${lines(row)}${JSON.stringify(record).slice(0, 60)}\n${pretty}\n${lines({ ...row, pod_name: 'a"}{\\' })}`
    const whole = readFlowsFile(text)
    fc.assert(
      fc.property(fc.array(fc.nat(text.length), { maxLength: 6 }), (cuts) => {
        const reader = flowsFileReader('flows')
        const places = [0, ...cuts.sort((a, b) => a - b), text.length]
        const value = places.slice(1).flatMap((end, index) => reader.add(text.slice(places[index], end)))
        expect({ value, findings: reader.end() }).toEqual(whole)
      }),
      { seed: 7, numRuns: 200 },
    )
  })
})

import { Compile } from 'typebox/compile'
import { expect, test } from 'vitest'
import type { StoredFlow } from '#flows/flow'
import { batchHeaders } from './batch-answer'
import { FlowRecord, printFlowRecord } from './flow-record'
import { printAddressAnswer } from './owner-record'
import { readPostedPod } from './pod-record'
import { readPostedService } from './service-record'
import { parseTrafficRow, printTrafficRow, TrafficRow } from './traffic-row'

const at = Date.UTC(2026, 6, 23, 9, 14, 2) * 1000 + 118_377

const stored: StoredFlow = {
  id: 'b2c3',
  day: '2026-07-23',
  firstSeen: at,
  lastSeen: at + 1_000_000,
  hits: 2,
  pod: { namespace: 'db', name: 'mysql-0', uid: null, address: '10.0.0.9', workload: null, labels: null },
  direction: 'INGRESS',
  protocol: 'TCP',
  ownPort: 3306,
  peerAddress: '10.0.0.1',
  peerPort: 0,
  decision: 'ALLOW',
  peer: {
    kind: 'pod',
    namespace: 'shop',
    name: 'bare',
    uid: 'u1',
    workload: null,
    labels: { app: 'web' },
    resolvedAt: at,
  },
  outcome: { kind: 'resolved' },
}

test('a row has ports as texts, naive UTC times and the seven peer fields, and validates with a bare pod', () => {
  const row = printTrafficRow(stored)
  expect(row).toMatchObject({ pod_port: '3306', traffic_in_out_port: '0', time_stamp: '2026-07-23T09:14:02.118377' })
  expect(row).toMatchObject({
    peer_kind: 'pod',
    peer_workload_kind: null,
    peer_resolved_at: '2026-07-23T09:14:02.118377',
  })
  expect(Compile(TrafficRow).Check(row)).toBe(true)
  expect(Object.keys(printTrafficRow({ ...stored, peer: null })).filter((key) => key.startsWith('peer_'))).toHaveLength(
    7,
  )
})

test('a flow under /api/v1 says why it has no peer', () => {
  const nearest = { kind: 'pod', namespace: 'shop', name: 'late' } as const
  const record = printFlowRecord({
    ...stored,
    peer: null,
    outcome: { kind: 'rejected', reason: 'started-after', nearest },
  })
  expect(record.peer).toMatchObject({ kind: null, outcome: { kind: 'rejected', reason: 'started-after', nearest } })
  expect(record).toMatchObject({ firstSeen: '2026-07-23T09:14:02.118377Z', hits: 2 })
  const check = Compile(FlowRecord)
  expect(check.Check(record)).toBe(true)
  expect(check.Check(printFlowRecord({ ...stored, outcome: null }))).toBe(true)
})

const posted = {
  pod_name: 'mysql-0',
  ip_protocol: 'TCP',
  traffic_type: 'ingress',
  time_stamp: '2026-07-23T11:14:02.118377+02:00',
}

test('a posted row needs little, and its blanks are nothing', () => {
  const parsed = parseTrafficRow({
    ...posted,
    pod_ip: ' ',
    pod_port: 3306,
    traffic_in_out_port: '',
    novelty: { any: 1 },
  })
  expect(parsed).toEqual({
    kind: 'flow',
    flow: {
      id: '',
      pod: { namespace: null, name: 'mysql-0', uid: null, address: null },
      direction: 'INGRESS',
      protocol: 'TCP',
      ownPort: 3306,
      peerAddress: null,
      peerPort: null,
      decision: 'ALLOW',
      time: at,
      hits: 1,
    },
  })
})

test.each([
  [{ ...posted, pod_port: '80junk' }, 'pod_port'],
  [{ ...posted, traffic_in_out_port: 70_000 }, 'traffic_in_out_port'],
  [{ ...posted, traffic_type: 'SIDEWAYS' }, 'traffic_type'],
  [{ ...posted, time_stamp: '2026-07-23' }, 'time_stamp'],
  [{ ...posted, pod_name: null }, 'pod_name'],
  [{ ...posted, pod_name: undefined }, 'pod_name'],
  [{ ...posted, pod_ip: 5 }, 'pod_ip'],
  ['row', ''],
])('row %j is refused by its field', (row, field) => {
  expect(parseTrafficRow(row)).toMatchObject({ kind: 'bad', error: { field } })
})

test('a pod’s workload comes from the post, or else from its owner', () => {
  const owned = (kind: string, name: string, labels = {}) =>
    readPostedPod({
      pod_name: 'p',
      pod_obj: { metadata: { labels, ownerReferences: [{ kind, name, controller: true }] } },
    }).workload
  expect(owned('ReplicaSet', 'web-6d4cf56db6', { 'pod-template-hash': '6d4cf56db6' })).toEqual({
    kind: 'Deployment',
    name: 'web',
  })
  expect(owned('Job', 'backup-29315880')).toEqual({ kind: 'CronJob', name: 'backup' })
  expect(owned('StatefulSet', 'db')).toEqual({ kind: 'StatefulSet', name: 'db' })
  expect(readPostedPod({ pod_name: 'p', workload_kind: 'Deployment', workload_name: 'api' }).workload).toEqual({
    kind: 'Deployment',
    name: 'api',
  })
  expect(readPostedPod({ pod_name: 'p', workload_kind: 'Deployment' }).workload).toBeNull()
})

test('hostNetwork is false where a manifest does not say it, and unknown without a manifest', () => {
  expect(readPostedPod({ pod_name: 'p', pod_obj: { spec: {} } }).isHostNetwork).toBe(false)
  expect(readPostedPod({ pod_name: 'p' }).isHostNetwork).toBeNull()
  expect(readPostedPod({ pod_name: 'p', host_network: true, pod_obj: { spec: {} } }).isHostNetwork).toBe(true)
})

test('every address of a Service is read from its manifest, and without one only its own', () => {
  const service = readPostedService({
    svc_ip: '10.96.0.1',
    service_spec: {
      metadata: { name: 'web', namespace: 'shop' },
      spec: { clusterIP: '10.96.0.1', externalIPs: ['198.51.100.1'], ports: [{ port: 80, nodePort: 30_080 }] },
      status: { loadBalancer: { ingress: [{ ip: '198.51.100.2' }, { hostname: 'lb' }] } },
    },
  })
  expect(service.addresses.map(({ address, kind }) => `${kind} ${address}`)).toEqual([
    'cluster 10.96.0.1',
    'cluster 10.96.0.1',
    'external 198.51.100.1',
    'load-balancer 198.51.100.2',
  ])
  expect(service).toMatchObject({ isComplete: true, nodePorts: [{ protocol: 'TCP', port: 30_080 }], name: 'web' })
  expect(readPostedService({ svc_ip: '10.96.0.1', svc_name: 'web' }).isComplete).toBe(false)
})

test('headers name bad rows in ASCII, and not all of a long list', () => {
  const bad = Array.from({ length: 30 }, (_, index) => ({ index, field: 'pod_name', message: 'é\n' }))
  const headers = batchHeaders({ stored: 0, merged: 0, refused: 30, bad, replay: false })
  expect(headers['Portolan-Bad-Rows']).toMatch(/^[\x20-\x7e]+$/)
  expect(JSON.parse(headers['Portolan-Bad-Rows'] ?? '')).toHaveLength(10)
})

test('an answer says who, and why that is known', () => {
  const pod = {
    kind: 'pod',
    namespace: 'shop',
    name: 'web-1',
    uid: 'u',
    workload: null,
    isHostNetwork: false,
    startedAt: at,
    lastSeen: at,
    isDead: false,
    diedAt: null,
    deathReason: null,
  } as const
  const resolved = printAddressAnswer('10.0.0.1', at, { kind: 'resolved', peerKind: 'pod', holder: pod })
  expect(resolved.because).toBe('pod shop/web-1 has it since 2026-07-23T09:14:02.118377Z and is alive')
  const rejected = printAddressAnswer('10.0.0.1', at - 1, { kind: 'rejected', nearest: pod, reason: 'started-after' })
  expect(rejected).toMatchObject({ answer: 'rejected', reason: 'started-after', holder: { name: 'web-1' } })
  expect(rejected.because).toBe('shop/web-1 is the nearest holder of 10.0.0.1, but it started only after that')
  expect(printAddressAnswer('10.0.0.2', at, { kind: 'never-held' }).holder).toBeNull()
})

/** Rows that are refused, each for the field that is wrong, and keys that tell flows apart. */
import { describe, expect, test } from 'vitest'
import { checkFlow } from './check-flow'
import type { IncomingFlow } from './flow'
import { flowKeyText, type KeyedFlow } from './flow-key'
import { parseInstant } from './instant'

const now = parseInstant('2026-07-23T10:00:00') ?? 0
const limits = { now, futureSeconds: 300, pastSeconds: 14 * 86_400 }
const flow: IncomingFlow = {
  pod: { namespace: 'shop', name: 'web', address: '10.0.0.1' },
  direction: 'EGRESS',
  protocol: 'TCP',
  ownPort: 0,
  peerAddress: '10.0.0.2',
  peerPort: 5432,
  decision: 'ALLOW',
  time: now,
}

describe('a row is refused by the field that is wrong', () => {
  test.each<[string, Partial<IncomingFlow>]>([
    ['pod_name', { pod: { ...flow.pod, name: ' ' } }],
    ['pod_name', { pod: { ...flow.pod, name: 'we\u0000b' } }],
    ['pod_namespace', { pod: { ...flow.pod, namespace: 'x'.repeat(1025) } }],
    ['pod_ip', { pod: { ...flow.pod, address: '10.0.0' } }],
    ['traffic_in_out_ip', { peerAddress: 'a\u001fb' }],
    ['pod_port', { ownPort: 70_000 }],
    ['traffic_in_out_port', { peerPort: 8.5 }],
    ['hits', { hits: 0 }],
    ['time_stamp', { time: now + 301_000_000 }],
    ['time_stamp', { time: now - 15 * 86_400_000_000 }],
    ['time_stamp', { time: Number.NaN }],
  ])('%s', (field, change) => {
    expect(checkFlow({ ...flow, ...change }, limits)?.field).toBe(field)
  })

  test('a little ahead of the clock, a peer that is no address and a blank own address are not wrong', () => {
    expect(checkFlow({ ...flow, time: now + 299_000_000 }, limits)).toBeUndefined()
    expect(checkFlow({ ...flow, peerAddress: 'fe80::1%eth0' }, limits)).toBeUndefined()
    expect(checkFlow({ ...flow, pod: { ...flow.pod, address: '' } }, limits)).toBeUndefined()
  })
})

describe('the flow key', () => {
  const peer = { kind: 'pod', namespace: 'shop', name: 'db-0', uid: 'u2' } as const
  const keyed: KeyedFlow = { ...flow, pod: { ...flow.pod, uid: 'u1' }, peer }
  const key = (change: Partial<KeyedFlow>): string => flowKeyText({ ...keyed, ...change })

  test('case 22: another holder of the same address is another flow', () => {
    expect(key({ peer: { ...peer, uid: 'u3' } })).not.toBe(key({}))
    expect(key({ peer: null })).not.toBe(key({}))
  })

  test('case 28: the port of the client is no part of it, the protocol is', () => {
    expect(key({ ownPort: 40_001 })).toBe(key({ ownPort: 40_002 }))
    const ingress = { direction: 'INGRESS', ownPort: 53 } as const
    expect(key({ ...ingress, peerPort: 1 })).toBe(key({ ...ingress, peerPort: 2 }))
    expect(key({ ...ingress, protocol: 'UDP' })).not.toBe(key(ingress))
    expect(key({ peerPort: 53 })).not.toBe(key({ peerPort: 5432 }))
  })

  test('a uid stands for the whole name, on both sides', () => {
    expect(key({ pod: { ...keyed.pod, name: 'renamed' } })).toBe(key({}))
    expect(key({ peer: { ...peer, name: 'renamed' } })).toBe(key({}))
    const unnamed = { ...keyed.pod, uid: null }
    expect(key({ pod: { ...unnamed, name: 'a' } })).not.toBe(key({ pod: { ...unnamed, name: 'b' } }))
  })
})

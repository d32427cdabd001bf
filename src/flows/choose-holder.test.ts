/** The cases of the guard and of the order, each with its values, and the kinds of answer. */
import { describe, expect, test } from 'vitest'
import { chooseHolder } from './choose-holder'
import type { Holder, PodHolder, ServiceHolder } from './holder'
import { parseInstant } from './instant'

const at = (text: string): number => parseInstant(text) ?? Number.NaN

function pod(name: string, startedAt: string | null, more: Partial<PodHolder> = {}): PodHolder {
  return {
    kind: 'pod',
    namespace: 'shop',
    name,
    uid: null,
    workload: null,
    isHostNetwork: false,
    startedAt: startedAt === null ? null : at(startedAt),
    lastSeen: at('2026-12-01T00:00:00'),
    isDead: false,
    diedAt: null,
    deathReason: null,
    ...more,
  }
}

function dead(name: string, startedAt: string, lastSeen: string | null, more: Partial<PodHolder> = {}): PodHolder {
  return pod(name, startedAt, {
    isDead: true,
    lastSeen: lastSeen === null ? null : at(lastSeen),
    deathReason: 'stale',
    ...more,
  })
}

function service(name: string, more: Partial<ServiceHolder> = {}): ServiceHolder {
  return {
    kind: 'service',
    namespace: 'shop',
    name,
    uid: null,
    addressKind: 'cluster',
    createdAt: null,
    lastSeen: null,
    isDead: false,
    diedAt: null,
    ...more,
  }
}

function chosen(holders: readonly Holder[], time: string): string | null {
  const answer = chooseHolder(holders, at(time))
  return answer.kind === 'resolved' ? `${answer.peerKind} ${answer.holder.name}` : null
}

describe('the guard', () => {
  const late = pod('autobrr', '2026-08-04T09:12:41')

  test('case 1: a holder that started after the flow is never the one', () => {
    expect(chosen([late], '2026-07-23T10:00:00')).toBeNull()
  })

  test('case 2: a holder may have started in the very moment of the flow, not a second later', () => {
    expect(chosen([late], '2026-08-04T09:12:41')).toBe('pod autobrr')
    expect(chosen([late], '2026-08-04T09:12:40')).toBeNull()
  })

  test('case 3: a living holder whose start is unknown is never the one', () => {
    expect(chosen([pod('ghost', null)], '2026-12-01T00:00:00')).toBeNull()
  })

  test('case 6: a dead holder must have been seen at the time of the flow or later', () => {
    expect(chosen([dead('gone', '2026-07-01T00:00:00', '2026-07-23T09:59:59')], '2026-07-23T10:00:00')).toBeNull()
    expect(chosen([dead('gone', '2026-07-01T00:00:00', '2026-07-23T10:00:00')], '2026-07-23T10:00:00')).toBe('pod gone')
  })

  test('case 7: a dead holder that was never seen is never the one', () => {
    expect(chosen([dead('gone', '2026-07-01T00:00:00', null)], '2026-07-23T10:00:00')).toBeNull()
  })

  test('a death that was told counts, the moment of a sweep does not', () => {
    const told = { diedAt: at('2026-07-23T10:00:30'), deathReason: 'marked' } as const
    const seen = '2026-07-23T09:59:40'
    expect(chosen([dead('gone', '2026-07-01T00:00:00', seen, told)], '2026-07-23T10:00:00')).toBe('pod gone')
    const swept = { ...told, deathReason: 'stale' } as const
    expect(chosen([dead('gone', '2026-07-01T00:00:00', seen, swept)], '2026-07-23T10:00:00')).toBeNull()
  })
})

describe('the order', () => {
  test('case 4: the living before the dead, although the dead one started later', () => {
    const holders = [dead('old', '2026-09-02T00:00:00', '2026-09-10T00:00:00'), pod('new', '2026-08-01T00:00:00')]
    expect(chosen(holders, '2026-09-03T00:00:00')).toBe('pod new')
  })

  test('case 5: of the dead, the newest start that is not after the flow', () => {
    const holders = [
      pod('today', '2026-08-04T00:00:00'),
      dead('first', '2026-07-01T00:00:00', '2026-08-01T00:00:00'),
      dead('second', '2026-07-23T09:00:00', '2026-08-01T00:00:00'),
      dead('third', '2026-07-30T00:00:00', '2026-08-01T00:00:00'),
    ]
    expect(chosen(holders, '2026-07-23T10:00:00')).toBe('pod second')
  })

  test('case 8: what is equal in all else is ordered by namespace and name', () => {
    const holders = ['b', 'a', 'c'].map((name) => pod(name, '2026-07-01T00:00:00'))
    expect(chosen(holders, '2026-07-23T10:00:00')).toBe('pod a')
    const other = pod('z', '2026-07-01T00:00:00', { namespace: 'cache' })
    expect(chosen([...holders, other], '2026-07-23T10:00:00')).toBe('pod z')
  })

  test('case 9: a pod that the guard rejects leaves the Service its place', () => {
    expect(chosen([pod('late', '2026-08-04T00:00:00'), service('db')], '2026-07-23T10:00:00')).toBe('service db')
  })

  test('case 10: a dead pod that the guard lets through comes before a Service', () => {
    const holders = [service('db'), dead('gone', '2026-07-01T00:00:00', '2026-07-24T00:00:00')]
    expect(chosen(holders, '2026-07-23T10:00:00')).toBe('pod gone')
  })

  test('case 13: a host-network pod stands for its node', () => {
    const holder = pod('proxy-x', '2026-07-01T00:00:00', { isHostNetwork: true })
    expect(chosen([holder], '2026-07-23T10:00:00')).toBe('node proxy-x')
  })

  test('case 14: of three host-network pods the newest start wins, then the name, in whatever order they come', () => {
    const host = { isHostNetwork: true } as const
    const holders = [
      pod('a', '2026-07-01T00:00:00', host),
      pod('c', '2026-07-02T00:00:00', host),
      pod('b', '2026-07-02T00:00:00', host),
    ]
    for (const order of [
      [0, 1, 2],
      [2, 1, 0],
      [1, 0, 2],
      [1, 2, 0],
    ]) {
      expect(
        chosen(
          order.flatMap((index) => holders[index] ?? []),
          '2026-07-23T10:00:00',
        ),
      ).toBe('node b')
    }
  })

  test('a Service whose node port it is comes before the node, and after a pod of the pod network', () => {
    const node = pod('proxy-x', '2026-07-01T00:00:00', { isHostNetwork: true })
    const port = service('web', { addressKind: 'node-port' })
    expect(chosen([node, port], '2026-07-23T10:00:00')).toBe('service web')
    expect(chosen([pod('p', '2026-07-01T00:00:00'), port], '2026-07-23T10:00:00')).toBe('pod p')
  })
})

describe('Services', () => {
  test('case 11: a Service alone is the one, at any time when its creation is not known', () => {
    expect(chosen([service('db')], '1999-01-01T00:00:00')).toBe('service db')
  })

  test('one that was created after the flow, or deleted before it, is not', () => {
    expect(chosen([service('db', { createdAt: at('2026-08-01T00:00:00') })], '2026-07-23T10:00:00')).toBeNull()
    const deleted = service('db', { isDead: true, diedAt: at('2026-07-23T09:59:59') })
    expect(chosen([deleted], '2026-07-23T10:00:00')).toBeNull()
    expect(chosen([deleted], '2026-07-23T09:59:59')).toBe('service db')
  })
})

describe('what is not resolved', () => {
  test('case 12: an address that nobody held is told from one whose holders are rejected', () => {
    expect(chooseHolder([], at('2026-07-23T10:00:00'))).toEqual({ kind: 'never-held' })
  })

  test('the nearest candidate is named, with the reason', () => {
    const near = pod('near', '2026-07-23T10:00:05')
    const far = dead('far', '2026-07-01T00:00:00', '2026-07-23T09:00:00')
    expect(chooseHolder([far, pod('ghost', null), near], at('2026-07-23T10:00:00'))).toEqual({
      kind: 'rejected',
      nearest: near,
      reason: 'started-after',
    })
    expect(chooseHolder([far, pod('ghost', null)], at('2026-07-23T10:00:00'))).toMatchObject({ reason: 'ended-before' })
    expect(chooseHolder([pod('ghost', null)], at('2026-07-23T10:00:00'))).toMatchObject({ reason: 'start-unknown' })
  })
})

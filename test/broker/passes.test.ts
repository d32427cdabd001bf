/** Late resolution, the stale-alive sweep and retention on the broker’s clock, over HTTP, each case with its value. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { PodRecord } from '../../src/wire/pod-record'
import type { TrafficRow } from '../../src/wire/traffic-row'
import { describeBroker } from './engines'
import { flowPost, podPost } from './messages'
import type { TestBroker } from './running-broker'

type PassName = 'late-resolve' | 'stale-alive' | 'retention' | 'fold-edges' | 'vacuum'

/** How often a pass has ended, by the broker’s own metrics. */
async function runsOf(broker: TestBroker, pass: PassName): Promise<number> {
  const text = await (await broker.get('/metrics')).text()
  return [...text.matchAll(new RegExp(`^portolan_broker_pass_runs_total\\{pass="${pass}",.*\\} (\\d+)$`, 'gm'))].reduce(
    (sum, [, count]) => sum + Number(count),
    0,
  )
}

/** Turns the clock, and waits until each pass has run that often more. */
async function advance(broker: TestBroker, seconds: number, passes: Partial<Record<PassName, number>>): Promise<void> {
  const wanted = await Promise.all(
    Object.entries(passes).map(
      async ([pass, more]) => [pass as PassName, (await runsOf(broker, pass as PassName)) + more] as const,
    ),
  )
  await broker.clock.advance(seconds)
  for (const [pass, count] of wanted) {
    while ((await runsOf(broker, pass)) < count) await sleep(10)
  }
}

describeBroker({ now: '2026-09-10T12:00:00' }, (broker) => {
  const peersOf = async (pod: string): Promise<readonly (string | null)[]> =>
    (await broker().read<TrafficRow[]>(`/pod/traffic/${pod}`)).map((row) => row.peer_name)
  const post = (rows: readonly object[]): Promise<number> => broker().send<number>('/pod/traffic/batch', rows)

  test('34, 35: a pod that is posted later fills the flow in the next pass, if it started before the flow', async () => {
    await post([
      flowPost({ pod: 'late', peer: '10.3.0.34', time: '2026-09-10T11:59:50' }),
      flowPost({ pod: 'later', peer: '10.3.0.35', time: '2026-09-10T11:59:50' }),
    ])
    expect(await peersOf('late')).toEqual([null])
    const pod = { seen: '2026-09-10T12:00:20' }
    await broker().send(
      '/pod/spec',
      podPost({ ...pod, name: 'case-34', ip: '10.3.0.34', start: '2026-09-10T11:59:50Z' }),
    )
    await broker().send(
      '/pod/spec',
      podPost({ ...pod, name: 'case-35', ip: '10.3.0.35', start: '2026-09-10T11:59:51Z' }),
    )
    await advance(broker(), 60, { 'late-resolve': 1, 'stale-alive': 1 })
    expect(await broker().read<TrafficRow[]>('/pod/traffic/late')).toMatchObject([
      { peer_name: 'case-34', peer_kind: 'pod', peer_resolved_at: '2026-09-10T12:01:00' },
    ])
    expect(await peersOf('later')).toEqual([null])
  })

  test('36: a flow as old as the window is looked up once more, one a second older never', async () => {
    // The next pass is at 12:02:00, and its window begins at 11:52:00.
    await post([
      flowPost({ pod: 'edge', peer: '10.3.0.36', time: '2026-09-10T11:52:00' }),
      flowPost({ pod: 'beyond', peer: '10.3.0.36', time: '2026-09-10T11:51:59' }),
    ])
    await broker().send(
      '/pod/spec',
      podPost({ name: 'case-36', ip: '10.3.0.36', start: '2026-09-10T10:00:00Z', seen: '2026-09-10T12:01:00' }),
    )
    await advance(broker(), 60, { 'late-resolve': 1 })
    expect([await peersOf('edge'), await peersOf('beyond')]).toEqual([['case-36'], [null]])
  })

  test('37: a flow is found behind 20,010 newer ones that nobody can name, in one pass', async () => {
    await post([flowPost({ pod: 'starved', peer: '10.3.0.37', time: '2026-09-10T11:56:00' })])
    for (let start = 0; start < 20_010; start += 5000) {
      await post(
        Array.from({ length: Math.min(5000, 20_010 - start) }, (_, index) =>
          flowPost({
            pod: 'noise',
            type: 'EGRESS',
            peer: `198.18.${(start + index) >> 8}.${(start + index) & 255}`,
            time: '2026-09-10T12:01:30',
          }),
        ),
      )
    }
    await broker().send(
      '/pod/spec',
      podPost({ name: 'case-37', ip: '10.3.0.37', start: '2026-09-10T10:00:00Z', seen: '2026-09-10T12:02:00' }),
    )
    await advance(broker(), 60, { 'late-resolve': 1 })
    expect(await peersOf('starved')).toEqual(['case-37'])
  }, 120_000)

  test('38: a flow that has its peer keeps it, whatever becomes of the pods', async () => {
    await broker().send(
      '/pod/spec',
      podPost({ name: 'case-38', ip: '10.3.0.38', start: '2026-09-10T10:00:00Z', seen: '2026-09-10T12:03:00' }),
    )
    await post([flowPost({ pod: 'kept', peer: '10.3.0.38', time: '2026-09-10T12:02:00' })])
    const [before] = await broker().read<TrafficRow[]>('/pod/traffic/kept')
    await broker().send('/pod/mark_dead', { pod_name: 'case-38' })
    await broker().send(
      '/pod/spec',
      podPost({ name: 'other-38', ip: '10.3.0.38', start: '2026-09-10T11:00:00Z', seen: '2026-09-10T12:03:00' }),
    )
    await advance(broker(), 60, { 'late-resolve': 1 })
    const [after] = await broker().read<TrafficRow[]>('/pod/traffic/kept')
    expect(before?.peer_name).toBe('case-38')
    expect(after).toEqual(before)
  })

  test('40: a pod that was not posted for 901 s is dead, one of 899 s alive; a post revives it', async () => {
    // The next pass is at 12:05:00; 900 s before it is 11:50:00.
    const start = '2026-09-10T10:00:00Z'
    await broker().send(
      '/pod/spec',
      podPost({ name: 'case-40-old', ip: '10.3.0.40', start, seen: '2026-09-10T11:49:59' }),
    )
    await broker().send(
      '/pod/spec',
      podPost({ name: 'case-40-new', ip: '10.3.1.40', start, seen: '2026-09-10T11:50:01' }),
    )
    await advance(broker(), 60, { 'stale-alive': 1 })
    const record = async (name: string) => broker().read<PodRecord>(`/pod/name/${name}`)
    expect(await record('case-40-old')).toMatchObject({ is_dead: true, time_stamp: '2026-09-10T11:49:59' })
    expect((await record('case-40-new')).is_dead).toBe(false)
    await broker().send(
      '/pod/spec',
      podPost({ name: 'case-40-old', ip: '10.3.0.40', start, seen: '2026-09-10T12:05:00' }),
    )
    expect((await record('case-40-old')).is_dead).toBe(false)
  })

  test('a swept pod is no peer of flows after it was last seen', async () => {
    const start = '2026-09-10T10:00:00Z'
    await broker().send('/pod/spec', podPost({ name: 'swept', ip: '10.3.0.41', start, seen: '2026-09-10T11:40:00' }))
    await advance(broker(), 60, { 'stale-alive': 1 })
    await post([
      flowPost({ pod: 'before-sweep', peer: '10.3.0.41', time: '2026-09-10T11:40:00' }),
      flowPost({ pod: 'after-sweep', peer: '10.3.0.41', time: '2026-09-10T11:41:00' }),
    ])
    expect([await peersOf('before-sweep'), await peersOf('after-sweep')]).toEqual([['swept'], [null]])
  })

  test('edges sum what was seen, workload to workload', async () => {
    const pod = { start: '2026-09-10T10:00:00Z', seen: '2026-09-10T12:06:00', workload: 'Deployment/web' }
    await broker().send('/pod/spec', podPost({ ...pod, name: 'web-1', ip: '10.3.0.50' }))
    await broker().send('/pod/spec', podPost({ ...pod, name: 'web-2', ip: '10.3.0.51' }))
    await broker().send(
      '/pod/spec',
      podPost({ ...pod, name: 'store-0', namespace: 'edges', ip: '10.3.0.60', workload: 'StatefulSet/store' }),
    )
    const flow = { pod: 'store-0', namespace: 'edges', ip: '10.3.0.60', time: '2026-09-10T12:05:30' }
    await post([
      flowPost({ ...flow, peer: '10.3.0.50' }),
      flowPost({ ...flow, peer: '10.3.0.51' }),
      flowPost({ ...flow, peer: '10.3.0.51' }),
    ])
    await advance(broker(), 15, { 'fold-edges': 1 })
    const { items } = await broker().read<{ items: object[] }>('/api/v1/edges?namespace=edges')
    expect(items).toMatchObject([
      {
        from: { kind: 'pod', namespace: 'shop', workload: { kind: 'Deployment', name: 'web' } },
        to: { kind: 'pod', namespace: 'edges', workload: { kind: 'StatefulSet', name: 'store' } },
        protocol: 'TCP',
        port: 3306,
        decision: 'ALLOW',
        observedAt: 'to',
        hits: 3,
      },
    ])
  })
})

describeBroker(
  {
    now: '2026-07-01T12:00:00',
    settings: { staleAliveSeconds: 0, lateResolveWindowSeconds: 0, foldIntervalSeconds: 3600 },
  },
  (broker) => {
    test('39: a window of 0 looks nothing up again, and ingest names peers all the same', async () => {
      await broker().send(
        '/pod/spec',
        podPost({ name: 'case-39', ip: '10.4.0.39', start: '2026-07-01T10:00:00Z', seen: '2026-07-01T11:59:00' }),
      )
      await broker().send('/pod/traffic/batch', [
        flowPost({ pod: 'p39', peer: '10.4.0.39', time: '2026-07-01T11:59:30' }),
      ])
      expect(await broker().read('/pod/traffic/p39')).toMatchObject([{ peer_name: 'case-39' }])
      await broker().clock.advance(30)
      expect(await runsOf(broker(), 'late-resolve')).toBe(0)
    })

    // The loop goes on when its last pass has ended.
    const retentionLoop = () => ({ retention: 1, ...(broker().store.engine === 'embedded' && { vacuum: 1 }) })

    test('41, 42: old flows go with their day unless they are still seen, dead pods after 30 days', async () => {
      const pod = { start: '2026-06-30T00:00:00Z', seen: '2026-07-01T12:00:00' }
      await broker().send('/pod/spec', podPost({ ...pod, name: 'living', namespace: 'db', ip: '10.4.0.1' }))
      await broker().send('/pod/spec', podPost({ ...pod, name: 'dying', namespace: 'db', ip: '10.4.0.2' }))
      const flow = { peer: '203.0.113.41', time: '2026-07-01T12:00:00' }
      await broker().send('/pod/traffic/batch', [
        flowPost({ ...flow, pod: 'living', ip: '10.4.0.1' }),
        flowPost({ ...flow, pod: 'dying', ip: '10.4.0.2' }),
      ])
      await broker().send('/pod/mark_dead', { pod_name: 'dying' })
      await advance(broker(), 60, retentionLoop())
      expect((await broker().get('/pod/name/dying')).status).toBe(200)

      broker().clock.set('2026-08-31T12:00:00')
      await broker().send(
        '/pod/spec',
        podPost({ ...pod, name: 'living', namespace: 'db', ip: '10.4.0.1', seen: '2026-08-31T11:59:00' }),
      )
      await advance(broker(), 3600, retentionLoop())
      expect(await broker().read('/pod/traffic/living')).toMatchObject([{ time_stamp: '2026-07-01T12:00:00' }])
      expect(await broker().read('/pod/traffic/dying')).toEqual([])
      expect((await broker().get('/pod/name/dying')).status).toBe(404)
      expect((await broker().get('/pod/name/living')).status).toBe(200)
    })
  },
)

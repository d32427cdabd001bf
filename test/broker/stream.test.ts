/** Lists by pages and lines, and the live stream: filters, replay, signs of life, and clients that do not read. */
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { createParser, type EventSourceMessage } from 'eventsource-parser'
import { beforeAll, expect, test } from 'vitest'
import type { FlowRecord } from '../../src/wire/flow-record'
import type { OwnershipRecord, PodAnswer } from '../../src/wire/owner-record'
import { describeBroker } from './engines'
import { flowPost, podPost } from './messages'
import type { TestBroker } from './running-broker'

type FlowPage = { readonly items: readonly FlowRecord[]; readonly next: string | null }

describeBroker({ settings: { streamBufferBytes: 65_536, maxStreams: 3 } }, (broker) => {
  beforeAll(async () => {
    const pod = { start: '2026-09-01T00:00:00Z', seen: '2026-09-10T11:59:00' }
    await broker().send('/pod/spec', podPost({ ...pod, name: 'web-1', ip: '10.5.0.1', workload: 'Deployment/web' }))
    await broker().send(
      '/pod/spec',
      podPost({ ...pod, name: 'api-1', namespace: 'back', ip: '10.5.0.2', workload: 'Deployment/api' }),
    )
    await broker().send(
      '/pod/traffic/batch',
      Array.from({ length: 230 }, (_, index) =>
        flowPost({
          pod: 'api-1',
          namespace: 'back',
          ip: '10.5.0.2',
          peer: '10.5.0.1',
          port: String(8000 + index),
          time: `2026-09-10T11:${String(index % 60).padStart(2, '0')}:00`,
          ...(index % 10 === 0 && { decision: 'DROP' }),
        }),
      ),
    )
  })

  test('pages follow each other without a gap or a repeat, newest first', async () => {
    const rows: FlowRecord[] = []
    let cursor = ''
    for (;;) {
      const page = await broker().read<FlowPage>(`/api/v1/flows?limit=50${cursor}`)
      rows.push(...page.items)
      if (page.next === null) break
      cursor = `&cursor=${encodeURIComponent(page.next)}`
    }
    expect(rows).toHaveLength(230)
    expect(new Set(rows.map(({ id }) => id)).size).toBe(230)
    const times = rows.map(({ firstSeen }) => firstSeen)
    expect(times).toEqual([...times].sort().reverse())
  })

  test('lines bring the whole list, or as much of it as is asked for', async () => {
    const lines = async (path: string): Promise<readonly FlowRecord[]> => {
      const response = await broker().get(path, { Accept: 'application/x-ndjson' })
      expect(response.headers.get('content-type')).toMatch(/^application\/x-ndjson/)
      const text = await response.text()
      return text
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line) as FlowRecord)
    }
    expect(await lines('/api/v1/flows')).toHaveLength(230)
    expect(await lines('/api/v1/flows?verdict=DROP')).toHaveLength(23)
    expect(await lines('/api/v1/flows?limit=7')).toHaveLength(7)
    expect(await lines('/api/v1/flows?namespace=nowhere')).toEqual([])
    expect((await lines('/api/v1/pods')).length).toBe(2)
  })

  test.each([
    ['from.pod=shop/web', 230],
    ['to.pod=shop/web', 0],
    ['from.namespace=shop&to.namespace=back', 230],
    ['to.workload=deployment/api&verdict=DROP', 23],
    ['not.verdict=ALLOW', 23],
    ['verdict=DROP&verdict=ALLOW', 230],
    ['port=8000&port=8001', 2],
    ['not.port=8000&not.port=8001', 228],
    ['from.ip=10.5.0.0/31', 230],
    ['from.ip=10.5.0.2', 0],
    ['peer=pod', 230],
    ['not.peer=pod', 0],
    ['label=app=web-1', 230],
    ['from.label=app in (api-1)', 0],
    ['direction=ingress', 230],
    ['protocol=udp', 0],
    ['since=2026-09-10T11:50:00Z', 30],
    ['until=2026-09-10T11:10:00Z', 40],
    ['since=-30m', 0],
  ])('%s lets %i flows through', async (query, count) => {
    const { items } = await broker().read<FlowPage>(`/api/v1/flows?limit=1000&${query.replaceAll(' ', '%20')}`)
    // -30m counts from the broker’s clock, 12:00, and flows end at 11:59.
    expect(items).toHaveLength(query === 'since=-30m' ? 110 : count)
  })

  test('who had an address, and when, is told with the reason', async () => {
    expect(await broker().read('/api/v1/addresses/10.5.0.1?at=2026-09-10T10:00:00Z')).toMatchObject({
      answer: 'resolved',
      because: 'pod shop/web-1 has it since 2026-09-01T00:00:00Z and is alive',
      holder: { kind: 'pod', namespace: 'shop', name: 'web-1', workload: { kind: 'Deployment', name: 'web' } },
    })
    expect(await broker().read('/api/v1/addresses/10.5.0.1?at=2026-08-01T10:00:00Z')).toMatchObject({
      answer: 'rejected',
      reason: 'started-after',
      holder: { name: 'web-1' },
    })
    expect(await broker().read('/api/v1/addresses/203.0.113.200')).toMatchObject({ answer: 'never-held', holder: null })
    const history = await broker().read<{ items: OwnershipRecord[] }>('/api/v1/addresses/10.5.0.1/history')
    expect(history.items).toMatchObject([{ name: 'web-1', heldUntil: null }])
    const bad = await broker().get('/api/v1/addresses/010.0.0.1')
    expect([bad.status, await bad.json()]).toMatchObject([400, { errors: [{ field: 'path.ip' }] }])
  })

  test('pods are found by namespace and name', async () => {
    expect((await broker().read<PodAnswer>('/api/v1/pods/shop/web-1')).addresses).toEqual(['10.5.0.1'])
    expect((await broker().get('/api/v1/pods/back/web-1')).status).toBe(404)
    const { items } = await broker().read<{ items: PodAnswer[] }>('/api/v1/pods?namespace=back')
    expect(items.map(({ name }) => name)).toEqual(['api-1'])
  })

  test('the stream tells flows that fit, as they arrive, and shows signs of life', async () => {
    const stream = await openStream(broker(), '/api/v1/flows/stream?verdict=DROP')
    const row = { pod: 'live', peer: '203.0.113.70', time: '2026-09-10T11:59:00' }
    await broker().send('/pod/traffic/batch', [flowPost(row), flowPost({ ...row, decision: 'DROP' })])
    const event = await stream.next('flow')
    expect(JSON.parse(event.data)).toMatchObject({ pod: { name: 'live' }, decision: 'DROP' })
    expect(event.id).toBe('2026-09-10T12:00:00Z')
    await broker().clock.advance(15)
    await stream.waitForText(': alive')
    await stream.close()
  })

  test('a client that reads is told every flow of a batch, however many come at once', async () => {
    const stream = await openStream(broker(), '/api/v1/flows/stream?pod=db/burst')
    const rows = Array.from({ length: 1500 }, (_, index) =>
      flowPost({ pod: 'burst', peer: '203.0.113.73', port: String(index + 1), time: '2026-09-10T11:59:00' }),
    )
    expect(await broker().send('/pod/traffic/batch', rows)).toBe(1500)
    while (stream.received().length < 1500 && (await streamsOf(broker())) > 0) await sleep(20)
    expect(stream.received().map(({ event }) => event)).toEqual(Array(1500).fill('flow'))
    await stream.close()
  })

  test('a client that comes back is told what it missed, from the last event’s id or from since', async () => {
    const time = '2026-09-10T12:00:10'
    await broker().send('/pod/traffic/batch', [flowPost({ pod: 'missed', peer: '203.0.113.71', time })])
    for (const [query, headers] of [
      ['', { 'Last-Event-ID': '2026-09-10T12:00:05Z' }],
      ['&since=2026-09-10T12:00:00Z', {}],
    ] as const) {
      const stream = await openStream(broker(), `/api/v1/flows/stream?pod=db/missed${query}`, headers)
      expect(JSON.parse((await stream.next('flow')).data)).toMatchObject({ pod: { name: 'missed' } })
      await stream.close()
    }
  })

  test('there is a bound to the number of streams', async () => {
    const streams = [
      await openStream(broker(), '/api/v1/flows/stream'),
      await openStream(broker(), '/api/v1/flows/stream'),
    ]
    streams.push(await openStream(broker(), '/api/v1/flows/stream'))
    const refused = await broker().get('/api/v1/flows/stream')
    expect([refused.status, refused.headers.get('Retry-After')]).toEqual([503, '5'])
    for (const stream of streams) await stream.close()
    while ((await streamsOf(broker())) > 0) await sleep(20)
  })

  test('a client that does not read is cut off, and the broker keeps nothing for it', async () => {
    const socket = connect(broker().port, '127.0.0.1')
    socket.write(`GET /api/v1/flows/stream HTTP/1.1\r\nHost: localhost\r\n\r\n`)
    socket.pause()
    while ((await streamsOf(broker())) < 1) await sleep(20)
    let round = 0
    while ((await streamsOf(broker())) > 0) {
      const rows = Array.from({ length: 2000 }, (_, index) =>
        flowPost({ pod: `flood-${round}`, peer: '203.0.113.72', port: String(index + 1), time: '2026-09-10T12:00:12' }),
      )
      await broker().send('/pod/traffic/batch', rows)
      if (++round > 40) break
    }
    expect(await streamsOf(broker())).toBe(0)
    expect(await (await broker().get('/metrics')).text()).toMatch(/^portolan_broker_dropped_streams_total 1$/m)
    socket.destroy()
  }, 120_000)
})

async function streamsOf(broker: TestBroker): Promise<number> {
  const text = await (await broker.get('/metrics')).text()
  return Number(/^portolan_broker_streams (\d+)$/m.exec(text)?.[1])
}

async function openStream(broker: TestBroker, path: string, headers: Record<string, string> = {}) {
  const ending = new AbortController()
  const response = await fetch(`${broker.url}${path}`, { headers, signal: ending.signal })
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8'])
  const events: EventSourceMessage[] = []
  let text = ''
  const parser = createParser({ onEvent: (event) => events.push(event) })
  const reading = (async () => {
    const decoder = new TextDecoder()
    for await (const chunk of response.body ?? []) {
      const piece = decoder.decode(chunk, { stream: true })
      text += piece
      parser.feed(piece)
    }
  })().catch(() => {})
  return {
    received: (): readonly EventSourceMessage[] => events,
    next: async (name: string): Promise<EventSourceMessage> => {
      for (;;) {
        const at = events.findIndex((event) => event.event === name)
        if (at >= 0) return events.splice(0, at + 1)[at] as EventSourceMessage
        await sleep(10)
      }
    },
    waitForText: async (wanted: string): Promise<void> => {
      while (!text.includes(wanted)) await sleep(10)
    },
    close: () => {
      ending.abort()
      return reading
    },
  }
}

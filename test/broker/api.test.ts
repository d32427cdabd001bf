/** The compatible paths over HTTP: times, limits, blanks, repeats, dead pods and Services, each case with its value. */
import { expect, test } from 'vitest'
import type { PodRecord } from '../../src/wire/pod-record'
import type { ServiceRecord } from '../../src/wire/service-record'
import type { TrafficRow } from '../../src/wire/traffic-row'
import { describeBroker } from './engines'
import { flowPost, podPost, servicePost } from './messages'

describeBroker({ settings: { flowRetentionDays: 3650 } }, (broker) => {
  test('23: at is understood with an offset, in UTC, and without either', async () => {
    await broker().send(
      '/pod/spec',
      podPost({ name: 'case-23', ip: '10.2.0.23', start: '2026-07-23T10:00:00Z', seen: '2026-09-10T11:59:00' }),
    )
    for (const at of ['2026-07-23T12:00:00+02:00', '2026-07-23T10:00:00Z', '2026-07-23T10:00:00']) {
      const pod = await broker().read<PodRecord>(`/pod/ip/10.2.0.23?at=${encodeURIComponent(at)}`)
      expect(pod.pod_name).toBe('case-23')
    }
    expect((await broker().get('/pod/ip/10.2.0.23?at=2026-07-23T09:59:59')).status).toBe(404)
  })

  test('24: at that is no time is 400 with a text, and a blank one is none', async () => {
    await broker().send('/pod/spec', podPost({ name: 'case-24', ip: '10.2.0.24', seen: '2026-09-10T11:59:00' }))
    for (const at of ['yesterday', '2026-07-23', '1690000000', '2026-13-01T00:00:00']) {
      const response = await broker().get(`/pod/ip/10.2.0.24?at=${at}`)
      expect(response.status).toBe(400)
      expect(response.headers.get('content-type')).toMatch(/^text\/plain/)
    }
    for (const blank of ['?at=', '?at=%20', '']) {
      expect((await broker().read<PodRecord>(`/pod/ip/10.2.0.24${blank}`)).pod_name).toBe('case-24')
    }
  })

  test('25: nobody that passes is 404 with the words that clients look for', async () => {
    await broker().send(
      '/pod/spec',
      podPost({ name: 'case-25', ip: '10.2.0.25', start: '2026-08-04T00:00:00Z', seen: '2026-09-10T11:59:00' }),
    )
    const response = await broker().get('/pod/ip/10.2.0.25?at=2026-07-23T10:00:00Z')
    expect([response.status, await response.text()]).toEqual([404, 'No data found'])
  })

  test('26: a batch of 100 with 90 repeats is 10 new flows', async () => {
    const batch = Array.from({ length: 100 }, (_, index) =>
      flowPost({
        pod: 'p26',
        peer: `203.0.113.${index % 10}`,
        time: `2026-09-10T10:00:${String(index % 60).padStart(2, '0')}`,
      }),
    )
    const response = await broker().post('/pod/traffic/batch', batch)
    expect([response.status, await response.json()]).toEqual([200, 10])
    expect(response.headers.get('Portolan-Merged')).toBe('90')
    expect(await broker().send('/pod/traffic/batch', [])).toBe(0)
  })

  test('27: repeats in a batch that differ only in uuid and time are one row that counts them', async () => {
    const times = ['2026-09-10T10:00:05', '2026-09-10T10:00:01', '2026-09-10T10:00:09.5']
    const batch = times.map((time) => flowPost({ pod: 'p27', peer: '203.0.113.27', time }))
    expect(await broker().send('/pod/traffic/batch', batch)).toBe(1)
    expect(await broker().read<TrafficRow[]>('/pod/traffic/p27')).toMatchObject([{ time_stamp: '2026-09-10T10:00:01' }])
    const { items } = await broker().read<{ items: object[] }>('/api/v1/flows?from.ip=203.0.113.27')
    expect(items).toMatchObject([{ hits: 3, firstSeen: '2026-09-10T10:00:01Z', lastSeen: '2026-09-10T10:00:09.500Z' }])
  })

  test('28: the client’s own port tells no flows apart; TCP and UDP on one port are two flows', async () => {
    const egress = {
      pod: 'p28',
      type: 'EGRESS' as const,
      peer: '203.0.113.28',
      peerPort: '53',
      time: '2026-09-10T10:00:00',
    }
    const batch = [
      flowPost({ ...egress, protocol: 'UDP', port: '40001' }),
      flowPost({ ...egress, protocol: 'UDP', port: '40002' }),
      flowPost({ ...egress, protocol: 'TCP', port: '40003' }),
    ]
    expect(await broker().send('/pod/traffic/batch', batch)).toBe(2)
    const rows = await broker().read<TrafficRow[]>('/pod/traffic/p28')
    expect(rows.map((row) => row.ip_protocol).sort()).toEqual(['TCP', 'UDP'])
    expect(rows.every((row) => row.traffic_in_out_port === '53')).toBe(true)
  })

  test('29: limit is kept within 1 and 20000, and must be a whole number', async () => {
    expect(await broker().read('/pod/traffic?limit=-5')).toHaveLength(1)
    expect(((await broker().read('/pod/traffic?limit=999999')) as unknown[]).length).toBeGreaterThan(1)
    for (const limit of ['abc', '5.5', '']) {
      const response = await broker().get(`/pod/traffic?limit=${limit}`)
      expect(response.status).toBe(400)
      expect(await response.json()).toMatchObject({ status: 400, errors: [{ field: 'query.limit' }] })
    }
  })

  test('30: a pod is marked dead by the address it has, and by no other', async () => {
    await broker().send(
      '/pod/spec',
      podPost({ name: 'case-30', ip: '10.2.0.30', start: '2026-08-04T00:00:00Z', seen: '2026-09-10T11:59:00' }),
    )
    expect(await broker().send('/pod/mark_dead', { pod_name: 'case-30', pod_ip: '10.2.0.99' })).toBe(0)
    expect((await broker().read<PodRecord>('/pod/name/case-30')).is_dead).toBe(false)
    expect(await broker().send('/pod/mark_dead', { pod_name: '', pod_ip: '10.2.0.30' })).toBe(0)
    expect(await broker().send('/pod/mark_dead', { pod_name: 'case-30', pod_ip: '::ffff:10.2.0.30' })).toBe(1)
    expect((await broker().read<PodRecord>('/pod/name/case-30')).is_dead).toBe(true)
  })

  test('a pod that is posted as dead takes no other incarnation of its name with it', async () => {
    const pod = { name: 'again', seen: '2026-09-10T11:59:00' }
    const first = podPost({ ...pod, ip: '10.2.0.60', uid: 'one', start: '2026-09-01T00:00:00Z' })
    await broker().send('/pod/spec', first)
    await broker().send('/pod/spec', podPost({ ...pod, ip: '10.2.0.61', uid: 'two', start: '2026-09-10T11:00:00Z' }))
    expect(await broker().send('/pod/spec', { ...first, is_dead: true })).toMatchObject({ is_dead: true })
    expect(await broker().read('/pod/name/again')).toMatchObject({ pod_ip: '10.2.0.61', is_dead: false })
  })

  test('31: a Service without an address is answered and not stored', async () => {
    for (const ip of ['None', '', ' ']) {
      const response = await broker().post('/svc/spec', servicePost({ name: 'case-31', ip }))
      expect(response.status).toBe(200)
    }
    const services = await broker().read<ServiceRecord[]>('/svc/info')
    expect(services.filter((one) => one.svc_name === 'case-31')).toEqual([])
  })

  test('a pod without a name is answered and not stored', async () => {
    const response = await broker().post(
      '/pod/spec',
      podPost({ name: ' ', ip: '10.2.0.40', seen: '2026-09-10T11:59:00' }),
    )
    expect(response.status).toBe(200)
    expect((await broker().get('/pod/ip/10.2.0.40')).status).toBe(404)
    expect(broker().log()).toContain('a pod without a name was posted')
  })

  test('of a manifest metadata and hostNetwork are kept, and the start is read before', async () => {
    const post = podPost({
      name: 'compact',
      ip: '10.2.0.41',
      uid: 'u-41',
      start: '2026-08-04T00:00:00Z',
      seen: '2026-09-10T11:59:00',
    })
    const answer = await broker().send<PodRecord>('/pod/spec', post)
    expect(answer.pod_obj).toEqual({
      metadata: expect.objectContaining({ name: 'compact', uid: 'u-41' }),
      spec: { hostNetwork: false },
    })
    expect(answer.pod_obj?.metadata).not.toHaveProperty('managedFields')
    expect(answer).toMatchObject({ started_at: '2026-08-04T00:00:00', host_network: false, pod_ips: ['10.2.0.41'] })
    const { pod_obj: _manifest, ...withoutManifest } = post as { pod_obj: object }
    await broker().send('/pod/spec', { ...withoutManifest, time_stamp: '2026-09-10T11:59:30' })
    const pods = await broker().read<PodRecord[]>('/pod/list/node-a')
    expect(pods.filter((pod) => pod.pod_name === 'compact')).toMatchObject([{ started_at: '2026-08-04T00:00:00' }])
  })

  test('of a Service status and managedFields are not kept, and its other addresses resolve', async () => {
    const post = servicePost({
      name: 'edge',
      ip: '10.96.0.42',
      spec: { clusterIPs: ['10.96.0.42', 'fd00::42'], externalIPs: ['198.51.100.42'] },
      status: { loadBalancer: { ingress: [{ ip: '198.51.100.43' }, { hostname: 'lb.example' }] } },
    })
    const answer = await broker().send<ServiceRecord>('/svc/spec', post)
    expect(answer.service_spec).not.toHaveProperty('status')
    expect(answer.service_spec?.metadata).not.toHaveProperty('managedFields')
    for (const ip of ['10.96.0.42', 'fd00:0::42', '198.51.100.42', '198.51.100.43']) {
      expect((await broker().read<ServiceRecord>(`/svc/ip/${ip}`)).svc_name).toBe('edge')
    }
    expect(await broker().send('/api/v1/services/delete', { namespace: 'shop', name: 'edge' })).toEqual({ deleted: 1 })
    const gone = await broker().get('/svc/ip/10.96.0.42')
    expect([gone.status, await gone.text()]).toEqual([404, 'No data found'])
  })

  test('a batch with one bad row stores the rest and names the bad one', async () => {
    const rows = [
      flowPost({ pod: 'p50', peer: '203.0.113.50', time: '2026-09-10T10:00:00' }),
      { ...flowPost({ pod: 'p50', peer: '203.0.113.51', time: '2026-09-10T10:00:00' }), pod_port: '80junk' },
      flowPost({ pod: 'p50', peer: '203.0.113.52', time: '2026-09-10T12:05:01' }),
      { pod_name: 'p50' },
      flowPost({ pod: 'p50', peer: '203.0.113.53', time: '2026-09-10T10:00:00' }),
      null,
    ]
    const response = await broker().post('/pod/traffic/batch', rows)
    expect([response.status, await response.json()]).toEqual([200, 2])
    expect(response.headers.get('Portolan-Refused')).toBe('4')
    const named = JSON.parse(response.headers.get('Portolan-Bad-Rows') ?? '[]') as { index: number; field: string }[]
    expect(named.map(({ index, field }) => [index, field])).toEqual([
      [1, 'pod_port'],
      [2, 'time_stamp'],
      [3, expect.stringMatching(/ip_protocol|traffic_type|time_stamp/)],
      [5, expect.any(String)],
    ])
    const whole = await broker().send<{ stored: number; bad: object[] }>('/api/v1/flows', rows)
    expect(whole).toMatchObject({ stored: 0, merged: 2, refused: 4, replay: false })
    expect(whole.bad[0]).toMatchObject({ index: 1, field: 'pod_port' })
  })

  test('rows a little ahead of the clock are stored as they are', async () => {
    const ahead = flowPost({ pod: 'p51', peer: '203.0.113.51', time: '2026-09-10T12:04:59' })
    expect(await broker().send('/pod/traffic/batch', [ahead])).toBe(1)
    expect(await broker().read<TrafficRow[]>('/pod/traffic/p51')).toMatchObject([{ time_stamp: '2026-09-10T12:04:59' }])
  })

  test('a batch that is repeated with its key stores nothing and gets the first answer', async () => {
    const rows = [1, 2, 3].map((index) =>
      flowPost({ pod: 'p52', peer: `198.51.100.${index}`, time: '2026-09-10T10:00:00' }),
    )
    const key = { 'Idempotency-Key': crypto.randomUUID() }
    expect(await broker().send('/pod/traffic/batch', rows, key)).toBe(3)
    const again = await broker().post('/pod/traffic/batch', rows, key)
    expect([again.status, await again.json(), again.headers.get('Idempotent-Replay')]).toEqual([200, 3, 'true'])
    const { items } = await broker().read<{ items: { hits: number }[] }>('/api/v1/flows?pod=db/p52')
    expect(items.map(({ hits }) => hits)).toEqual([1, 1, 1])
    const other = await broker().post('/pod/traffic/batch', rows.slice(1), key)
    expect([other.status, await other.json()]).toMatchObject([
      400,
      { code: 'bad-request', detail: expect.stringContaining('was used for another batch') },
    ])
    expect(await broker().send('/pod/traffic/batch', rows)).toBe(0)
  })

  test('a key that is too long is refused on each path', async () => {
    const row = flowPost({ pod: 'p54', peer: '198.51.100.54', time: '2026-09-10T10:00:00' })
    for (const [path, body] of [
      ['/pod/traffic', row],
      ['/pod/traffic/batch', [row]],
      ['/api/v1/flows', [row]],
    ] as const) {
      const response = await broker().post(path, body, { 'Idempotency-Key': 'k'.repeat(5000) })
      expect([response.status, await response.json()]).toMatchObject([400, { code: 'bad-request' }])
    }
  })

  test('one flow may be posted by itself; one that is wrong is 422 and names the field', async () => {
    expect(
      await broker().send('/pod/traffic', flowPost({ pod: 'p53', peer: '198.51.100.53', time: '2026-09-10T10:00:00' })),
    ).toBe(1)
    const wrong = await broker().post('/pod/traffic', { ...flowPost({ pod: 'p53', peer: 'x', time: 'now' }) })
    expect([wrong.status, await wrong.json()]).toMatchObject([422, { errors: [{ field: 'body.time_stamp' }] }])
  })

  test('reads have their order, and names that are not there their status', async () => {
    const rows = await broker().read<TrafficRow[]>('/pod/traffic?limit=20000')
    const order = rows.map((row) => `${row.time_stamp} ${row.uuid}`)
    expect(order).toEqual([...order].sort().reverse())
    expect(await broker().read('/pod/traffic/nobody')).toEqual([])
    expect(await broker().read('/pod/traffic/p27?namespace=')).toHaveLength(1)
    expect(await broker().read('/pod/traffic/p27?namespace=other')).toEqual([])
    expect((await broker().get('/pod/name/nobody')).status).toBe(404)
    const pods = await broker().read<PodRecord[]>('/pod/info')
    const names = pods.map((pod) => `${pod.pod_namespace}/${pod.pod_name}`)
    expect(names).toEqual([...names].sort())
    expect(new Set(names).size).toBe(names.length)
  })

  test('versions and surroundings have the shape that front ends read', async () => {
    expect(await broker().read('/version')).toEqual({
      broker: '0.0.0-test',
      chart: 'unknown',
      telemetry_enabled: false,
      latest: null,
      checked_at: null,
      update_available: false,
    })
    expect(await broker().read('/cluster/environment')).toEqual({
      cni: 'unknown',
      ip_family: 'ipv4',
      policy_enforcement: 'unknown',
      nodes: 1,
    })
    expect(await broker().read('/health')).toEqual({ status: 'ok', database: 'reachable', schema: 'ready' })
    const metrics = await (await broker().get('/metrics')).text()
    for (const name of [
      'broker_db_schema_ready 1',
      'broker_db_reachable 1',
      'broker_audit_enabled 0',
      'broker_uptime_seconds',
      'portolan_broker_db_waiting 0',
    ]) {
      expect(metrics).toContain(name)
    }
  })
})

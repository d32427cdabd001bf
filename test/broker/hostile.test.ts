/** What no well-meaning client sends is refused by its name, and breaks nothing for anybody else. */
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import type { Problem } from '../../src/wire/problem'
import { describeBroker } from './engines'
import { flowPost, podPost, servicePost } from './messages'

const long = Array.from({ length: 300 }, () => Math.random().toString(36).slice(2, 12)).join('')
const deep = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`
const half = '\ud800'

describeBroker({ settings: { requestsPerMinute: 0, flowRetentionDays: 0 } }, (broker) => {
  const problem = async (response: Response): Promise<string> => {
    const { code, errors } = (await response.json()) as Problem
    return [response.status, code, errors?.[0]?.field].join(' ')
  }

  test('a cursor that no page gave is 400, whatever it holds', async () => {
    const lists = { flows: 2, pods: 3, services: 3, edges: 6, 'addresses/10.0.0.1/history': 3 }
    const parts = ['x', '\0', 1e300, -1.5, 2 ** 40, null, true, {}]
    for (const [list, length] of Object.entries(lists)) {
      for (const part of parts) {
        const cursor = Buffer.from(JSON.stringify(Array(length).fill(part))).toString('base64url')
        const response = await broker().get(`/api/v1/${list}?cursor=${cursor}`)
        expect(await problem(response), `${list} ${part}`).toBe('400 bad-request ')
      }
    }
  })

  test('NUL in a path or a query is 400 with its place', async () => {
    const fields = {
      '/pod/name/%00': 'path.name',
      '/pod/name/a?namespace=%00': 'query.namespace',
      '/pod/list/%00': 'path.node',
      '/pod/traffic/a%00': 'path.name',
      '/pod/ip/%00?at=2026-01-01T00:00:00': 'path.ip',
      '/svc/ip/%00': 'path.ip',
      '/api/v1/pods/%00/a': 'path.namespace',
      '/api/v1/services/a/%00': 'path.name',
      '/api/v1/pods?node=%00': 'query.node',
      '/api/v1/flows?namespace=a&namespace=%00': 'query.namespace',
      '/api/v1/flows?not.verdict=%00': 'query.not.verdict',
      '/api/v1/edges?verdict=%00': 'query.verdict',
      '/audit/verdicts?policy=%00': 'query.policy',
    }
    for (const [path, field] of Object.entries(fields)) {
      expect(await problem(await broker().get(path)), path).toBe(`400 bad-request ${field}`)
    }
  })

  test('a part of a path that is longer than any name is 400', async () => {
    expect(await problem(await broker().get(`/pod/name/${'a'.repeat(2000)}`))).toBe('400 bad-request ')
  })

  test('times that cannot be written are 400, and the first and last years are times', async () => {
    for (const time of [
      '-999999999d',
      '0000-12-31T00:00:00Z',
      '0001-01-01T00:00:00%2B12:00',
      '9999-12-31T23:59:59-12:00',
    ]) {
      for (const [path, name] of [
        ['/api/v1/flows', 'since'],
        ['/api/v1/flows', 'until'],
        ['/api/v1/edges', 'since'],
        ['/api/v1/edges', 'until'],
        ['/api/v1/addresses/10.0.0.1', 'at'],
        ['/api/v1/flows/stream', 'since'],
      ]) {
        const response = await broker().get(`${path}?${name}=${time}`)
        expect(await problem(response), `${path} ${time}`).toBe(`400 bad-request query.${name}`)
      }
      expect((await broker().get(`/pod/ip/10.0.0.1?at=${time}`)).status).toBe(400)
    }
    for (const time of ['0001-01-01T00:00:00Z', '9999-12-31T23:59:59Z']) {
      for (const path of ['/api/v1/flows?since=', '/api/v1/edges?until=', '/api/v1/addresses/10.0.0.1?at=']) {
        expect((await broker().get(`${path}${time}`)).status, `${path}${time}`).toBe(200)
      }
    }
  })

  test('a limit that is no number says what it must be', async () => {
    const response = await broker().get('/api/v1/flows?limit=1e3')
    expect(await response.json()).toMatchObject({ detail: 'query.limit must be a whole number' })
  })

  test('a report that no database can keep is 422 with the field', async () => {
    const pod = { pod_name: 'p', pod_namespace: 'n', pod_ip: '10.0.0.1' }
    const service = { svc_ip: '10.96.0.1', svc_name: 's', svc_namespace: 'n' }
    const wrong: readonly (readonly [string, object | string, string])[] = [
      ...['pod_name', 'pod_namespace', 'node_name', 'pod_identity'].flatMap((field) =>
        ['a\0b', long].map((text) => ['/pod/spec', { ...pod, [field]: text }, field] as const),
      ),
      ['/pod/spec', { ...pod, pod_ip: 'x\0' }, 'pod_ips'],
      ['/pod/spec', { ...pod, pod_ips: [long] }, 'pod_ips'],
      ['/pod/spec', { ...pod, workload_kind: 'a', workload_name: '\u001f' }, 'workload_name'],
      ['/pod/spec', { ...pod, pod_obj: { metadata: { uid: long } } }, 'pod_obj.metadata.uid'],
      ['/pod/spec', { ...pod, pod_obj: { status: { hostIP: '\0' } } }, 'pod_obj.status.hostIPs'],
      ['/pod/spec', `{"pod_name":"p","pod_obj":{"metadata":{"a":${deep(3000)}}}}`, 'pod_obj'],
      ['/pod/mark_dead', { pod_name: 'a\0' }, 'pod_name'],
      ['/pod/mark_dead', { pod_name: 'a', pod_ip: '\0x' }, 'pod_ip'],
      ['/svc/spec', { ...service, svc_name: 'a\0' }, 'svc_name'],
      ['/svc/spec', { ...service, svc_ip: long }, 'svc_ip'],
      ['/svc/spec', { ...service, service_spec: { spec: { externalIPs: ['\0'] } } }, 'svc_ip'],
      ['/svc/spec', `{"svc_ip":"10.96.0.1","svc_name":"s","service_spec":{"spec":${deep(3000)}}}`, 'service_spec'],
      ['/api/v1/services/delete', { namespace: '\0', name: 'a' }, 'namespace'],
      ['/pod/traffic', 'null', ''],
      ['/pod/traffic', flowPost({ peer: '10.0.0.1', protocol: '  ', time: '2026-09-10T11:00:00' }), 'ip_protocol'],
    ]
    for (const [path, body, field] of wrong) {
      const name = ['body', field].filter(Boolean).join('.')
      expect(await problem(await broker().post(path, body)), `${path} ${field}`).toBe(`422 wrong-fields ${name}`)
    }
    expect(await broker().read('/pod/info')).toEqual([])
    expect(await broker().read('/svc/info')).toEqual([])
  })

  test('a name that fits no index costs its own row alone', async () => {
    const flow = (pod: string) => flowPost({ pod, peer: '203.0.113.1', time: '2026-09-10T11:00:00' })
    const wide = Array.from({ length: 1000 }, (_, index) =>
      String.fromCodePoint(0x4e00 + ((index * 7919) % 20_000)),
    ).join('')
    const response = await broker().post('/pod/traffic/batch', [flow('fits'), flow(wide)])
    expect(await response.json()).toBe(1)
    expect(JSON.parse(response.headers.get('Portolan-Bad-Rows') ?? '[]')).toMatchObject([
      { index: 1, field: 'pod_name' },
    ])
  })

  test('where flows are kept for ever, a row of last year is taken, and one of 1970 makes no day of its own', async () => {
    const flow = (time: string) => flowPost({ pod: 'old', peer: '203.0.113.1', time })
    const response = await broker().post('/pod/traffic/batch', [
      flow('2025-09-10T11:00:00'),
      flow('1970-01-01T00:00:00'),
    ])
    expect(await response.json()).toBe(1)
    expect(JSON.parse(response.headers.get('Portolan-Bad-Rows') ?? '[]')).toMatchObject([
      { index: 1, field: 'time_stamp' },
    ])
  })

  test('oddities inside a manifest are kept out of what is told, and the report is taken', async () => {
    const seen = '2026-09-10T11:59:00'
    const pod = podPost({
      name: 'odd',
      ip: '10.4.0.1',
      seen,
      start: '0000-01-01T00:00:00Z',
      labels: { a: half, b: 'x\0y' },
    })
    expect(await broker().send('/pod/spec', pod)).toMatchObject({ pod_name: 'odd', started_at: null })
    expect(await broker().read('/api/v1/pods/shop/odd')).toMatchObject({ labels: { a: '\ufffd', b: 'xy' } })
    const ports = [
      { port: 80, nodePort: 1e300 },
      { port: 80.5, nodePort: -1 },
      { port: 443, nodePort: 30_443, targetPort: 'https' },
    ]
    const service = { ...servicePost({ name: 'odd', ip: '10.96.4.1' }), service_spec: { spec: { ports } } }
    await broker().send('/svc/spec', service)
    const { items } = await broker().read<{ items: object[] }>('/api/v1/services?name=odd')
    expect(items).toMatchObject([
      {
        nodePorts: [{ protocol: 'TCP', port: 30_443 }],
        ports: [
          { port: 80, nodePort: 0 },
          { port: 443, targetPort: 'https', nodePort: 30_443 },
        ],
      },
    ])
  })

  test('a compressed body is 415 and says so', async () => {
    const response = await fetch(`${broker().url}/pod/traffic/batch`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' },
      body: gzipSync('[]'),
    })
    expect([response.status, await response.json()]).toMatchObject([415, { detail: expect.stringContaining('gzip') }])
  })
})

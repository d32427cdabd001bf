/** Policies in audit mode over HTTP, on both databases: what is put, what it makes of flows, and who may do it. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { AuditPolicyList, AuditSummaryRecord } from '../../src/wire/audit-record'
import type { VerdictRecord } from '../../src/wire/verdict-record'
import { ciliumWeb, clusterWide, verdictsOf, webFromFrontend } from './audit-policies'
import { describeBroker } from './engines'
import { type FlowWords, flowPost, podPost, servicePost } from './messages'
import { openBroker, type TestBroker } from './running-broker'

const yaml = { 'Content-Type': 'application/yaml' }
const policiesPath = '/api/v1/audit/policies'

function ask(broker: TestBroker, method: 'PUT' | 'DELETE', path: string, body?: string | object): Promise<Response> {
  const isText = typeof body === 'string'
  return fetch(`${broker.url}${path}`, {
    method,
    ...(body !== undefined && {
      headers: isText ? yaml : { 'Content-Type': 'application/json' },
      body: isText ? body : JSON.stringify(body),
    }),
  })
}

async function put(broker: TestBroker, path: string, body: string | object): Promise<AuditPolicyList> {
  const response = await ask(broker, 'PUT', path, body)
  if (response.status !== 200) throw new RangeError(`${response.status} ${await response.text()}`)
  return (await response.json()) as AuditPolicyList
}

const summaryOf = (broker: TestBroker) => broker.read<AuditSummaryRecord>('/api/v1/audit/summary')

/** Turns the clock until every flow that is due is judged. */
async function judge(broker: TestBroker, seconds = 15): Promise<AuditSummaryRecord> {
  const runs = async (): Promise<number> => {
    const text = await (await broker.get('/metrics')).text()
    return Number(/pass_runs_total\{pass="audit",outcome="done"\} (\d+)/.exec(text)?.[1] ?? 0)
  }
  const before = await runs()
  await broker.clock.advance(seconds)
  for (let tries = 0; (await runs()) === before; tries++) {
    if (tries === 1000) throw new RangeError(`no audit pass is done: ${broker.log()}`)
    await sleep(10)
  }
  return summaryOf(broker)
}

describeBroker({ now: '2026-09-10T12:00:00' }, (given) => {
  const start = '2026-09-10T08:00:00Z'
  const seen = '2026-09-10T11:59:00'
  const web: FlowWords = { pod: 'web-1', namespace: 'shop', ip: '10.1.0.1', port: '8080', peer: '', time: '' }

  async function postPods(broker: TestBroker): Promise<void> {
    const pods = [
      podPost({ name: 'web-1', ip: '10.1.0.1', start, seen, labels: { app: 'web' }, workload: 'Deployment/web' }),
      podPost({
        name: 'front-1',
        ip: '10.1.0.2',
        start,
        seen,
        labels: { app: 'frontend' },
        workload: 'Deployment/front',
      }),
      podPost({ name: 'other-1', ip: '10.1.0.3', start, seen, labels: { app: 'other' }, workload: 'Deployment/other' }),
    ]
    for (const pod of pods) await broker.send('/pod/spec', pod)
  }
  const post = (rows: readonly FlowWords[]): Promise<number> =>
    given().send<number>('/pod/traffic/batch', rows.map(flowPost))

  test('70: a flow is judged by the pod it was stamped with, allowed and denied', async () => {
    const broker = given()
    await postPods(broker)
    const { items, generation } = await put(broker, policiesPath, webFromFrontend)
    expect(generation).toBe(1)
    expect(items).toMatchObject([{ kind: 'NetworkPolicy', namespace: 'shop', name: 'web', semantics: 'k8s' }])
    const time = '2026-09-10T11:59:50'
    await post([
      { ...web, peer: '10.1.0.2', time },
      { ...web, peer: '10.1.0.3', time },
      { ...web, peer: '10.1.0.3', port: '9090', decision: 'DROP', time },
    ])
    const { sets, policies, waiting } = await judge(broker)
    expect(waiting).toBe(0)
    expect(sets).toMatchObject([
      { semantics: 'k8s', flows: { evaluated: 2, allowed: 1, wouldDeny: 1, unknown: 0, dropped: 1 } },
    ])
    expect(policies).toMatchObject([
      {
        name: 'web',
        generation: 1,
        flows: { evaluated: 2, allowed: 1, wouldDeny: 1 },
        offenders: [{ peer: 'shop/Deployment/other', flows: 1, lastSeen: '2026-09-10T11:59:50Z' }],
      },
    ])
    const verdicts = await broker.read<VerdictRecord[]>('/audit/verdicts?policy=web')
    expect(verdicts.map(verdictsOf).sort()).toEqual([
      'Allow Ingress shop/front-1 > shop/web-1 8080/TCP',
      'WouldDeny Ingress shop/other-1 > shop/web-1 8080/TCP no rule allows traffic from shop/Deployment/other on TCP 8080',
    ])
    expect(verdicts[0]).toMatchObject({ observed_at: '2026-09-10T11:59:50', policy_namespace: 'shop' })
    expect(await (await broker.get('/metrics')).text()).toMatch(/^broker_audit_enabled 1$/m)
  })

  test('a flow that is seen again is judged once, and a late pod spec before the flow is', async () => {
    const broker = given()
    const before = (await summaryOf(broker)).sets[0]?.flows.evaluated
    await post([
      { ...web, peer: '10.1.0.2', time: '2026-09-10T11:59:55' },
      { ...web, peer: '10.1.0.7', time: '2026-09-10T12:00:05' },
    ])
    // Nobody is known to have had 10.1.0.7: the flow waits, as the late pass may find out.
    expect((await judge(broker)).sets[0]?.flows.evaluated).toBe(before)
    expect((await summaryOf(broker)).waiting).toBe(1)
    const late = { name: 'front-2', ip: '10.1.0.7', labels: { app: 'frontend' }, workload: 'Deployment/front' }
    await broker.send('/pod/spec', podPost({ ...late, start: '2026-09-10T12:00:00Z', seen: '2026-09-10T12:00:40' }))
    await judge(broker, 60)
    for (let tries = 0; tries < 50 && (await summaryOf(broker)).waiting > 0; tries++) await judge(broker)
    const { sets } = await summaryOf(broker)
    expect(sets[0]?.flows).toMatchObject({ evaluated: Number(before) + 1, allowed: 2, wouldDeny: 1 })
    const verdicts = (await broker.read<VerdictRecord[]>('/audit/verdicts?policy=web')).map(verdictsOf)
    expect(verdicts.filter((one) => one.includes('front-2'))).toEqual([
      'Allow Ingress shop/front-2 > shop/web-1 8080/TCP',
    ])
  })

  test('who stays nobody is judged as an address when the window is over', async () => {
    const broker = given()
    await post([{ ...web, peer: '203.0.113.9', time: new Date(broker.clock.now() / 1000).toISOString().slice(0, 19) }])
    expect((await judge(broker)).waiting).toBe(1)
    await judge(broker, 615)
    for (let tries = 0; tries < 50 && (await summaryOf(broker)).waiting > 0; tries++) await judge(broker)
    const verdicts = (await broker.read<VerdictRecord[]>('/audit/verdicts?policy=web&verdict=WouldDeny')).map(
      verdictsOf,
    )
    expect(verdicts[0]).toBe(
      'WouldDeny Ingress -/- > shop/web-1 8080/TCP no rule allows traffic from 203.0.113.9 on TCP 8080',
    )
  })

  test('32: verdicts of a cluster-scoped policy have the empty namespace; a new policy is tried on the last day’s flows', async () => {
    const broker = given()
    const before = await summaryOf(broker)
    await put(broker, `${policiesPath}/-/no-other`, clusterWide)
    const { policies, sets } = await judge(broker)
    // The older policy’s counters, and those of the set, count no flow twice.
    expect(sets).toMatchObject([{ flows: before.sets[0]?.flows }])
    expect(policies.find(({ name }) => name === 'web')?.flows).toEqual(before.policies[0]?.flows)
    expect(policies.find(({ name }) => name === 'no-other')).toMatchObject({
      namespace: '',
      flows: { evaluated: 1, allowed: 0, wouldDeny: 1 },
    })
    const names = async (query: string): Promise<readonly string[]> =>
      (await broker.read<VerdictRecord[]>(`/audit/verdicts${query}`)).map((one) => one.policy_name)
    expect(await names('?namespace=')).toEqual(['no-other'])
    expect(new Set(await names('?verdict='))).toEqual(new Set(['no-other', 'web']))
    expect(new Set(await names('?namespace=shop'))).toEqual(new Set(['web']))
    expect((await broker.get('/audit/verdicts?verdict=Maybe')).status).toBe(400)
  })

  test('putting the same again keeps the counters, another text begins anew, and what is not put goes', async () => {
    const broker = given()
    const before = (await summaryOf(broker)).policies.find(({ name }) => name === 'web')
    const same = await put(broker, `${policiesPath}/shop/web`, webFromFrontend)
    expect(same.generation).toBe(2)
    expect((await summaryOf(broker)).policies.find(({ name }) => name === 'web')).toEqual(before)
    const whole = await put(broker, policiesPath, webFromFrontend.replace('8080', '9090'))
    expect(whole.items.map(({ name, generation }) => [name, generation])).toEqual([['web', 3]])
    expect((await summaryOf(broker)).policies).toMatchObject([{ flows: { evaluated: 0 }, offenders: [] }])
    const { policies } = await judge(broker)
    expect(policies[0]?.flows.wouldDeny).toBe(policies[0]?.flows.evaluated)
    const one = await broker.read<{ manifest: object }>(`${policiesPath}/shop/web`)
    expect(one.manifest).toMatchObject({ kind: 'NetworkPolicy', metadata: { name: 'web' } })
    expect((await ask(broker, 'DELETE', `${policiesPath}/shop/web`)).status).toBe(200)
    expect((await ask(broker, 'DELETE', `${policiesPath}/shop/web`)).status).toBe(404)
    expect(await summaryOf(broker)).toMatchObject({ sets: [], policies: [], waiting: 0 })
    expect(await (await broker.get('/metrics')).text()).toMatch(/^broker_audit_enabled 0$/m)
  })

  test('Cilium’s policies are read as a version of Cilium reads them, beside Kubernetes’ in a set of their own', async () => {
    const broker = given()
    await put(broker, `${policiesPath}/shop/web`, webFromFrontend)
    const clash = await put(broker, `${policiesPath}/shop/web?semantics=cilium&cilium=1.17`, ciliumWeb)
    expect(clash.items.map(({ kind, semantics }) => `${kind} ${semantics}`)).toEqual([
      'CiliumNetworkPolicy cilium-1.17',
      'NetworkPolicy k8s',
    ])
    const { sets } = await judge(broker)
    expect(sets.map(({ semantics }) => semantics)).toEqual(['cilium-1.17', 'k8s'])
    expect((await broker.get(`${policiesPath}/shop/web`)).status).toBe(409)
    expect((await broker.get(`${policiesPath}/shop/web?kind=NetworkPolicy`)).status).toBe(200)
    expect(await (await ask(broker, 'DELETE', policiesPath)).json()).toEqual({ removed: 2 })
  })

  test('what an API server would refuse is 422 with each reason, and nothing is put', async () => {
    const broker = given()
    const wrong = webFromFrontend.replace('port: 8080', 'port: 99999')
    const refused = async (path: string, body: string | object) => {
      const response = await ask(broker, 'PUT', path, body)
      return {
        status: response.status,
        ...((await response.json()) as { errors: { field: string; message: string }[] }),
      }
    }
    const range = await refused(policiesPath, wrong)
    expect(range.status).toBe(422)
    expect(range.errors[0]?.field).toBe('NetworkPolicy shop/web spec.ingress[0].ports[0].port')
    expect((await refused(policiesPath, ciliumWeb)).errors[0]?.message).toMatch(/put it with semantics=cilium/)
    expect((await refused(policiesPath, { kind: 'Pod', apiVersion: 'v1', metadata: { name: 'a' } })).status).toBe(422)
    expect((await refused(`${policiesPath}/shop/another`, webFromFrontend)).errors[0]?.message).toMatch(
      /must hold one policy, named shop\/another; it holds NetworkPolicy shop\/web/,
    )
    expect((await refused(policiesPath, 'kind: [')).status).toBe(422)
    expect((await refused(policiesPath, { kind: 'Pod', apiVersion: 'v1' })).errors[0]?.field).toBe('Pod kind')
    expect(await refused(policiesPath, `${webFromFrontend}---\n${webFromFrontend}`)).toMatchObject({
      status: 422,
      errors: [
        { field: 'NetworkPolicy shop/web', message: 'is there twice, in lines 1 and 17; leave one of them out' },
      ],
    })
    expect((await ask(broker, 'PUT', `${policiesPath}?semantics=calico`, webFromFrontend)).status).toBe(400)
    expect((await broker.read<AuditPolicyList>(policiesPath)).items).toEqual([])
  })

  test('YAML is taken under each name that people send it by, and another name is told which are taken', async () => {
    const broker = given()
    const send = (type: string, body: string): Promise<Response> =>
      fetch(`${broker.url}${policiesPath}`, { method: 'PUT', headers: { 'Content-Type': type }, body })
    for (const type of [
      'application/yaml',
      'application/x-yaml',
      'text/yaml',
      'text/x-yaml',
      'text/plain; charset=utf-8',
    ]) {
      expect((await send(type, webFromFrontend)).status, type).toBe(200)
    }
    const form = await send('application/x-www-form-urlencoded', webFromFrontend)
    expect([form.status, await form.json()]).toMatchObject([
      415,
      {
        detail:
          'the body’s Content-Type is application/x-www-form-urlencoded; send JSON as application/json, or YAML as application/yaml, application/x-yaml, text/yaml, text/x-yaml or text/plain',
      },
    ])
  })

  test('an empty list takes every policy out, as JSON and as YAML, and an empty body none', async () => {
    const broker = given()
    const count = async (): Promise<number> => (await broker.read<AuditPolicyList>(policiesPath)).items.length
    const list = { apiVersion: 'v1', kind: 'List', items: [] }
    for (const empty of [[], '[]', list, 'apiVersion: v1\nkind: List\nitems: []\n']) {
      await put(broker, policiesPath, webFromFrontend)
      expect(await put(broker, policiesPath, empty), JSON.stringify(empty)).toMatchObject({ items: [] })
    }
    await put(broker, policiesPath, webFromFrontend)
    for (const nothing of ['', ' \n', '# nothing\n']) {
      const response = await ask(broker, 'PUT', policiesPath, nothing)
      expect([response.status, await response.json()], nothing).toMatchObject([
        422,
        { detail: 'body holds no object; send manifests, or an empty list ([]) for no policy' },
      ])
    }
    const bare = await fetch(`${broker.url}${policiesPath}`, { method: 'PUT' })
    expect([bare.status, await bare.json()]).toMatchObject([
      422,
      { detail: expect.stringMatching(/^body holds no object/) },
    ])
    const headers = { 'Content-Type': 'application/json' }
    const json = await fetch(`${broker.url}${policiesPath}`, { method: 'PUT', headers })
    expect([json.status, await json.json()]).toMatchObject([400, { detail: 'the body is empty; send JSON' }])
    expect(await count()).toBe(1)
    await ask(broker, 'DELETE', policiesPath)
  })

  test('recorded flows are tried on demand, filtered, and a Service’s connection is judged at its backend', async () => {
    const broker = given()
    const service = servicePost({ name: 'web', ip: '10.96.0.20', spec: { ports: [{ port: 80, targetPort: 8080 }] } })
    await broker.send('/svc/spec', { ...service, time_stamp: '2026-09-10T08:00:00' })
    const other = { ...web, pod: 'other-1', ip: '10.1.0.3', type: 'EGRESS' as const }
    await post([{ ...other, peer: '10.96.0.20', peerPort: '80', time: '2026-09-10T11:59:59' }])
    const run = async (query: string): Promise<Record<string, { flows: number }> & { groups: object[] }> => {
      const response = await broker.post(`/api/v1/audit${query}`, webFromFrontend, yaml)
      if (response.status !== 200) throw new RangeError(await response.text())
      return (await response.json()) as Record<string, { flows: number }> & { groups: object[] }
    }
    const all = await run('')
    expect([all.all?.flows, all.denied?.flows, all.dropped?.flows]).toEqual([6, 3, 1])
    const throughService = await run('?direction=egress')
    expect(throughService.groups).toMatchObject([
      {
        subject: 'shop/Deployment/web',
        direction: 'ingress',
        port: 8080,
        flows: 1,
        examples: [{ peer: 'shop/svc/web' }],
      },
    ])
    expect((await run('?from.workload=front')).denied?.flows).toBe(0)
    expect((await broker.post('/api/v1/audit?form.pod=x', webFromFrontend, yaml)).status).toBe(400)
    expect((await broker.post('/api/v1/audit', 'kind: Nonsense', yaml)).status).toBe(422)
    expect((await broker.post('/api/v1/audit', [], {})).status).toBe(422)
  })
})

test('an admin’s token puts, a reader’s reads and tries', async () => {
  const token = (letter: string): string => letter.repeat(32)
  const broker = await openBroker({
    tokens: [
      { source: 'a', value: token('a'), scopes: ['admin', 'ingest', 'read'] },
      { source: 'i', value: token('i'), scopes: ['ingest', 'read'] },
    ],
  })
  const status = async (method: string, path: string, letter: string): Promise<number> => {
    const headers = { Authorization: `Bearer ${token(letter)}`, ...yaml }
    const body = method === 'GET' || method === 'DELETE' ? null : webFromFrontend
    return (await fetch(`${broker.url}${path}`, { method, headers, body })).status
  }
  for (const path of [policiesPath, `${policiesPath}/shop/web`]) {
    expect(await status('PUT', path, 'i'), path).toBe(403)
    expect(await status('PUT', path, 'a'), path).toBe(200)
    expect(await status('GET', path, 'i'), path).toBe(200)
    expect(await status('DELETE', path, 'i'), path).toBe(403)
  }
  expect(await status('POST', '/api/v1/audit', 'i')).toBe(200)
  expect(await status('GET', '/api/v1/audit/summary', 'i')).toBe(200)
  // YAML is for these paths alone.
  expect(await status('POST', '/pod/traffic/batch', 'i')).toBe(415)
  await broker.stop()
})

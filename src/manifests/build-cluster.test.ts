import { describe, expect, test } from 'vitest'
import { openBuilder } from './build-cluster'
import { manifestFindings } from './findings'
import {
  buildFrom,
  buildFromText,
  type Raw,
  rawNode,
  rawPod,
  rawRunningPod,
  rawService,
  rawWorkload,
} from './support/raw-objects'

describe('the same object twice', () => {
  test('the later one is used, and a finding names both places', () => {
    const { service, find } = buildFrom([
      rawService('web', { clusterIP: '10.96.0.20' }),
      rawService('other', { clusterIP: '10.96.0.21' }),
      rawService('web', { clusterIP: '10.96.0.30' }),
    ])
    expect(service('web').clusterIPs).toEqual(['10.96.0.30'])
    expect(find('manifest.duplicate-object')).toMatchObject({
      severity: 'warning',
      message: 'the object was read before, from f.json items[0]; this later one is used',
      object: { kind: 'Service', namespace: 'shop', name: 'web' },
      origin: { file: 'f.json', index: 'items[2]' },
    })
  })

  test('what the earlier one left open does not linger', () => {
    const later = rawRunningPod('web-0', '10.244.1.5', { nodeName: 'node-a' })
    const { pod, cluster } = buildFrom([rawPod('web-0'), later, rawNode('node-a', '172.18.0.2')])
    expect(pod('web-0')).toMatchObject({ podIPs: ['10.244.1.5'], meta: { assumed: [] } })
    expect(cluster.pods.size).toBe(1)
  })

  test('workloads are settled alike', () => {
    const { cluster, problems } = buildFrom([
      rawWorkload('Deployment', 'web', { replicas: 5 }),
      rawWorkload('Deployment', 'web'),
    ])
    expect(cluster.pods.size).toBe(1)
    expect(problems).toEqual(['manifest.duplicate-object'])
  })

  test('one name in two kinds or two namespaces is no double', () => {
    const other: Raw = { ...rawService('web'), metadata: { name: 'web', namespace: 'other' } }
    expect(buildFrom([rawService('web'), rawPod('web'), other]).problems).toEqual([])
  })
})

describe('kinds', () => {
  test('unknown kinds are skipped and counted, and a foreign group is not the kind of that name', () => {
    const knative = { apiVersion: 'serving.knative.dev/v1', kind: 'Service', metadata: { name: 'web' } }
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'a' } }
    const { cluster, find } = buildFrom([knative, secret, secret])
    expect([...cluster.skippedKinds]).toEqual([
      ['Service (serving.knative.dev/v1)', 1],
      ['Secret', 2],
    ])
    expect(cluster.services.size).toBe(0)
    expect(find('manifest.skipped-kinds')).toMatchObject({
      severity: 'info',
      message:
        'objects of kinds that Portolan does not read were skipped: 2 Secret and 1 Service (serving.knative.dev/v1)'.replace(
          ', 1',
          ' and 1',
        ),
    })
  })

  test.each([
    [
      'service',
      'v1',
      'there is no kind service in v1; the object is left out',
      'write kind: Service and apiVersion: v1',
    ],
    [
      'Deployment',
      'v1',
      'there is no kind Deployment in v1; the object is left out',
      'write kind: Deployment and apiVersion: apps/v1',
    ],
    [
      'EndpointSlice',
      'v1',
      'there is no kind EndpointSlice in v1; the object is left out',
      'write kind: EndpointSlice and apiVersion: discovery.k8s.io/v1',
    ],
  ])('a slip of the pen, %s in %s, is told', (kind, apiVersion, message, hint) => {
    const { find } = buildFrom([{ kind, apiVersion, metadata: { name: 'web' } }])
    expect(find('manifest.bad-value')).toMatchObject({ severity: 'error', message, hint })
    expect(find('manifest.skipped-kinds').severity).toBe('info')
  })

  test('a missing apiVersion is told, and the object is read', () => {
    const { pod, problems } = buildFrom([{ ...rawPod('web-0'), apiVersion: undefined }])
    expect(pod('web-0').phase).toBe('Running')
    expect(problems).toEqual(['manifest.no-api-version'])
  })

  test('old groups and versions are read', () => {
    const old = { ...rawWorkload('Deployment', 'web'), apiVersion: 'extensions/v1beta1' }
    const cron = { ...rawWorkload('CronJob', 'report'), apiVersion: 'batch/v1beta1' }
    expect(buildFrom([old, cron]).cluster.pods.size).toBe(2)
  })
})

describe('namespaces', () => {
  test('those that objects stand in are assumed without a word, with the label every namespace has', () => {
    const { cluster, findings } = buildFrom([
      rawPod('a'),
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'empty' } },
    ])
    expect(cluster.namespaces.get('shop')?.meta).toMatchObject({
      assumed: ['*'],
      labels: { 'kubernetes.io/metadata.name': 'shop' },
    })
    expect(cluster.namespaces.get('empty')?.meta.assumed).toEqual([])
    expect(findings.filter(({ message }) => message.includes('namespace'))).toEqual([])
  })
})

test('nothing but YAML, as people write it, becomes a cluster that runs', () => {
  const { cluster, service, pods, problems } = buildFromText(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        ports: [{name: http, containerPort: 8080}]
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  selector: {app: web}
  ports: [{port: 80, targetPort: http}]
`)
  expect(problems).toEqual([])
  expect(service('web').meta.assumed).toEqual(['spec.clusterIP'])
  expect(pods().map(({ podIPs, nodeName, isReady, phase }) => [podIPs, nodeName, isReady, phase])).toEqual([
    [['10.244.1.2'], 'node-a', true, 'Running'],
    [['10.244.2.2'], 'node-b', true, 'Running'],
  ])
  expect([...cluster.nodes.keys()]).toEqual(['node-a', 'node-b'])
  expect(pods()[0]?.meta).toMatchObject({ assumed: ['*'], origin: { file: 'f.yaml', line: 2 } })
})

test('no objects make an empty cluster, which is told once', () => {
  const { cluster, findings } = buildFrom([])
  expect(findings.map(({ code }) => code)).toEqual(['manifest.no-objects'])
  expect(cluster.nodes.size + cluster.namespaces.size).toBe(0)
})

test('every finding code says what it means in one sentence', () => {
  for (const [code, { meaning }] of Object.entries(manifestFindings)) expect(meaning, code).toMatch(/^[A-Z].*\.$/)
})

describe('objects of a live cluster', () => {
  const deployment = rawWorkload('Deployment', 'web', { replicas: 2 })

  test('a workload that its controller has seen has the pods that there are', () => {
    const seen = { ...deployment, status: { replicas: 2 } }
    expect(buildFrom([seen], { isLive: true }).pods()).toEqual([])
    expect(buildFrom([{ ...deployment, status: {} }], { isLive: true }).pods()).toEqual([])
  })

  test('of files, and where nobody has seen it, its pods are implied', () => {
    expect(buildFrom([{ ...deployment, status: { replicas: 2 } }]).pods()).toHaveLength(2)
    expect(buildFrom([deployment], { isLive: true }).pods()).toHaveLength(2)
  })

  test('what was added since a mark can be taken out again, and added once more', () => {
    const builder = openBuilder()
    const add = (value: Raw, index: number): void =>
      builder.add({
        kind: String(value.kind),
        apiVersion: String(value.apiVersion),
        value,
        origin: { file: `${index}` },
      })
    add(rawService('first', { clusterIP: '10.96.0.1' }), 0)
    const forget = builder.mark()
    const rest = [rawService('web', { clusterIP: '10.96.0.2' }), rawNode('node-a', '172.18.0.2'), rawPod('web-0')]
    rest.forEach(add)
    forget()
    rest.slice(0, 2).forEach(add)
    const { value, findings } = builder.build()
    expect([[...value.services.keys()], [...value.nodes.keys()], value.pods.size]).toEqual([
      ['shop/first', 'shop/web'],
      ['node-a'],
      0,
    ])
    expect(findings.filter(({ code }) => code === 'manifest.duplicate-object')).toEqual([])
  })
})

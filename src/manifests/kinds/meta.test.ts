import { describe, expect, test } from 'vitest'
import { buildFrom, buildFromText, type Raw, rawPod, rawService } from '../support/raw-objects'
import { explainBadName, explainBadPortName } from './names'

const configMap = (metadata: unknown, rest: Raw = {}): Raw => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata,
  ...rest,
})

function metaOf(metadata: unknown) {
  const { cluster, findings } = buildFrom([configMap(metadata)])
  return {
    meta: [...cluster.configMaps.values()][0]?.meta,
    findings: findings.filter(({ severity }) => severity !== 'info'),
  }
}

describe('metadata', () => {
  test('everything that identifies an object is kept', () => {
    const owner = { kind: 'Deployment', name: 'web', uid: 'd', controller: true }
    const metadata = {
      name: 'a',
      namespace: 'shop',
      uid: 'u',
      generateName: 'a-',
      creationTimestamp: '2026-01-01T00:00:00Z',
      deletionTimestamp: '2026-01-02T00:00:00Z',
      labels: { a: 'b' },
      annotations: { c: 'd' },
      ownerReferences: [owner],
    }
    expect(metaOf(metadata)).toEqual({
      meta: { ...metadata, kind: 'ConfigMap', origin: { file: 'f.json', index: 'items[0]' }, assumed: [] },
      findings: [],
    })
  })

  test('an object without a namespace stands in default, as kubectl puts it', () => {
    expect(metaOf({ name: 'a' }).meta).toMatchObject({ namespace: 'default', assumed: [] })
  })

  test.each([
    [undefined, 'a ConfigMap has no metadata, and is left out'],
    [null, 'a ConfigMap has no metadata, and is left out'],
    [{}, 'a ConfigMap has no metadata.name, and is left out'],
    [{ name: '' }, 'a ConfigMap has no metadata.name, and is left out'],
  ])('metadata %j: the object is left out with a finding', (metadata, message) => {
    const { meta, findings } = metaOf(metadata)
    expect(meta).toBeUndefined()
    expect(findings).toMatchObject([
      { code: 'manifest.no-name', severity: 'error', message, origin: { index: 'items[0]' } },
    ])
  })

  test('metadata that is a list is told twice: as what it is, and for the name it lacks', () => {
    expect(metaOf([]).findings.map(({ code }) => code)).toEqual(['manifest.wrong-type', 'manifest.no-name'])
  })

  test('an object with generateName alone gets an assumed name, always the same', () => {
    const { meta } = metaOf({ generateName: 'job-' })
    expect(meta?.name).toMatch(/^job-[a-z0-9]{5}$/)
    expect(meta?.assumed).toEqual(['metadata.name'])
    expect(metaOf({ generateName: 'job-' }).meta?.name).toBe(meta?.name)
  })

  test('labels that are no text are read as text where that is possible', () => {
    const { meta, findings } = metaOf({
      name: 'a',
      labels: { 'app.kubernetes.io/version': 2, on: true, empty: null, list: [] },
    })
    expect(meta?.labels).toEqual({ 'app.kubernetes.io/version': '2', on: 'true', empty: '' })
    expect(findings.map(({ path }) => path)).toEqual([
      'metadata.labels["app.kubernetes.io/version"]',
      'metadata.labels.on',
      'metadata.labels.list',
    ])
  })

  test('annotations may be long; what is no text is told', () => {
    const { meta, findings } = metaOf({ name: 'a', annotations: { long: 'x'.repeat(1000), port: 9090, map: {} } })
    expect(meta?.annotations).toEqual({ long: 'x'.repeat(1000), port: '9090' })
    expect(findings).toHaveLength(2)
  })

  test('keys that JavaScript knows are labels like any others', () => {
    const text =
      'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels: {constructor: x, __proto__: y, toString: z}\n'
    const labels = [...buildFromText(text).cluster.configMaps.values()][0]?.meta.labels
    expect(Object.entries(labels ?? {})).toEqual([
      ['constructor', 'x'],
      ['__proto__', 'y'],
      ['toString', 'z'],
    ])
  })
})

describe('names', () => {
  const long = 'n'.repeat(70)

  test('a Service name of 70 characters is told and used', () => {
    const { service, find } = buildFrom([rawService(long)])
    expect(service(long).meta.name).toBe(long)
    expect(find('manifest.bad-name')).toMatchObject({
      severity: 'error',
      path: 'metadata.name',
      message: `the API server refuses this name: "${long}" has 70 characters, where the name of a Service takes at most 63`,
    })
  })

  test.each([
    [{ name: 'a\u001b[31mred' }, 'metadata.name', '"a\\u001b[31mred"'],
    [{ name: 'a b' }, 'metadata.name', '"a b"'],
    [{ name: 'a"b' }, 'metadata.name', String.raw`"a\"b"`],
    [{ name: 'a/b' }, 'metadata.name', '"a/b"'],
    [{ name: 'a\u202eb' }, 'metadata.name', '"a\u202eb"'],
    [{ name: 'a', namespace: 'd\nx' }, 'metadata.namespace', String.raw`"d\nx"`],
    [{ generateName: 'a\u0000-' }, 'metadata.generateName', '"a\\u0000-"'],
  ])('an object named %j is left out with an error', (metadata, path, shown) => {
    const { meta, findings } = metaOf(metadata)
    expect(meta).toBeUndefined()
    const message = `${shown} has control characters, blanks, quotes or slashes in it, as no name has; the ConfigMap is left out`
    expect(findings).toMatchObject([{ code: 'manifest.impossible-name', severity: 'error', path, message }])
    expect(findings[0]).not.toHaveProperty('object')
  })

  test.each(['Web', 'web_0', '-web', 'web.'])('a name that is only misspelt (%s) is told and used', (name) => {
    const { meta, findings } = metaOf({ name })
    expect(meta?.name).toBe(name)
    expect(findings).toMatchObject([{ code: 'manifest.bad-name' }])
  })

  test('ports and other objects are named without such characters too', () => {
    const bad = 'a\u0000'
    const port = { name: bad, port: 80 }
    const { service, pod, cluster, problems } = buildFrom([
      rawService('web', { ports: [port, { name: 'ok', port: 81 }, { name: 'to', port: 82, targetPort: 'a b' }] }),
      rawPod('p', { spec: { nodeName: bad, containers: [{ name: 'c', ports: [{ name: bad, containerPort: 80 }] }] } }),
      {
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata: { name: 's', namespace: 'shop' },
        addressType: 'IPv4',
        endpoints: [{ addresses: ['10.0.0.1'], nodeName: bad }],
        ports: [port, { name: 'ok', port: 81 }],
      },
    ])
    expect(service('web').ports.map(({ name }) => name)).toEqual(['ok'])
    expect(pod('p').containers[0]?.ports).toEqual([{ containerPort: 80, protocol: 'TCP' }])
    expect(cluster.slices.get('shop/s')?.ports.map(({ name }) => name)).toEqual(['ok'])
    expect([...cluster.nodes.keys()]).not.toContain(bad)
    expect(problems.filter((code) => code === 'manifest.impossible-name')).toHaveLength(6)
  })

  test('a label of 70 characters is told and used', () => {
    const { meta, findings } = metaOf({ name: 'a', labels: { app: long } })
    expect(meta?.labels).toEqual({ app: long })
    expect(findings).toMatchObject([{ code: 'manifest.bad-label', path: 'metadata.labels.app' }])
  })

  test.each([
    ['Pod', long, true],
    ['Service', long, false],
    ['Namespace', long, false],
    ['Job', long, false],
    ['CronJob', 'c'.repeat(53), false],
    ['Pod', 'p'.repeat(254), false],
    ['Node', 'ip-10-0-0-1.ec2.internal', true],
    ['Service', 'web.shop', false],
    ['Pod', 'Web', false],
    ['Pod', '-web', false],
    ['Pod', 'web_0', false],
  ])('a %s may be named %s: %s', (kind, name, may) => {
    expect(explainBadName(kind, name) === undefined).toBe(may)
  })

  test.each([
    ['http', true],
    ['http-2', true],
    ['8080', false],
    ['a--b', false],
    ['HTTP', false],
    ['p'.repeat(16), false],
  ])('a port may be named %s: %s', (name, may) => {
    expect(explainBadPortName(name) === undefined).toBe(may)
  })
})

test('a ConfigMap keeps its texts, and a Namespace carries its own name as a label', () => {
  const { cluster } = buildFrom([
    configMap({ name: 'coredns', namespace: 'kube-system' }, { data: { Corefile: '.:53 {}' } }),
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop', labels: { team: 'a' } } },
  ])
  expect(cluster.configMaps.get('kube-system/coredns')?.data).toEqual({ Corefile: '.:53 {}' })
  expect(cluster.namespaces.get('shop')?.meta).toMatchObject({
    labels: { team: 'a', 'kubernetes.io/metadata.name': 'shop' },
    assumed: [],
  })
})

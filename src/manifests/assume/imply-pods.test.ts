import { describe, expect, test } from 'vitest'
import { buildFrom, type Raw, rawNode, rawRunningPod, rawWorkload } from '../support/raw-objects'

const nodes = [rawNode('node-a', '172.18.0.2'), rawNode('node-b', '172.18.0.3'), rawNode('node-c', '172.18.0.4')]
const imply = (...objects: readonly Raw[]) => buildFrom([...nodes, ...objects])
const names = (...objects: readonly Raw[]) =>
  imply(...objects)
    .pods()
    .map(({ meta }) => meta.name)

describe('a workload without pods implies them', () => {
  test('a Deployment: as its ReplicaSet would name, label and own them', () => {
    const { pods, find, problems } = imply(rawWorkload('Deployment', 'web', { replicas: 3 }))
    expect(pods()).toHaveLength(3)
    for (const { meta } of pods()) {
      const hash = meta.labels['pod-template-hash'] ?? ''
      expect(meta.name).toMatch(new RegExp(`^web-${hash}-[a-z0-9]{5}$`))
      expect(meta).toMatchObject({
        namespace: 'shop',
        labels: { app: 'web' },
        ownerReferences: [{ kind: 'ReplicaSet', name: `web-${hash}`, controller: true }],
        assumed: ['*'],
        origin: { file: 'f.json', index: 'items[3]' },
      })
    }
    expect(problems).toEqual([])
    expect(find('workload.implied-pods').message).toBe(
      '1 workload without pods in the input got the 3 pods implied: Deployment shop/web (3)',
    )
  })

  test('replicas are one unless told, and may be none', () => {
    expect(names(rawWorkload('Deployment', 'web'))).toHaveLength(1)
    expect(names(rawWorkload('Deployment', 'web', { replicas: 0 }))).toEqual([])
  })

  test('a ReplicaSet: owned by it', () => {
    const { pods } = imply(rawWorkload('ReplicaSet', 'web-5f6d', { replicas: 2 }))
    expect(pods().map(({ meta }) => meta.ownerReferences[0]?.name)).toEqual(['web-5f6d', 'web-5f6d'])
  })

  test('a StatefulSet: counted, with host names under its Service', () => {
    const { pods } = imply(
      rawWorkload('StatefulSet', 'db', { replicas: 2, serviceName: 'db-peers', ordinals: { start: 5 } }),
    )
    expect(pods()).toMatchObject([
      {
        meta: {
          name: 'db-5',
          labels: { 'statefulset.kubernetes.io/pod-name': 'db-5', 'apps.kubernetes.io/pod-index': '5' },
        },
        hostname: 'db-5',
        subdomain: 'db-peers',
      },
      { meta: { name: 'db-6' }, hostname: 'db-6' },
    ])
  })

  test('a DaemonSet: one on each node that it may run on', () => {
    const tainted = rawNode('node-d', '172.18.0.5', { taints: [{ key: 'gpu', effect: 'NoSchedule' }] })
    const cordoned = rawNode('node-e', '172.18.0.6', { unschedulable: true })
    const daemons = imply(tainted, cordoned, rawWorkload('DaemonSet', 'agent')).pods()
    expect(daemons.map(({ nodeName }) => nodeName)).toEqual(['node-a', 'node-b', 'node-c', 'node-e'])
  })

  test('a DaemonSet with a node selector', () => {
    const ssd = rawNode('node-d', '172.18.0.5', { labels: { disk: 'ssd' } })
    const { pods } = imply(ssd, rawWorkload('DaemonSet', 'agent', { template: { nodeSelector: { disk: 'ssd' } } }))
    expect(pods().map(({ nodeName }) => nodeName)).toEqual(['node-d'])
  })

  test.each([
    [{}, 1],
    [{ parallelism: 3 }, 3],
    [{ parallelism: 3, completions: 2 }, 2],
    [{ completions: 5 }, 1],
    [{ parallelism: 0 }, 0],
    [{ suspend: true }, 0],
    [{ status: { conditions: [{ type: 'Complete', status: 'True' }] } }, 0],
    [{ status: { conditions: [{ type: 'Failed', status: 'True' }] } }, 0],
    [{ status: { conditions: [{ type: 'Complete', status: true }] } }, 0],
    [{ parallelism: 3, status: { startTime: '2026-01-01T00:00:00Z', active: 2 } }, 2],
    [{ status: { startTime: '2026-01-01T00:00:00Z' } }, 0],
  ])('a Job with %j: %d', (spec, count) => {
    const { pods } = imply(rawWorkload('Job', 'import', spec))
    expect(pods()).toHaveLength(count)
    for (const { meta } of pods())
      expect(meta.labels).toMatchObject({ 'job-name': 'import', 'batch.kubernetes.io/job-name': 'import' })
  })

  test('an Indexed Job: each with its index and host name', () => {
    const { pods } = imply(rawWorkload('Job', 'import', { completionMode: 'Indexed', parallelism: 2 }))
    expect(
      pods().map(({ hostname, meta }) => [hostname, meta.labels['batch.kubernetes.io/job-completion-index']]),
    ).toEqual([
      ['import-0', '0'],
      ['import-1', '1'],
    ])
  })

  test('a CronJob: one pod of one job, none when it is suspended or between runs', () => {
    const { pods, find } = imply(rawWorkload('CronJob', 'report'))
    expect(pods()).toMatchObject([{ isReady: false, meta: { assumed: ['*'] } }])
    expect(find('workload.implied-pods').message).toContain('CronJob shop/report (1, not ready between runs)')
    const active = imply(rawWorkload('CronJob', 'report', { status: { active: [{ name: 'report-1' }] } }))
    expect(active.pods()).toMatchObject([{ isReady: true }])
    expect(pods()[0]?.meta.ownerReferences[0]).toMatchObject({
      kind: 'Job',
      name: expect.stringMatching(/^report-\d{8}$/),
    })
    expect(names(rawWorkload('CronJob', 'report', { suspend: true }))).toEqual([])
    expect(names(rawWorkload('CronJob', 'report', { status: { lastScheduleTime: '2026-01-01T00:00:00Z' } }))).toEqual(
      [],
    )
  })
})

describe('a workload with pods of its own implies none', () => {
  const owner = (kind: string, name: string): Raw => ({ kind, name, controller: true })
  const count = (...objects: readonly Raw[]) => names(...objects).length

  test('by owner reference, straight or through a ReplicaSet', () => {
    const pod = rawRunningPod('db-0', '10.244.1.5', { owner: owner('StatefulSet', 'db') })
    expect(count(rawWorkload('StatefulSet', 'db', { replicas: 3 }), pod)).toBe(1)
    const set = {
      ...rawWorkload('ReplicaSet', 'web-5f6d', { replicas: 3 }),
      metadata: { name: 'web-5f6d', namespace: 'shop', ownerReferences: [owner('Deployment', 'web')] },
    }
    const webPod = rawRunningPod('web-5f6d-abcde', '10.244.1.6', { owner: owner('ReplicaSet', 'web-5f6d') })
    expect(count(rawWorkload('Deployment', 'web', { replicas: 3 }), set, webPod)).toBe(1)
  })

  test('through a ReplicaSet that the input does not hold', () => {
    const labels = { app: 'web', 'pod-template-hash': '5f6d' }
    const pod = rawRunningPod('web-5f6d-abcde', '10.244.1.6', { labels, owner: owner('ReplicaSet', 'web-5f6d') })
    expect(count(rawWorkload('Deployment', 'web', { replicas: 3 }), pod)).toBe(1)
  })

  test('by name and labels where owner references are missing', () => {
    const pod = rawRunningPod('web-5f6d-abcde', '10.244.1.6', { labels: { app: 'web' } })
    expect(count(rawWorkload('Deployment', 'web', { replicas: 3 }), pod)).toBe(1)
    const stranger = rawRunningPod('other-1', '10.244.1.6', { labels: { app: 'web' } })
    expect(count(rawWorkload('Deployment', 'web', { replicas: 3 }), stranger)).toBe(4)
  })

  test('a ReplicaSet speaks for its Deployment, a Job for its CronJob', () => {
    const set = {
      ...rawWorkload('ReplicaSet', 'web-5f6d', { replicas: 2 }),
      metadata: { name: 'web-5f6d', namespace: 'shop', ownerReferences: [owner('Deployment', 'web')] },
    }
    expect(count(rawWorkload('Deployment', 'web', { replicas: 3 }), set)).toBe(2)
    const job = {
      ...rawWorkload('Job', 'report-1', { suspend: true }),
      metadata: { name: 'report-1', namespace: 'shop', ownerReferences: [owner('CronJob', 'report')] },
    }
    expect(count(rawWorkload('CronJob', 'report'), job)).toBe(0)
  })

  test('a status tells how many pods there are, and how many are ready', () => {
    const status = { observedGeneration: 1, replicas: 3, readyReplicas: 1 }
    const { pods } = imply(rawWorkload('Deployment', 'web', { replicas: 5, status }))
    expect(pods().filter(({ isReady }) => isReady)).toHaveLength(1)
    expect(pods()).toHaveLength(3)
    expect(count(rawWorkload('Deployment', 'web', { replicas: 5, status: { observedGeneration: 1 } }))).toBe(0)
    expect(
      count(rawWorkload('DaemonSet', 'agent', { status: { observedGeneration: 1, currentNumberScheduled: 0 } })),
    ).toBe(0)
  })
})

describe('workloads that cannot have their pods', () => {
  test('more pods than any cluster holds are told, not made', () => {
    const { cluster, find } = imply(rawWorkload('Deployment', 'web', { replicas: 999_999_999 }))
    expect(cluster.pods.size).toBe(0)
    expect(find('workload.too-many-pods')).toMatchObject({
      severity: 'error',
      object: { kind: 'Deployment', name: 'web' },
    })
  })

  test('replicas of the wrong type are told, and count as one', () => {
    const { cluster, problems } = imply(rawWorkload('Deployment', 'web', { replicas: 'three' }))
    expect(cluster.pods.size).toBe(1)
    expect(problems).toEqual(['manifest.wrong-type'])
  })

  test('a StatefulSet name of 70 characters fits no pod label', () => {
    const { cluster, problems } = imply(rawWorkload('StatefulSet', 'd'.repeat(70)))
    expect(cluster.pods.size).toBe(0)
    expect(problems).toContain('workload.name-too-long')
  })

  test('a Deployment name of 70 characters is cut in its pods, as the API server cuts it', () => {
    const [name] = names(rawWorkload('Deployment', 'd'.repeat(70)), rawWorkload('Deployment', `${'d'.repeat(69)}e`))
    expect(name).toHaveLength(63)
  })

  test('a selector that misses the template is told', () => {
    const { problems } = imply(rawWorkload('Deployment', 'web', { selector: { matchLabels: { app: 'other' } } }))
    expect(problems).toEqual(['manifest.bad-value'])
  })

  test.each([
    [undefined, 'spec.template'],
    [{}, 'spec.template'],
    [{ template: null }, 'spec.template'],
    [{ template: { metadata: { labels: { app: 'web' } } } }, 'spec.template.spec'],
  ])('a workload with spec %j has no template, so it implies no pod', (spec, path) => {
    const { pods, findings } = imply({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'web', namespace: 'shop' },
      spec,
    })
    expect(pods()).toEqual([])
    expect(findings).toMatchObject([{ code: 'workload.no-template', severity: 'error', path }])
  })

  test('a spec of the wrong type is told once', () => {
    const { findings } = imply({ apiVersion: 'batch/v1', kind: 'CronJob', metadata: { name: 'x' }, spec: 'y' })
    const told = findings.map(({ path, message }) => `${path} ${message}`)
    expect(new Set(told).size).toBe(told.length)
  })

  test.each([
    [-3, 0, '-3 is not a whole number of 0 or more; it counts as 0'],
    [2.5, 1, '2.5 is not a whole number of 0 or more; it counts as 1'],
    ['three', 1, '"three" is not a whole number of 0 or more; it counts as 1'],
    ['2', 2, 'the text "2" is read as 2'],
    [
      1_000_000_000_000,
      0,
      'the workload asks for 1000000000000 pods, which makes more than the 150000 a cluster can hold; none are implied',
    ],
  ])('replicas %j imply %i pods, and the sentence says why', (replicas, count, message) => {
    const { pods, findings } = imply(rawWorkload('Deployment', 'web', { replicas }))
    expect(pods()).toHaveLength(count)
    expect(findings.filter(({ severity }) => severity === 'error')).toMatchObject([{ path: 'spec.replicas', message }])
  })
})

test('the same input gives the same pods, in whatever order it comes', () => {
  const objects = [
    rawWorkload('Deployment', 'web', { replicas: 3 }),
    rawWorkload('StatefulSet', 'db', { replicas: 2 }),
    rawWorkload('DaemonSet', 'agent'),
  ]
  const seen = (order: readonly Raw[]) =>
    Object.fromEntries(
      imply(...order)
        .pods()
        .map(({ meta, podIPs, nodeName }) => [meta.name, [podIPs, nodeName]]),
    )
  expect(seen([...objects].reverse())).toEqual(seen(objects))
})

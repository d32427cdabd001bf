import { describe, expect, test } from 'vitest'
import { buildFrom, type Raw, rawPod, rawRunningPod, rawWorkload } from '../support/raw-objects'

/** True when the workload got implied pods beside the ones that stand there. */
const implies = (workload: Raw, ...pods: readonly Raw[]): boolean =>
  buildFrom([workload, ...pods]).cluster.pods.size > pods.length
const web = rawWorkload('Deployment', 'web')

describe('whose pods they are', () => {
  test('a pod of another namespace counts for nobody here', () => {
    const labels = { app: 'web' }
    const elsewhere = {
      ...rawRunningPod('web-1', '10.244.1.5'),
      metadata: { name: 'web-1', namespace: 'other', labels },
    }
    expect(implies(web, elsewhere)).toBe(true)
    expect(implies(web, rawRunningPod('web-1', '10.244.1.5', { labels }))).toBe(false)
  })

  test('an owner counts without its controller mark, but one with it comes first', () => {
    const unmarked = rawRunningPod('web-1', '10.244.1.5', { owner: { kind: 'StatefulSet', name: 'web' } })
    expect(implies(rawWorkload('StatefulSet', 'web'), unmarked)).toBe(false)
    const owners = [
      { kind: 'Node', name: 'x' },
      { kind: 'StatefulSet', name: 'web', controller: true },
    ]
    const marked = { ...unmarked, metadata: { name: 'web-1', namespace: 'shop', ownerReferences: owners } }
    expect(implies(rawWorkload('StatefulSet', 'web'), marked)).toBe(false)
  })

  test('a pod that someone wrote beside a workload is nobody’s', () => {
    expect(implies(web, rawPod('web-canary', { labels: { app: 'web' } }))).toBe(true)
  })

  test('expressions of a selector are asked too', () => {
    const selector = {
      matchLabels: { app: 'web' },
      matchExpressions: [{ key: 'track', operator: 'In', values: ['stable'] }],
    }
    const workload = rawWorkload('Deployment', 'web', { selector })
    expect(implies(workload, rawRunningPod('web-1', '10.244.1.5', { labels: { app: 'web', track: 'canary' } }))).toBe(
      true,
    )
    expect(implies(workload, rawRunningPod('web-1', '10.244.1.5', { labels: { app: 'web', track: 'stable' } }))).toBe(
      false,
    )
  })

  test('a Job finds its pods by the labels of its template', () => {
    expect(
      implies(rawWorkload('Job', 'import'), rawRunningPod('import-x', '10.244.1.5', { labels: { app: 'import' } })),
    ).toBe(false)
  })

  test('finished pods count: their workload has made them', () => {
    const done = {
      ...rawRunningPod('import-x', '10.244.1.5', { owner: { kind: 'Job', name: 'import', controller: true } }),
      status: { phase: 'Succeeded' },
    }
    expect(implies(rawWorkload('Job', 'import'), done)).toBe(false)
  })

  test('a ReplicaSet without owner reference is known by its hash', () => {
    const labels = { app: 'web', 'pod-template-hash': '5f6d' }
    const set = {
      ...rawWorkload('ReplicaSet', 'web-5f6d', { replicas: 0 }),
      metadata: { name: 'web-5f6d', namespace: 'shop', labels },
    }
    expect(buildFrom([web, set]).cluster.pods.size).toBe(0)
  })
})

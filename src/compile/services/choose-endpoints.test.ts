/** Which endpoints a port uses: both traffic policies, readiness, and the union that a node may reach. */
import { describe, expect, test } from 'vitest'
import { endpointOf } from '../../../test/golden/objects'
import { type ChooseOptions, chooseEndpoints } from './choose-endpoints'
import type { PlannedEndpoint } from './service-plan'

type Traits = { readonly isLocal?: boolean; readonly is?: 'ready' | 'draining' | 'down'; readonly zone?: string }

function endpoint(ip: string, { isLocal = false, is = 'ready', zone }: Traits = {}): PlannedEndpoint {
  const isReady = is === 'ready'
  return {
    text: `${ip}:80`,
    ip,
    port: 80,
    isLocal,
    isReady,
    isServing: is !== 'down',
    isTerminating: is === 'draining',
    endpoint: endpointOf(ip, zone === undefined ? {} : { forZones: [zone] }),
  }
}

const node = { name: 'node-a', labels: { 'topology.kubernetes.io/zone': 'a' } }

function choose(endpoints: readonly PlannedEndpoint[], uses: Partial<ChooseOptions> = {}) {
  const options = { usesClusterEndpoints: true, usesLocalEndpoints: true, node, hasNodeHints: true, ...uses }
  const { cluster, local, reachable, hasAny } = chooseEndpoints(endpoints, options)
  const textOf = (list: readonly PlannedEndpoint[]): string => list.map(({ ip }) => ip).join(' ')
  return { cluster: textOf(cluster), local: textOf(local), reachable: textOf(reachable), hasAny }
}

describe('chooseEndpoints', () => {
  test('no endpoints', () => {
    expect(choose([])).toEqual({ cluster: '', local: '', reachable: '', hasAny: false })
  })

  test('Cluster only: all that are ready', () => {
    const endpoints = [endpoint('a', { is: 'down' }), endpoint('b', { isLocal: true }), endpoint('c')]
    expect(choose(endpoints, { usesLocalEndpoints: false })).toEqual({
      cluster: 'b c',
      local: '',
      reachable: 'b c',
      hasAny: true,
    })
  })

  test('Local only: an endpoint elsewhere still counts as one somewhere', () => {
    const only = { usesClusterEndpoints: false }
    expect(choose([endpoint('a')], only)).toEqual({ cluster: '', local: '', reachable: '', hasAny: true })
    expect(choose([endpoint('a', { is: 'down' })], only).hasAny).toBe(false)
    expect(choose([endpoint('a'), endpoint('b', { isLocal: true })], only)).toMatchObject({
      local: 'b',
      reachable: 'b',
    })
  })

  test('both: local ones are part of the cluster list', () => {
    expect(choose([endpoint('a'), endpoint('b', { isLocal: true })])).toEqual({
      cluster: 'a b',
      local: 'b',
      reachable: 'a b',
      hasAny: true,
    })
  })

  test('each policy falls back to draining endpoints by itself', () => {
    const here = endpoint('a', { isLocal: true, is: 'draining' })
    expect(choose([here, endpoint('b')])).toEqual({ cluster: 'b', local: 'a', reachable: 'a b', hasAny: true })
    expect(choose([here, endpoint('b', { is: 'draining' })])).toMatchObject({
      cluster: 'a b',
      local: 'a',
      reachable: 'a b',
    })
    expect(choose([here, endpoint('b', { isLocal: true })])).toMatchObject({ cluster: 'b', local: 'b', reachable: 'b' })
  })

  test('hints hold for Cluster traffic and not for Local traffic', () => {
    const endpoints = [endpoint('b', { zone: 'a' }), endpoint('a', { zone: 'b', isLocal: true })]
    expect(choose(endpoints)).toEqual({ cluster: 'b', local: 'a', reachable: 'a b', hasAny: true })
  })

  test('hints of endpoints that are not ready do not matter', () => {
    const endpoints = [endpoint('a', { zone: 'a' }), endpoint('b', { is: 'down' }), endpoint('c', { zone: 'c' })]
    expect(choose(endpoints, { usesLocalEndpoints: false }).cluster).toBe('a')
  })

  test('a node without a zone, and a zone that no endpoint is for, use all', () => {
    const endpoints = [endpoint('a', { zone: 'a' }), endpoint('b', { zone: 'b' })]
    const uses = { usesLocalEndpoints: false }
    expect(choose(endpoints, { ...uses, node: { name: 'node-a', labels: {} } }).cluster).toBe('a b')
    const far = { name: 'node-a', labels: { 'topology.kubernetes.io/zone': 'z' } }
    expect(choose(endpoints, { ...uses, node: far }).cluster).toBe('a b')
  })

  test('node hints count only with the feature', () => {
    const hinted = (ip: string, nodeName: string): PlannedEndpoint => ({
      ...endpoint(ip),
      endpoint: endpointOf(ip, { forZones: ['a'], forNodes: [nodeName] }),
    })
    const endpoints = [hinted('a', 'node-a'), hinted('b', 'node-b')]
    expect(choose(endpoints, { usesLocalEndpoints: false }).cluster).toBe('a')
    expect(choose(endpoints, { usesLocalEndpoints: false, hasNodeHints: false }).cluster).toBe('a b')
  })
})

/** Topology hints: the cases E17 to E19, and the shares of topology mode Auto. */
import { describe, expect, test } from 'vitest'
import type { Endpoint } from '#model/endpoint-slice'
import type { ClusterNode } from '#model/node'
import { clusterOf, nodeOf, podOf, portOf, serviceOf } from '../../../test/golden/objects'
import { buildEndpointSlices } from './build-endpoint-slices'

const selector = { app: 'web' }
const auto = { 'service.kubernetes.io/topology-mode': 'Auto' }

function zoneNode(name: string, zone: string, allocatableMilliCpu = 1000): ClusterNode {
  return nodeOf(name, { meta: { labels: { 'topology.kubernetes.io/zone': zone } }, allocatableMilliCpu })
}

const nodes = [zoneNode('node-a', 'a'), zoneNode('node-b', 'b')]

function hintsOf(endpoints: readonly Endpoint[]): (string | undefined)[] {
  return endpoints.map(({ forZones }) => forZones?.join())
}

function podsOn(counts: Readonly<Record<string, number>>) {
  const names = Object.entries(counts).flatMap(([node, count]) => Array<string>(count).fill(node))
  return names.map((nodeName, at) => podOf(`shop/web-${at}`, { nodeName, podIPs: [`10.244.1.${at + 1}`] }))
}

describe('trafficDistribution', () => {
  const pods = [
    podOf('shop/ready', { nodeName: 'node-b' }),
    podOf('shop/waiting', { nodeName: 'node-b', isReady: false, podIPs: ['10.244.1.10'] }),
  ]
  const build = (trafficDistribution: string) =>
    buildEndpointSlices(
      clusterOf({
        services: [serviceOf('shop/web', { selector, ports: [portOf(80)], trafficDistribution })],
        pods,
        nodes,
      }),
    ).value[0]?.endpoints

  test('E17: PreferClose points a ready endpoint at its own zone', () => {
    expect(build('PreferClose')).toMatchObject([{ zone: 'b', forZones: ['b'] }, { zone: 'b' }])
    expect(build('PreferClose')?.[1]).not.toHaveProperty('forZones')
    expect(build('PreferSameZone')?.[0]).not.toHaveProperty('forNodes')
  })

  test('E18: PreferSameNode points it at its node as well', () => {
    expect(build('PreferSameNode')?.[0]).toMatchObject({ forZones: ['b'], forNodes: ['node-b'] })
  })

  test('an unknown value gives no hints', () => {
    expect(build('PreferFar')?.[0]).not.toHaveProperty('forZones')
  })
})

describe('topology mode Auto', () => {
  const build = (counts: Readonly<Record<string, number>>, on = nodes) =>
    buildEndpointSlices(
      clusterOf({
        services: [
          serviceOf('shop/web', {
            selector,
            ports: [portOf(80)],
            meta: { annotations: auto },
            trafficDistribution: 'PreferClose',
          }),
        ],
        pods: podsOn(counts),
        nodes: on,
      }),
    )

  test('even zones keep their own endpoints', () => {
    expect(hintsOf(build({ 'node-a': 2, 'node-b': 2 }).value[0]?.endpoints ?? [])).toEqual(['a', 'a', 'b', 'b'])
  })

  test('a zone with too many endpoints gives some away', () => {
    expect(hintsOf(build({ 'node-a': 5, 'node-b': 1 }).value[0]?.endpoints ?? [])).toEqual([
      'b',
      'b',
      'a',
      'a',
      'a',
      'b',
    ])
  })

  test('shares follow the CPU of the zones', () => {
    const uneven = [zoneNode('node-a', 'a', 3000), zoneNode('node-b', 'b', 1000)]
    const hints = hintsOf(build({ 'node-a': 4, 'node-b': 4 }, uneven).value[0]?.endpoints ?? [])
    expect(hints.filter((hint) => hint === 'a')).toHaveLength(6)
  })

  test.each([
    [
      'E19: a node without a zone',
      [...nodes, nodeOf('node-c', { allocatableMilliCpu: 1000 })],
      { 'node-a': 2, 'node-b': 2 },
    ],
    ['a node without CPU', [...nodes, zoneNode('node-c', 'a', 0)], { 'node-a': 2, 'node-b': 2 }],
    ['fewer endpoints than zones', nodes, { 'node-a': 1 }],
  ])('%s disables all hints, whatever trafficDistribution says', (_, on, counts) => {
    const { value, findings } = build(counts, on)
    expect(hintsOf(value[0]?.endpoints ?? []).every((hint) => hint === undefined)).toBe(true)
    expect(findings.map(({ code }) => code)).toEqual(['endpointslices.topology-hints-disabled'])
  })

  test('control-plane nodes and nodes that are not ready do not count', () => {
    const control = nodeOf('cp', { meta: { labels: { 'node-role.kubernetes.io/control-plane': '' } } })
    const { value } = build({ 'node-a': 2, 'node-b': 2 }, [...nodes, control, nodeOf('down', { isReady: false })])
    expect(hintsOf(value[0]?.endpoints ?? [])).toEqual(['a', 'a', 'b', 'b'])
  })

  test('hints that are in place and still fit are left alone', () => {
    const first = build({ 'node-a': 2, 'node-b': 2 }).value
    const again = buildEndpointSlices(
      clusterOf({
        services: [serviceOf('shop/web', { selector, ports: [portOf(80)], meta: { annotations: auto } })],
        pods: podsOn({ 'node-a': 2, 'node-b': 2 }),
        nodes,
        slices: first,
      }),
    )
    expect(again.value).toEqual(first)
  })
})

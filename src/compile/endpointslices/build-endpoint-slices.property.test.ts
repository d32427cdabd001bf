/** What holds for the slices of any cluster: each pod once, never too many, and nothing left to do afterwards. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Pod } from '#model/pod'
import { clusterOf, nodeOf, podOf, portOf, serviceOf } from '../../../test/golden/objects'
import { buildEndpointSlices } from './build-endpoint-slices'

const runs = { seed: 20260101, numRuns: 150 }

const nodes = ['a', 'b', 'c'].map((zone) =>
  nodeOf(`node-${zone}`, { meta: { labels: { 'topology.kubernetes.io/zone': zone } }, allocatableMilliCpu: 2000 }),
)

const podArbitrary = fc.record({
  nodeName: fc.constantFrom('node-a', 'node-b', 'node-c'),
  isReady: fc.boolean(),
  port: fc.constantFrom(8080, 9090),
  app: fc.constantFrom('web', 'api'),
})

const serviceArbitrary = fc.record({
  targetPort: fc.constantFrom<number | string>(8080, 'http'),
  trafficDistribution: fc.constantFrom('PreferClose', 'PreferSameNode'),
  mode: fc.constantFrom<Record<string, string>>({}, { 'service.kubernetes.io/topology-mode': 'Auto' }),
})

const podsArbitrary = fc.array(podArbitrary, { maxLength: 40 }).map((list): Pod[] =>
  list.map(({ app, port, ...fields }, at) =>
    podOf(`shop/pod-${at}`, {
      ...fields,
      meta: { labels: { app } },
      podIPs: [`10.244.0.${at + 1}`],
      containers: [{ name: 'main', ports: [{ name: 'http', containerPort: port, protocol: 'TCP' }] }],
    }),
  ),
)

function clusterFor(
  traits: { targetPort: number | string; trafficDistribution: string; mode: Record<string, string> },
  pods: readonly Pod[],
) {
  const { targetPort, trafficDistribution, mode } = traits
  const service = serviceOf('shop/web', {
    selector: { app: 'web' },
    ports: [portOf(80, { targetPort })],
    trafficDistribution,
    meta: { annotations: mode },
  })
  return clusterOf({ services: [service], pods, nodes })
}

test('every pod of the Service is in one slice, and no slice is too full', () => {
  fc.assert(
    fc.property(serviceArbitrary, podsArbitrary, fc.integer({ min: 1, max: 12 }), (traits, pods, most) => {
      const slices = buildEndpointSlices(clusterFor(traits, pods), { maxEndpointsPerSlice: most }).value
      const names = slices.flatMap(({ endpoints }) => endpoints.map(({ targetRef }) => targetRef?.name))
      expect(names.sort()).toEqual(
        pods
          .filter(({ meta }) => meta.labels.app === 'web')
          .map(({ meta }) => meta.name)
          .sort(),
      )
      expect(slices.length).toBeGreaterThan(0)
      for (const { endpoints } of slices) expect(endpoints.length).toBeLessThanOrEqual(most)
    }),
    runs,
  )
})

test('the controller finds nothing to do in its own work', () => {
  fc.assert(
    fc.property(serviceArbitrary, podsArbitrary, podsArbitrary, (traits, before, after) => {
      const options = { maxEndpointsPerSlice: 7 }
      const first = buildEndpointSlices(clusterFor(traits, before), options).value
      const asMap = (slices: typeof first) => new Map(slices.map((slice) => [`shop/${slice.meta.name}`, slice]))
      const second = buildEndpointSlices({ ...clusterFor(traits, after), slices: asMap(first) }, options).value
      const third = buildEndpointSlices({ ...clusterFor(traits, after), slices: asMap(second) }, options).value
      expect(asMap(third)).toEqual(asMap(second))
    }),
    runs,
  )
})

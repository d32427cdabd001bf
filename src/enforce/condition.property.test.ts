/** Whatever nodes say, and whenever: what Enforcing promises, and that nothing is written twice. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseCluster } from '#manifests/parse-cluster'
import type { Cluster } from '#model/cluster'
import { bindingStates, modeWords } from '#model/traffic-policy-binding-schema'
import { printTime } from './condition'
import type { NodeEntry } from './condition-installed'
import { surveyConditions } from './condition-survey'

const now = Date.parse('2026-10-15T12:00:00Z')
const base = parseCluster(`apiVersion: portolan.dev/v1alpha1
kind: VPCAttachment
metadata: {namespace: tenant, name: web-0}
---
apiVersion: portolan.dev/v1alpha1
kind: TrafficPolicyBinding
metadata: {namespace: tenant, name: web-0, generation: 3}
spec: {vpcAttachmentRef: {name: web-0}}
`).value

const side = fc.record({
  state: fc.constantFrom(...bindingStates),
  observedGeneration: fc.constantFrom(2, 3),
  lastTransitionTime: fc.constant('2026-10-15T11:00:00Z'),
})
/** Ages around the edge of 25 minutes, in seconds; also of a clock that runs ahead. */
const age = fc.constantFrom(-60, 0, 600, 1499, 1500, 1501, 7200)

const entryOf = (node: string): fc.Arbitrary<NodeEntry> =>
  fc
    .record({ ingress: side, egress: side, mode: fc.constantFrom(...modeWords), age }, { requiredKeys: [] })
    .map(({ age, ...rest }) => ({
      node,
      ...rest,
      ...(age !== undefined && { heartbeatTime: printTime(now - age * 1000) }),
    }))

const world = fc.record({
  node: fc.constantFrom(undefined, 'n1', 'n2'),
  entries: fc
    .tuple(fc.option(entryOf('n1')), fc.option(entryOf('n2')), fc.option(entryOf('n3')))
    .map((all) => all.filter((one) => one !== null)),
})
type World = { readonly node: string | undefined; readonly entries: readonly NodeEntry[] }

function clusterOf({ node, entries }: World): Cluster {
  const attachment = base.vpcAttachments.get('tenant/web-0')
  const binding = base.trafficPolicyBindings.get('tenant/web-0')
  if (attachment === undefined || binding === undefined) throw new Error('the objects do not parse')
  const placed = node === undefined ? attachment : { ...attachment, status: { node } }
  return {
    ...base,
    vpcAttachments: new Map([['tenant/web-0', placed]]),
    trafficPolicyBindings: new Map([['tenant/web-0', { ...binding, status: { nodes: entries } }]]),
  }
}

/** The sheet's tables read once more, from the bottom up. */
function expected({ node, entries }: World): readonly [string, string] {
  const entry = entries.find((one) => one.node === node)
  if (node === undefined) return ['NoNodes', 'NoNodes']
  if (entry === undefined) return ['Pending', 'Pending']
  const sides = [entry.ingress, entry.egress]
  const isApplied = sides.every((one) => one?.state === 'Applied' && one.observedGeneration === 3)
  const isFresh = entry.heartbeatTime !== undefined && now - Date.parse(entry.heartbeatTime) < 1_500_000
  if (isApplied && isFresh) return ['Installed', entry.mode === 'Enforce' ? 'Enforcing' : (entry.mode ?? 'Unknown')]
  const reason = !isFresh ? 'Stale' : sides.some((one) => one?.state === 'Failed') ? 'Failed' : 'Pending'
  return [reason, reason]
}

const judge = (cluster: Cluster, time: number) => {
  const survey = surveyConditions(cluster, time)
  const [object] = survey.objects
  if (object === undefined) throw new Error('there is no binding')
  const of = (type: string) => object.conditions.find((one) => one.type === type)
  return { survey, object, installed: of('Installed'), enforcing: of('Enforcing') }
}

test('reasons are those of the tables, True only where all holds, and every False names the node', () => {
  fc.assert(
    fc.property(world, (given) => {
      const { installed, enforcing } = judge(clusterOf(given), now)
      expect([installed?.reason, enforcing?.reason]).toEqual(expected(given))
      expect(installed?.status).toBe(installed?.reason === 'Installed' ? 'True' : 'False')
      expect(enforcing?.status).toBe(enforcing?.reason === 'Enforcing' ? 'True' : 'False')
      if (given.node !== undefined) for (const one of [installed, enforcing]) expect(one?.message).toContain(given.node)
    }),
    { seed: 9, numRuns: 500 },
  )
})

test('nothing is written again until the moment that was named, and something is then', () => {
  fc.assert(
    fc.property(world, (given) => {
      const cluster = clusterOf(given)
      const { survey, object } = judge(cluster, now)
      const binding = cluster.trafficPolicyBindings.get('tenant/web-0')
      if (binding === undefined) throw new Error('there is no binding')
      const status = { ...binding.status, conditions: object.conditions }
      const left = { ...cluster, trafficPolicyBindings: new Map([['tenant/web-0', { ...binding, status }]]) }
      const { nextAt } = survey
      expect(judge(left, now).object.isChanged).toBe(false)
      if (nextAt === undefined) expect(judge(left, now + 86_400_000).object.isChanged).toBe(false)
      else {
        expect(judge(left, nextAt - 1).object.isChanged).toBe(false)
        expect(judge(left, nextAt).object.isChanged).toBe(true)
        expect(judge(left, nextAt).enforcing?.reason).toBe('Stale')
      }
    }),
    { seed: 9, numRuns: 500 },
  )
})

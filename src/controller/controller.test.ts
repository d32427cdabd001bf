/** The controller's loop on a clock that the test moves, with a store in memory that gives back what was written. */
import { expect, test } from 'vitest'
import { Failure } from '#base/failure'
import { mergeStatuses } from '#enforce/merge-status'
import { parseCluster } from '#manifests/parse-cluster'
import type { Cluster } from '#model/cluster'
import type { WatchHandlers } from '#sources/watch-source'
import type { ConditionPatch } from '#wire/condition-patch'
import type { ObjectStore } from './object-store'
import { type ControllerClock, startController } from './start-controller'

const start = Date.parse('2026-10-15T12:05:00Z')
const minute = 60_000

/** Runs what is due in its order; `at` moves the time. */
function simulatedClock() {
  let now = start
  let timers: { at: number; run: () => void }[] = []
  const clock: ControllerClock = {
    now: () => now,
    after(milliseconds, run) {
      const timer = { at: now + milliseconds, run }
      timers.push(timer)
      return () => {
        timers = timers.filter((one) => one !== timer)
      }
    },
  }
  const moveTo = async (time: number, settled: () => Promise<void>): Promise<void> => {
    for (;;) {
      const [next] = timers.filter(({ at }) => at <= time).sort((a, b) => a.at - b.at)
      if (next === undefined) break
      timers = timers.filter((one) => one !== next)
      now = next.at
      next.run()
      await settled()
    }
    now = time
  }
  return { clock, moveTo }
}

/** As an API server: what is applied is what is read, and whoever watches hears of it. */
function memoryStore(text: string) {
  let cluster = read(text)
  let handlers: WatchHandlers | undefined
  let refusals = 0
  const writes: string[] = []
  const tell = (isPartial = false): void => handlers?.take({ cluster, findings: [], isPartial })
  const store: ObjectStore = {
    read: async () => ({ cluster, findings: [], isPartial: false }),
    watch(given) {
      handlers = given
      tell()
      return { refresh: tell, close: () => {} }
    },
    async apply(patch) {
      if (refusals > 0) {
        refusals -= 1
        throw new Failure('input.unreadable', 'the disk is full')
      }
      writes.push(shortOf(patch))
      cluster = mergeStatuses(cluster, { nodes: [], conditions: [patch] })
      tell()
    },
  }
  return {
    store,
    writes,
    refuse: (count: number) => {
      refusals = count
    },
    /** New objects, with the conditions that were written kept. */
    change(next: string, isPartial = false) {
      const before = cluster
      cluster = withConditionsOf(read(next), before)
      tell(isPartial)
    },
  }
}

function read(text: string): Cluster {
  return parseCluster(text).value
}

function withConditionsOf(cluster: Cluster, before: Cluster): Cluster {
  const conditions = [...before.trafficPolicyBindings.values()].map(({ meta, status }) => ({
    kind: 'TrafficPolicyBinding' as const,
    metadata: meta,
    status: { conditions: status?.conditions ?? [] },
  }))
  return mergeStatuses(cluster, { nodes: [], conditions })
}

function shortOf({ kind, metadata, status }: ConditionPatch): string {
  const shown = status.conditions
    .filter(({ type }) => ['Installed', 'Enforcing', 'Valid', 'TrafficPolicyResolved'].includes(type))
    .map(({ status, reason }) => `${status}/${reason}`)
  return `${kind} ${metadata.name} ${shown.join(' ')}`
}

const head = 'apiVersion: portolan.dev/v1alpha1\n'
type World = {
  readonly node?: string
  readonly entryNode?: string
  readonly generation?: number
  readonly beat?: string
}

function world({ node = 'n1', entryNode = 'n1', generation = 3, beat = '2026-10-15T12:05:00Z' }: World = {}): string {
  const side = '{state: Applied, observedGeneration: 3, lastTransitionTime: "2026-10-15T12:00:00Z"}'
  return [
    `${head}kind: VPCAttachment\nmetadata: {namespace: tenant, name: web-0}\nstatus: {node: ${node}}\n`,
    `${head}kind: TrafficPolicyBinding\nmetadata: {namespace: tenant, name: web-0, generation: ${generation}}\nspec: {vpcAttachmentRef: {name: web-0}}\nstatus: {nodes: [{node: ${entryNode}, ingress: ${side}, egress: ${side}, mode: Enforce, heartbeatTime: "${beat}"}]}\n`,
  ].join('---\n')
}

const log = { info: () => {}, warn: () => {}, error: () => {} }

function run(text: string) {
  const { clock, moveTo } = simulatedClock()
  const memory = memoryStore(text)
  const controller = startController({ store: memory.store, clock, log })
  return { ...memory, controller, moveTo: (time: number) => moveTo(time, controller.settled) }
}

test('61: with no event both conditions go Stale at the very moment a heartbeat is 25 minutes old', async () => {
  const { writes, controller, moveTo } = run(world())
  await controller.settled()
  expect(writes).toEqual(['TrafficPolicyBinding web-0 True/Installed True/Enforcing'])
  await moveTo(start + 25 * minute - 1)
  expect(writes).toHaveLength(1)
  await moveTo(start + 25 * minute)
  expect(writes.slice(1)).toEqual(['TrafficPolicyBinding web-0 False/Stale False/Stale'])
  await moveTo(start + 120 * minute)
  expect(writes).toHaveLength(2)
  await controller.stop()
})

test('heartbeats alone cause no write, for as long as they come', async () => {
  const { writes, change, controller, moveTo } = run(world())
  await controller.settled()
  for (let beats = 1; beats <= 12; beats++) {
    await moveTo(start + beats * 10 * minute)
    change(world({ beat: new Date(start + beats * 10 * minute).toISOString() }))
    await controller.settled()
  }
  expect(writes).toHaveLength(1)
  await controller.stop()
})

test('57 and 63: an edit, and an attachment that changes its node, are answered at once', async () => {
  const { writes, change, controller } = run(world())
  await controller.settled()
  change(world({ generation: 4 }))
  await controller.settled()
  change(world({ generation: 3, node: 'n2' }))
  await controller.settled()
  change(world({ generation: 3, node: 'n2', entryNode: 'n2' }))
  await controller.settled()
  expect(writes.slice(1)).toEqual([
    'TrafficPolicyBinding web-0 False/Pending False/Pending',
    'TrafficPolicyBinding web-0 False/Pending False/Pending',
    'TrafficPolicyBinding web-0 True/Installed True/Enforcing',
  ])
  await controller.stop()
})

test('62: one that starts anew over the same objects writes nothing', async () => {
  const first = run(world())
  await first.controller.settled()
  await first.controller.stop()
  const { clock } = simulatedClock()
  const second = startController({ store: first.store, clock, log })
  await second.settled()
  expect(first.writes).toHaveLength(1)
  await second.stop()
})

test('a condition that is no longer said is gone, and is not written for ever', async () => {
  const twice = `${world()}---\n${head}kind: TrafficPolicyBinding\nmetadata: {namespace: tenant, name: a-first}\nspec: {vpcAttachmentRef: {name: web-0}}\n`
  const { writes, change, controller, moveTo } = run(twice)
  await controller.settled()
  expect(writes).toContain('TrafficPolicyBinding web-0 False/Conflict False/Conflict')
  const before = writes.length
  change(world())
  await controller.settled()
  await moveTo(start + 20 * minute)
  expect(writes.slice(before)).toEqual(['TrafficPolicyBinding web-0 True/Installed True/Enforcing'])
  await controller.stop()
})

test('a write that fails is tried again, and dated when it is made', async () => {
  const { writes, refuse, change, controller, moveTo } = run(world({ node: 'n2' }))
  await controller.settled()
  refuse(2)
  change(world())
  await controller.settled()
  expect(writes).toHaveLength(1)
  await moveTo(start + 10_000)
  expect(writes.slice(1)).toEqual(['TrafficPolicyBinding web-0 True/Installed True/Enforcing'])
  await controller.stop()
})

test('52: from objects that were read in part nothing is concluded', async () => {
  const { writes, change, controller } = run(world())
  await controller.settled()
  change(`${head}kind: VPCAttachment\nmetadata: {namespace: tenant, name: web-1}\n`, true)
  change(world({ generation: 4 }), true)
  await controller.settled()
  expect(writes).toHaveLength(1)
  change(world({ generation: 4 }))
  await controller.settled()
  expect(writes).toHaveLength(2)
  await controller.stop()
})

/** Whether an agent says that it is well, which /healthz tells: not while the datapath is away, nor while its work keeps failing. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Failure } from '#base/failure'
import { type AgentWorld, agentWorld } from './agent/agent-world'
import { modelNode } from './agent/model-kernel'
import { attachment, binding, policy } from './agent/traffic-objects'

let world: AgentWorld
beforeEach(() => {
  world = agentWorld(modelNode())
  world.kernel.attach('eth1')
})
afterEach(() => world.stop())

const objects = [attachment('web', { device: 'eth1' }), binding('web', { egress: 'ping' }), policy('ping')]
const trouble = (): string | undefined => world.agent().trouble()

test.each([
  [new Failure('kernel.exhausted', 'there is not enough memory'), 'there is not enough memory'],
  [
    Object.assign(new Error('EMFILE: too many open files, scandir'), {
      code: 'EMFILE',
      errno: -24,
      syscall: 'scandir',
    }),
    expect.stringMatching(/EMFILE: too many open files, scandir; .*raise its limit \(LimitNOFILE, ulimit -n\)/),
  ],
])('while the datapath cannot be opened it says why, and is well again when it can', async (refusal, why) => {
  let isAway = true
  await world.set(objects)
  await world.start({
    mode: 'enforce',
    open: () => {
      if (isAway) throw refusal
      return world.kernel.open()
    },
  })
  expect(trouble()?.replace('the datapath cannot be opened: ', '')).toEqual(why)
  isAway = false
  await world.advance(60)
  expect(trouble()).toBeUndefined()
})

test('a step that fails once is only tried again; one that keeps failing is trouble', async () => {
  await world.set(objects)
  world.kernel.faults.add('failed-create')
  await world.start({ mode: 'enforce' })
  expect(trouble()).toBeUndefined()
  await world.advance(5)
  expect(trouble()).toBe('a step keeps failing at eth1 ingress: a step failed: (failed-create)')
  world.kernel.faults.clear()
  await world.advance(5)
  expect(trouble()).toBeUndefined()
})

test('so it is with a whole pass', async () => {
  let isBroken = true
  await world.set(objects)
  await world.start({
    mode: 'enforce',
    interfaces: () => ({
      refresh: () => {
        if (isBroken) throw new Failure('kernel.refused', 'the interfaces cannot be listed')
      },
      close: () => {},
    }),
  })
  expect(trouble()).toBeUndefined()
  await world.advance(60)
  expect(trouble()).toBe('reconciling keeps failing: the interfaces cannot be listed')
  expect(world.logged.filter((line) => /the interfaces cannot be listed/.test(line))).toHaveLength(1)
  isBroken = false
  await world.advance(5)
  expect(trouble()).toBeUndefined()
})

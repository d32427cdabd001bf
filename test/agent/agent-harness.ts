/** An agent and one interface for each test, and the short words that the suites ask by. */
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest'
import type { RawRecord } from '#manifests/text/raw-object'
import { type AgentWorld, agentWorld, type NodeKernel } from './agent-world'
import { attachment, binding } from './traffic-objects'

export const builtIn = 'builtin:default-deny-all:v1'

export type Suite = { readonly world: () => AgentWorld; readonly device: () => string }

/** A world for each test on one kernel, and an interface `device()` that is attached and enforced. */
export function onKernel(makeKernel: () => NodeKernel): Suite {
  let kernel: NodeKernel
  let world: AgentWorld
  let device = ''
  let count = 0
  beforeAll(() => {
    kernel = makeKernel()
  })
  beforeEach(() => {
    count += 1
    device = `g${count}`
    world = agentWorld(kernel)
    kernel.attach(device)
  })
  afterEach(async () => {
    kernel.faults.clear()
    await world.stop()
    kernel.unlink(device)
  })
  afterAll(() => kernel.close())
  return { world: () => world, device: () => device }
}

/** What the view says of one direction: what is installed, and the hits of its rules by name. */
export function seen(world: AgentWorld, device: string, direction: 'ingress' | 'egress') {
  const one = world
    .agent()
    .view()
    .interfaces.find((each) => each.interface === device)
  const found = one?.directions.find((each) => each.direction === direction)
  const rules = found?.installed?.rules?.map(({ name, action, hits }) => [`${name} ${action}`, Number(hits)])
  return {
    uid: found?.installed?.policyUid,
    generation: found?.installed?.generation,
    hits: rules === undefined ? undefined : Object.fromEntries(rules),
    unavailable: Number(found?.fallbacks?.policy_unavailable ?? -1),
  }
}

type Direction = 'ingress' | 'egress'

/** The attachment `tenant/web` has the interface, and so has the binding of that name. */
export function oneInterface(makeKernel: () => NodeKernel) {
  const { world, device } = onKernel(makeKernel)
  const web = (): RawRecord => attachment('web', { device: device() })
  const bind = (fields: Parameters<typeof binding>[1]): RawRecord => binding('web', fields)
  const egress = () => seen(world(), device(), 'egress')
  const ingress = () => seen(world(), device(), 'ingress')
  const state = (direction: Direction) => world().entry('tenant/web')?.[direction]
  const goes = (direction: Direction = 'egress'): boolean => world().kernel.passes(device(), direction)
  const start = async (objects: readonly RawRecord[]): Promise<void> => {
    await world().set(objects)
    await world().start({ mode: 'enforce' })
  }
  const restart = async (objects: readonly RawRecord[]): Promise<void> => {
    await world().stop()
    await start(objects)
  }
  return { world, device, web, bind, egress, ingress, state, goes, start, restart }
}

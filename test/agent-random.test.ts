/** Random lives of a node: objects, faults, deaths, lost pins. What is bound is always what may be, and in the end what should be. */
import { expect, test } from 'vitest'
import type { RawRecord } from '#manifests/text/raw-object'
import { builtIn, seen } from './agent/agent-harness'
import { type AgentWorld, agentWorld, type NodeKernel } from './agent/agent-world'
import { modelNode } from './agent/model-kernel'
import { attachment, binding, echo, edgeAttachment, edgeService, policy, rest } from './agent/traffic-objects'
import { type Random, randomOf } from './random/random'

const devices = ['eth1', 'eth2', 'eth3'] as const
const policyNames = ['one', 'two', 'many'] as const
const directions = ['ingress', 'egress'] as const

/** What the objects say of each direction: a policy's UID, or nothing. */
type Wish = { readonly uid?: string; readonly isGood: boolean }
type Scene = { readonly objects: readonly RawRecord[]; readonly wishes: ReadonlyMap<string, Wish> }

type State = { readonly uids: Map<string, string>; readonly generations: Map<string, number> }

/** `many` has more rules than there are rows in all, and `bad` ones are refused. */
function randomScene(random: Random, { uids, generations }: State): Scene {
  const isThere = new Map<string, boolean>()
  const isBad = new Map<string, boolean>()
  const policies = policyNames.flatMap((name) => {
    if (random.chance(0.1)) uids.set(name, `${name}-${random.below(1000)}`)
    const generation = (generations.get(name) ?? 0) + random.below(2)
    generations.set(name, generation)
    isThere.set(name, random.chance(0.8))
    isBad.set(name, random.chance(0.25))
    const rules = name === 'many' ? Array.from({ length: 60 }, (_, at) => ({ ...rest, name: `r${at}` })) : [echo, rest]
    const bad = isBad.get(name) === true ? [{ ...echo, name: 'Bad' }] : rules
    return isThere.get(name) === true ? [policy(name, { uid: uids.get(name) ?? name, generation, rules: bad })] : []
  })
  const wishOf = (name: string | undefined): Wish => {
    if (name === undefined) return { uid: builtIn, isGood: true }
    if (isThere.get(name) !== true) return { isGood: true }
    return { uid: uids.get(name) ?? name, isGood: isBad.get(name) !== true && name !== 'many' }
  }
  const choose = (): string | undefined => random.pick([...policyNames, undefined, undefined])
  const wishes = new Map<string, Wish>()
  const objects = devices.flatMap((device): readonly RawRecord[] => {
    const refs = { ingress: choose(), egress: choose() }
    const isOpen = device !== 'eth3' || random.chance(0.7)
    for (const direction of directions) {
      wishes.set(`${device} ${direction}`, isOpen ? wishOf(refs[direction]) : { isGood: true })
    }
    const given = Object.fromEntries(Object.entries(refs).filter(([, name]) => name !== undefined))
    return device === 'eth3'
      ? [edgeAttachment('link', 'dns', { device, isAdmitted: isOpen }), edgeService('dns', given)]
      : [attachment(device, { device }), binding(device, given)]
  })
  return { objects: [...policies, ...objects], wishes }
}

/** Nothing of another policy is ever bound, whatever failed; and what failed is said. */
function check(world: AgentWorld, { wishes }: Scene, isWhole: boolean): void {
  for (const [place, { uid, isGood }] of wishes) {
    const [device = '', direction = ''] = place.split(' ')
    const found = seen(world, device, direction === 'ingress' ? 'ingress' : 'egress').uid
    expect([undefined, uid], place).toContain(found)
    if (isWhole && isGood) expect(found, place).toBe(uid)
    const state = world.entry(`tenant/${device}`)?.[direction === 'ingress' ? 'ingress' : 'egress']
    if (state?.state === 'Applied') expect(found, `${place} is said to be applied`).toBe(uid)
    if (isWhole && isGood && uid !== undefined && device !== 'eth3') expect(state?.state, place).toBe('Applied')
  }
}

async function disturb(random: Random, world: AgentWorld, kernel: NodeKernel): Promise<void> {
  const events: readonly (() => Promise<void> | void)[] = [
    () =>
      void kernel.faults.add(random.pick(['failed-create', 'failed-fill', 'failed-pin', 'failed-swap', 'half-swap'])),
    () => kernel.faults.clear(),
    async () => {
      await world.stop()
      await world.start({ mode: 'enforce' })
    },
    () => {
      const name = random.pickFrom(kernel.pins())
      if (name !== undefined) kernel.dropPin(name)
    },
    () => kernel.strayPin(`stray${random.below(5)}`),
    async () => {
      const device = random.pick(devices)
      kernel.unlink(device)
      if (random.chance(0.5)) await world.hear({ name: device, mayBeGone: true })
      kernel.attach(device)
      await world.hear({ name: device, mayBeGone: false })
    },
    () => kernel.unbindBehind({ slot: 1 + random.below(3), direction: random.pick(directions) }),
    () => world.advance(random.below(400)),
  ]
  await random.pickFrom(events)?.()
}

test.each(Array.from({ length: 25 }, (_, seed) => seed + 1))('life %i', async (seed) => {
  const random = randomOf(seed)
  const kernel = modelNode()
  const world = agentWorld(kernel)
  for (const device of devices) kernel.attach(device)
  const state: State = { uids: new Map(), generations: new Map() }
  let scene = randomScene(random, state)
  await world.set(scene.objects)
  await world.start({ mode: 'enforce' })
  for (let step = 0; step < 40; step++) {
    await disturb(random, world, kernel)
    if (random.chance(0.5)) {
      scene = randomScene(random, state)
      await world.set(scene.objects)
      check(world, scene, false)
    }
  }
  kernel.faults.clear()
  await world.advance(700)
  check(world, scene, true)
  // Each bound snapshot has its pin, and nothing else has one.
  const bound = [...scene.wishes.keys()].filter((place) => {
    const [device = '', direction = ''] = place.split(' ')
    return seen(world, device, direction === 'ingress' ? 'ingress' : 'egress').uid !== undefined
  })
  expect(kernel.pins().length).toBe(bound.length)
  await world.stop()
})

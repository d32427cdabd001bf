/** The agent's life on the same kernels: restarts, lost pins, modes, interfaces that come again, and a second agent. */
import { expect, test } from 'vitest'
import { oneInterface } from './agent-harness'
import { agentWorld, type NodeKernel } from './agent-world'
import { echo, type PolicyFields, policy } from './traffic-objects'

const broken: PolicyFields = { rules: [{ ...echo, name: 'Bad Name' }] }

export function agentLifeSuite(makeKernel: () => NodeKernel): void {
  const { world, device, web, bind, egress, ingress, state, goes, start, restart } = oneInterface(makeKernel)

  test('31 to 33 and 36: audit passes and counts as enforce does; a mode that changes is told within five minutes', async () => {
    await start([web(), bind({}), policy('ping')])
    const denied = async (mode: 'audit' | 'off' | 'enforce'): Promise<boolean> => {
      await restartIn(mode)
      return !goes('egress')
    }
    const restartIn = async (mode: 'audit' | 'off' | 'enforce'): Promise<void> => {
      await world().stop()
      await world().start({ mode })
    }
    expect(await denied('audit')).toBe(false)
    expect(egress().hits?.['deny-all deny']).toBe(1)
    expect(world().entry('tenant/web')).toMatchObject({ mode: 'Audit', egress: { state: 'Applied' } })
    expect(await denied('off')).toBe(false)
    expect(egress().hits?.['deny-all deny']).toBe(1)
    expect(world().entry('tenant/web')).toMatchObject({ mode: 'Off', egress: { state: 'Applied' } })
    await restartIn('audit')
    const before = world().entry('tenant/web')?.egress?.lastTransitionTime
    world().kernel.setMode('enforce')
    expect(world().agent().view().mode).toBe('enforce')
    await world().advance(300)
    expect(world().entry('tenant/web')).toMatchObject({ mode: 'Enforce', egress: { lastTransitionTime: before } })
    expect(goes('egress')).toBe(false)
    expect(egress().hits?.['deny-all deny']).toBe(2)
  })

  test('41: an interface made anew with its name and index inherits nothing and counts from zero', async () => {
    const objects = [web(), bind({ egress: 'ping', ingress: 'ping' }), policy('ping')]
    await start(objects)
    expect(goes('egress')).toBe(true)
    expect(egress().hits).toEqual({ 'echo allow': 1 })
    const pins = world().kernel.pins()
    world().kernel.unlink(device())
    await world().hear({ name: device(), mayBeGone: true })
    expect(state('egress')?.state).toBe('Pending')
    world().kernel.attach(device())
    expect(goes('egress')).toBe(false)
    await world().hear({ name: device(), mayBeGone: false })
    expect(egress()).toMatchObject({ uid: 'uid-ping', hits: { 'echo allow': 0 } })
    expect(goes('egress')).toBe(true)
    expect(
      world()
        .kernel.pins()
        .filter((name) => pins.includes(name)),
    ).toEqual([])
  })

  test('41: also where nobody heard that it went: deleted and attached again between two looks', async () => {
    const objects = [web(), bind({ egress: 'ping', ingress: 'ping' }), policy('ping')]
    await start(objects)
    expect(goes('egress')).toBe(true)
    world().kernel.unlink(device())
    world().kernel.attach(device())
    expect(goes('egress')).toBe(false)
    await world().set(objects)
    expect(egress().hits).toEqual({ 'echo allow': 0 })
    expect(goes('egress')).toBe(true)
  })

  test('42: after a restart nothing is published that is there, and before the first pass nothing is told', async () => {
    const objects = [web(), bind({ egress: 'ping', ingress: 'ping' }), policy('ping')]
    await start(objects)
    expect(goes('egress')).toBe(true)
    const [pins, writes] = [world().kernel.pins(), world().writes.length]
    await world().stop()
    expect(goes('egress')).toBe(true)
    const held: (() => void)[] = []
    await world().start({ objects: () => ({ refresh: () => held.push(() => {}), close: () => {} }) })
    expect(world().agent().view()).toMatchObject({ mode: 'enforce', interfaces: [] })
    await restart(objects)
    expect(world().kernel.pins()).toEqual(pins)
    expect(egress().hits).toEqual({ 'echo allow': 2 })
    expect(world().writes.length).toBe(writes)
  })

  test('43: other entries for the same generation are another compiler’s: their rules start at zero', async () => {
    const objects = (fields: PolicyFields) => [web(), bind({ egress: 'ping', ingress: 'ping' }), policy('ping', fields)]
    await start(objects({}))
    expect(goes('egress')).toBe(true)
    await restart(objects({ rules: [{ ...echo, match: { protocols: ['ICMP'], icmp: [{ type: 8 }] } }] }))
    expect(egress()).toMatchObject({ generation: 1, hits: { 'echo allow': 0 } })
    expect(goes('egress')).toBe(true)
  })

  test('47 and 50: without its own pin what is bound counts as empty, goes on deciding, and is published anew', async () => {
    const objects = [web(), bind({ egress: 'ping', ingress: 'ping' }), policy('ping')]
    await start(objects)
    expect(goes('egress')).toBe(true)
    await world().stop()
    for (const name of world()
      .kernel.pins()
      .filter((one) => one.includes('egress')))
      world().kernel.dropPin(name)
    const swept = world().kernel.pins()
    await world().start({ objects: () => ({ refresh: () => {}, close: () => {} }) })
    expect(goes('egress')).toBe(true)
    await restart(objects)
    expect(world().logged.join()).toMatch(/lost its pin and cannot be read: it counts as empty/)
    expect(egress()).toMatchObject({ uid: 'uid-ping', hits: { 'echo allow': 0 } })
    expect(world().kernel.pins().length).toBe(swept.length + 1)
    expect(goes('egress')).toBe(true)
  })

  test('a snapshot that cannot be read stays no longer than it must: with no policy to take its place it is unbound', async () => {
    await start([web(), bind({ egress: 'ping', ingress: 'ping' }), policy('ping')])
    await world().stop()
    for (const name of world().kernel.pins()) world().kernel.dropPin(name)
    await start([web(), bind({ egress: 'lost', ingress: 'ping' }), policy('ping', broken)])
    expect([state('egress')?.state, state('ingress')?.state]).toEqual(['Pending', 'Failed'])
    expect([egress().uid, ingress().uid]).toEqual([undefined, undefined])
    expect(goes('egress')).toBe(false)
  })

  test('a pin that is lost while the agent runs is made anew within five minutes, and the next one reads it', async () => {
    const objects = [web(), bind({ egress: 'ping', ingress: 'ping' }), policy('ping')]
    await start(objects)
    expect(goes('egress')).toBe(true)
    const count = world().kernel.pins().length
    for (const name of world().kernel.pins()) world().kernel.dropPin(name)
    await world().advance(300)
    expect(world().kernel.pins().length).toBe(count)
    expect(egress().hits).toEqual({ 'echo allow': 1 })
    await restart(objects)
    expect(egress().hits).toEqual({ 'echo allow': 1 })
  })

  test('48 and 49: stray pins go at the first pass, later ones five minutes after the sweep before', async () => {
    world().kernel.strayPin('stray')
    await start([web()])
    expect(world().kernel.pins()).not.toContain('stray')
    await world().advance(60)
    world().kernel.strayPin('stray')
    await world().set([web()])
    await world().advance(239)
    expect(world().kernel.pins()).toContain('stray')
    await world().advance(1)
    expect(world().kernel.pins()).not.toContain('stray')
  })

  test('51: what no attachment claims is unbound within five minutes, and its entry vanishes at once', async () => {
    await start([web(), bind({ egress: 'ping', ingress: 'ping' }), policy('ping')])
    expect(goes('egress')).toBe(true)
    const count = world().kernel.pins().length
    await world().set([bind({ egress: 'ping' }), policy('ping')])
    expect(world().statuses.size).toBe(0)
    await world().advance(300)
    expect(goes('egress')).toBe(false)
    expect(world().kernel.pins().length).toBe(count - 2)
  })

  test('52: before the objects were read nothing is unbound, and of a part of them nothing is concluded', async () => {
    const objects = [web(), bind({ egress: 'ping', ingress: 'ping' }), policy('ping')]
    await start(objects)
    await world().stop()
    const { objects: _, ...silent } = { objects: 0, mode: 'enforce' as const }
    await world().start({ ...silent, objects: () => ({ refresh: () => {}, close: () => {} }) })
    await world().advance(600)
    expect(goes('egress')).toBe(true)
    await world().stop()
    await world().set([], true)
    await world().start()
    await world().advance(600)
    expect([goes('egress'), world().statuses.size]).toEqual([true, 1])
    const both = bind({ egress: 'ping', ingress: 'ping' })
    await world().set([web(), both], true)
    expect(state('egress')).toMatchObject({
      state: 'Pending',
      message: expect.stringMatching(
        /^there is no TrafficPolicy tenant\/ping; .*; what is bound stays, since .*; the log/,
      ),
    })
    expect([goes('egress'), goes('ingress')]).toEqual([true, true])
    expect(egress().hits).toEqual({ '#0 allow': expect.any(Number) })
    await world().set([web()], true)
    expect([goes('egress'), goes('ingress')]).toEqual([true, true])
    await world().set([web(), both])
    expect([goes('egress'), goes('ingress')]).toEqual([false, false])
  })

  test('what stays bound because objects are read in part goes on under its names', async () => {
    await start([web(), bind({ egress: 'ping' }), policy('ping')])
    const before = egress().hits
    expect(Object.keys(before ?? {})).toEqual(['echo allow'])
    await world().set([web(), bind({ egress: 'ping' })], true)
    await world().advance(300)
    expect(state('egress')).toMatchObject({ state: 'Pending' })
    expect(egress().hits).toEqual(before)
  })

  test('what another process unbinds is bound again at the next pass', async () => {
    await start([web(), bind({ egress: 'ping', ingress: 'ping' }), policy('ping')])
    const slot = world().kernel.attach(device()).slot
    world().kernel.unbindBehind({ slot, direction: 'egress' })
    expect(goes('egress')).toBe(false)
    expect(egress().uid).toBeUndefined()
    await world().advance(300)
    expect(goes('egress')).toBe(true)
  })

  test('a second agent of the node is refused, and the first goes on', async () => {
    await start([web(), bind({ egress: 'ping', ingress: 'ping' }), policy('ping')])
    const second = agentWorld(world().kernel)
    await expect(second.start()).rejects.toThrow(/another agent writes to/)
    expect(goes('egress')).toBe(true)
  })
}

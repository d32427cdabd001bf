/** What an agent makes of a node's objects, on a turned clock: the same cases for the kernel and for the model of one. */
import { expect, test } from 'vitest'
import { builtIn, oneInterface, seen } from './agent-harness'
import type { NodeKernel } from './agent-world'
import { attachment, binding, echo, type PolicyFields, policy, rest } from './traffic-objects'

/** More rules than there are counter rows. */
const tooMany = Array.from({ length: 40 }, (_, index) => ({ name: `r${index}`, action: 'Deny' as const }))
const broken: PolicyFields = { rules: [{ ...echo, name: 'Bad Name' }] }

export function agentSuite(makeKernel: () => NodeKernel): void {
  const { world, device, web, bind, egress, ingress, state, goes, start } = oneInterface(makeKernel)

  /** Of all pins of snapshots, which have their publication's number at the end. */
  const publications = (): readonly number[] =>
    world()
      .kernel.pins()
      .map((name) => Number(name.split('-').at(-1)))

  test('1: without a binding both directions have the built-in policy, counted from zero', async () => {
    await start([web()])
    expect(ingress()).toEqual({ uid: builtIn, generation: 1, hits: { 'deny-all deny': 0 }, unavailable: 0 })
    expect(egress()).toMatchObject({ uid: builtIn, hits: { 'deny-all deny': 0 } })
    expect([goes('egress'), goes('ingress')]).toEqual([false, false])
    expect(egress().hits?.['deny-all deny']).toBeGreaterThan(0)
    expect(egress().unavailable).toBe(0)
    expect(world().writes).toEqual([])
  })

  test('2: a direction with a reference has its policy, one without the built-in, and both say so', async () => {
    await start([web(), bind({ egress: 'ping' }), policy('ping', { generation: 7 })])
    expect(world().entry('tenant/web')).toMatchObject({
      node: 'n1',
      mode: 'Enforce',
      heartbeatTime: '2026-10-15T12:00:00Z',
      ingress: {
        state: 'Applied',
        policy: { name: 'default-deny-all', uid: builtIn, generation: 1 },
        observedGeneration: 3,
      },
      egress: { state: 'Applied', policy: { name: 'ping', uid: 'uid-ping', generation: 7 }, observedGeneration: 3 },
    })
    expect([goes('egress'), goes('ingress')]).toEqual([true, false])
  })

  test('3 to 5: a policy that is missing denies and is pending, at once applied when it comes, unbound when it goes', async () => {
    const objects = [web(), bind({ ingress: 'lost', egress: 'ping' }), policy('ping')]
    await start(objects)
    expect(state('ingress')).toMatchObject({
      state: 'Pending',
      message: 'there is no TrafficPolicy tenant/lost; create it, or correct the reference',
    })
    expect(state('egress')).toMatchObject({ state: 'Applied' })
    expect(goes('ingress')).toBe(false)
    expect(ingress().uid).toBeUndefined()
    expect(ingress().unavailable).toBeGreaterThan(0)
    await world().set([...objects, policy('lost')])
    expect(state('ingress')).toMatchObject({ state: 'Applied', policy: { uid: 'uid-lost' } })
    expect([goes('ingress'), goes('egress')]).toEqual([true, true])
    await world().set(objects)
    expect(state('ingress')?.state).toBe('Pending')
    expect(ingress().uid).toBeUndefined()
    expect(goes('ingress')).toBe(false)
  })

  test('6: an edit that does not compile leaves the generation before in force, and says so', async () => {
    const objects = (fields: PolicyFields) => [web(), bind({ ingress: 'ping', egress: 'ping' }), policy('ping', fields)]
    await start(objects({ generation: 7 }))
    await world().set(objects({ generation: 8, ...broken }))
    expect(state('egress')).toMatchObject({ state: 'Failed', policy: { generation: 7 } })
    expect(state('egress')?.message).toMatch(/TrafficPolicy tenant\/ping does not compile: .*Bad Name/)
    expect([goes('egress'), goes('ingress')]).toEqual([true, true])
    expect(egress()).toMatchObject({ generation: 7, hits: { 'echo allow': 1 } })
    await world().set(objects({ generation: 9 }))
    expect(state('egress')).toMatchObject({ state: 'Applied', policy: { generation: 9 } })
    expect(egress().hits).toEqual({ 'echo allow': 1 })
  })

  test('7, 8 and 12: one that does not compile keeps nothing of another policy, nor of another one of its name', async () => {
    await start([web(), bind({ egress: 'ping' }), policy('ping', broken)])
    expect(state('egress')?.state).toBe('Failed')
    expect(state('egress')?.policy).toBeUndefined()
    expect(egress().uid).toBeUndefined()
    await world().set([web(), bind({ egress: 'other' }), policy('other'), policy('ping', broken)])
    expect(goes('egress')).toBe(true)
    expect(egress().uid).toBe('uid-other')
    await world().set([web(), bind({ egress: 'ping' }), policy('other'), policy('ping', broken)])
    expect([state('egress')?.state, egress().uid]).toEqual(['Failed', undefined])
    await world().set([web(), bind({ egress: 'ping' }), policy('ping', { uid: 'first' })])
    expect(egress().uid).toBe('first')
    await world().set([web(), bind({ egress: 'ping' }), policy('ping', { uid: 'second', ...broken })])
    expect([state('egress')?.state, egress().uid]).toEqual(['Failed', undefined])
    expect(goes('egress')).toBe(false)
  })

  test('9: a rebind for which there are no rows unbinds: the other policy’s grants are never kept', async () => {
    const many = policy('many', { rules: tooMany })
    await start([web(), bind({ egress: 'ping', ingress: 'ping' }), policy('ping'), many])
    expect(goes('egress')).toBe(true)
    await world().set([web(), bind({ egress: 'many', ingress: 'ping', generation: 4 }), policy('ping'), many])
    expect(state('egress')).toMatchObject({ state: 'Failed', observedGeneration: 4 })
    expect(state('egress')?.message).toMatch(/generation 1 cannot be installed: .*counter rows/)
    expect(state('ingress')).toMatchObject({ state: 'Applied', observedGeneration: 4 })
    expect(egress().uid).toBeUndefined()
    expect(goes('egress')).toBe(false)
  })

  test('10: an update for which there are no rows leaves the generation before, and goes through when there are', async () => {
    const objects = (fields: PolicyFields) => [web(), bind({ egress: 'ping', ingress: 'ping' }), policy('ping', fields)]
    await start(objects({ generation: 7 }))
    await world().set(objects({ generation: 8, rules: [echo, ...tooMany] }))
    expect(state('egress')).toMatchObject({ state: 'Failed', policy: { generation: 7 } })
    expect(goes('egress')).toBe(true)
    await world().set(objects({ generation: 9, rules: [echo, rest] }))
    expect(state('egress')).toMatchObject({ state: 'Applied', policy: { generation: 9 } })
    expect(egress().hits).toEqual({ 'echo allow': 1, 'rest deny': 0 })
  })

  test('10: rows that another direction frees let the very generation through at the next pass', async () => {
    const big = policy('big', { rules: tooMany.slice(0, 12) })
    const objects = (fields: PolicyFields, ingress: string) => [
      web(),
      bind({ egress: 'ping', ingress }),
      big,
      policy('ping', fields),
    ]
    const eight = { generation: 8, rules: [echo, ...tooMany.slice(0, 15)] }
    await start(objects({ generation: 7 }, 'big'))
    await world().set(objects(eight, 'big'))
    expect(state('egress')).toMatchObject({ state: 'Failed', policy: { generation: 7 } })
    await world().set(objects(eight, 'lost'))
    await world().advance(5)
    expect(state('egress')).toMatchObject({ state: 'Applied', policy: { generation: 8 } })
    expect(Object.keys(egress().hits ?? {})).toHaveLength(16)
  })

  test('25: whichever of a rule’s entries a packet meets, the rule’s one row counts it once', async () => {
    const match = { protocols: ['ICMP'], sources: ['192.0.2.0/24', '10.0.0.0/8'], icmp: [{ type: 0 }, { type: 8 }] }
    await start([
      web(),
      bind({ egress: 'ping', ingress: 'ping' }),
      policy('ping', { rules: [{ ...echo, match }, rest] }),
    ])
    expect([goes('egress'), goes('egress')]).toEqual([true, true])
    expect(egress().hits).toEqual({ 'echo allow': 2, 'rest deny': 0 })
  })

  test('26: a policy without rules is Applied, and denies everything', async () => {
    await start([web(), bind({ egress: 'none', ingress: 'none' }), policy('none', { rules: [] })])
    expect(state('egress')).toMatchObject({ state: 'Applied', policy: { uid: 'uid-none' } })
    expect([goes('egress'), goes('ingress')]).toEqual([false, false])
    expect(egress()).toMatchObject({ hits: {}, unavailable: 0 })
  })

  test('30: one policy on the ingress of one interface and the egress of another has counters for each', async () => {
    const other = `${device()}s`
    world().kernel.attach(other)
    const elsewhere = [attachment('other', { device: other }), binding('other', { egress: 'ping', ingress: 'in' })]
    await start([web(), bind({ ingress: 'ping', egress: 'in' }), ...elsewhere, policy('ping'), policy('in')])
    expect([goes('ingress'), goes('ingress'), world().kernel.passes(other, 'egress')]).toEqual([true, true, true])
    expect(ingress()).toMatchObject({ uid: 'uid-ping', hits: { 'echo allow': 2 } })
    expect(seen(world(), other, 'egress')).toMatchObject({ uid: 'uid-ping', hits: { 'echo allow': 1 } })
    world().kernel.unlink(other)
  })

  test('11: a tenant’s own object of the reserved name is nothing, the controller’s is the built-in policy', async () => {
    const own = policy('default-deny-all', { rules: [{ name: 'deny-all', action: 'Deny' }] })
    await start([web(), bind({ egress: 'default-deny-all' }), own])
    expect(state('egress')).toMatchObject({ state: 'Pending', message: expect.stringMatching(/not the controller's/) })
    expect(egress().uid).toBeUndefined()
    const labels = { 'app.kubernetes.io/managed-by': 'portolan-controller' }
    await world().set([
      web(),
      bind({ egress: 'default-deny-all' }),
      policy('default-deny-all', { labels, rules: [{ name: 'deny-all', action: 'Deny' }] }),
    ])
    expect(state('egress')).toMatchObject({ state: 'Applied', policy: { uid: builtIn, generation: 1 } })
  })

  test('the built-in policy takes the place of another, and where it cannot be installed nothing stays', async () => {
    const before = [web(), bind({ egress: 'ping', ingress: 'ping' }), policy('ping')]
    await start(before)
    await world().set([web(), bind({ ingress: 'ping' }), policy('ping')])
    expect(state('egress')).toMatchObject({ state: 'Applied', policy: { uid: builtIn } })
    expect(goes('egress')).toBe(false)
    await world().set(before)
    expect(goes('egress')).toBe(true)
    world().kernel.faults.add('failed-create')
    await world().set([web(), bind({ ingress: 'ping' }), policy('ping')])
    expect(state('egress')?.state).toBe('Failed')
    expect([egress().uid, goes('egress')]).toEqual([undefined, false])
    world().kernel.faults.clear()
    await world().advance(5)
    expect(egress().uid).toBe(builtIn)
  })

  test('13: a link that comes later is pending, published at once when it is heard of, and within 5 s when it is not', async () => {
    const [heard, unheard] = [`${device()}a`, `${device()}b`]
    const objects = [
      attachment('a', { device: heard }),
      attachment('b', { device: unheard }),
      binding('a'),
      binding('b'),
    ]
    await start(objects)
    expect(world().entry('tenant/a')?.egress).toMatchObject({
      state: 'Pending',
      message: expect.stringMatching(/not attached/),
    })
    world().kernel.attach(heard)
    await world().hear({ name: heard, mayBeGone: false })
    expect(world().entry('tenant/a')?.egress?.state).toBe('Applied')
    await world().advance(4.9)
    world().kernel.attach(unheard)
    await world().advance(5)
    expect(world().entry('tenant/b')?.egress?.state).toBe('Applied')
    for (const name of [heard, unheard]) world().kernel.unlink(name)
  })

  test('14 and 15: without an agent a new interface denies, and another node’s attachment is none of this one’s', async () => {
    await start([])
    await world().stop()
    expect(goes('egress')).toBe(false)
    await start([attachment('web', { device: device(), node: 'n2' }), bind({ egress: 'ping' }), policy('ping')])
    expect(world().agent().view().interfaces).toEqual([])
    expect(world().writes).toEqual([])
    expect(goes('egress')).toBe(false)
    await world().stop()
    await start([web()])
    expect(egress().unavailable, '14: what was denied without an agent is counted').toBe(2)
  })

  test.each(['failed-create', 'failed-fill', 'failed-pin', 'failed-swap'] as const)(
    '17: an update that fails at a step (%s) leaves what was, and goes through 5 s later',
    async (fault) => {
      const objects = (fields: PolicyFields) => [
        web(),
        bind({ egress: 'ping', ingress: 'ping' }),
        policy('ping', fields),
      ]
      await start(objects({ generation: 1 }))
      const before = publications()
      world().kernel.faults.add(fault)
      // Both directions are bound by one swap first, then each by its own.
      if (fault === 'failed-swap') world().kernel.faults.add('half-swap')
      await world().set(objects({ generation: 2, rules: [echo, rest] }))
      expect(state('egress')).toMatchObject({ state: 'Failed', policy: { generation: 1 } })
      expect(goes('egress')).toBe(true)
      world().kernel.faults.clear()
      await world().advance(5)
      expect(state('egress')).toMatchObject({ state: 'Applied', policy: { generation: 2 } })
      expect(egress().hits).toMatchObject({ 'echo allow': 1 })
      // Both at once, then each alone, have failed: their numbers are not given again.
      for (const number of publications()) expect(number - Math.max(...before)).toBeGreaterThan(3)
    },
  )

  test('one policy that cannot be installed does not keep the others of the same moment from it', async () => {
    const other = `${device()}o`
    world().kernel.attach(other)
    await start([
      web(),
      bind({ egress: 'many', ingress: 'ping' }),
      attachment('other', { device: other }),
      binding('other', { egress: 'ping', ingress: 'ping' }),
      policy('ping'),
      policy('many', { rules: tooMany }),
    ])
    expect(state('egress')?.state).toBe('Failed')
    expect(world().entry('tenant/other')).toMatchObject({ ingress: { state: 'Applied' }, egress: { state: 'Applied' } })
    expect(world().kernel.passes(other, 'egress')).toBe(true)
    world().kernel.unlink(other)
  })

  test('17: a swap of two that fails after the first is tried apart, and both go through', async () => {
    const objects = (fields: PolicyFields) => [web(), bind({ egress: 'ping', ingress: 'ping' }), policy('ping', fields)]
    await start(objects({ generation: 1 }))
    world().kernel.faults.add('half-swap')
    await world().set(objects({ generation: 2, rules: [echo, rest] }))
    expect([egress().generation, ingress().generation]).toEqual([2, 2])
    expect([goes('egress'), goes('ingress')]).toEqual([true, true])
  })
}

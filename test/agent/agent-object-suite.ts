/** The agent and the objects it is given: counters through edits, edge links, contradictions, and manifests that are refused. */
import { expect, test } from 'vitest'
import type { RawRecord } from '#manifests/text/raw-object'
import { builtIn, oneInterface, seen } from './agent-harness'
import type { NodeKernel } from './agent-world'
import { attachment, binding, echo, edgeAttachment, edgeService, policy, rest } from './traffic-objects'

export function agentObjectSuite(makeKernel: () => NodeKernel): void {
  const { world, device, web, bind, egress, ingress, state, goes, start } = oneInterface(makeKernel)

  test('37 to 40 and 45: counts go on through edits of matches and order, and start anew for all else', async () => {
    let generation = 0
    const give = async (rules: Parameters<typeof policy>[1] = {}, name = 'ping'): Promise<void> => {
      generation += 1
      await world().set([
        web(),
        bind({ egress: name, ingress: 'in' }),
        policy('in'),
        policy(name, { generation, ...rules }),
      ])
    }
    await start([])
    await give()
    expect(goes()).toBe(true)
    expect(egress().hits).toEqual({ 'echo allow': 1 })
    await give({ rules: [{ ...echo, match: { protocols: ['ICMP'], icmp: [{ type: 8 }] } }] })
    expect(egress().hits, '37: the match').toEqual({ 'echo allow': 1 })
    await give({ rules: [{ ...rest, match: { protocols: ['SCTP'] } }, echo] })
    expect(egress().hits, '45: the order').toEqual({ 'rest deny': 0, 'echo allow': 1 })
    await give({ rules: [{ ...echo, name: 'web-echo' }] })
    expect(egress().hits, '38: the name').toEqual({ 'web-echo allow': 0 })
    await give({ rules: [{ ...echo, name: 'web-echo', action: 'Deny' }] })
    expect(egress().hits, '39: the action').toEqual({ 'web-echo deny': 0 })
    await give({ rules: [echo] })
    expect(goes()).toBe(true)
    await give({ rules: [echo] }, 'other')
    expect(egress(), '40: another policy').toMatchObject({ uid: 'uid-other', hits: { 'echo allow': 0 } })
  })

  test('a policy that tells no generation is counted on through edits all the same', async () => {
    const plain = (match: RawRecord): RawRecord => ({
      apiVersion: 'portolan.dev/v1alpha1',
      kind: 'TrafficPolicy',
      metadata: { namespace: 'tenant', name: 'ping' },
      spec: { rules: [{ ...echo, match }] },
    })
    await start([web(), bind({ egress: 'ping', ingress: 'ping' }), plain({ protocols: ['ICMP'] })])
    expect(goes()).toBe(true)
    await world().set([web(), bind({ egress: 'ping', ingress: 'ping' }), plain({ protocols: ['TCP'] })])
    expect(goes()).toBe(false)
    expect(egress()).toMatchObject({ generation: 1, hits: { 'echo allow': 1 } })
  })

  const edge = (fields = {}): RawRecord => edgeAttachment('link', 'dns', { device: device(), ...fields })
  const both = { ingress: 'ping', egress: 'ping' }

  test('65: a policy of the provider’s namespace is none of the service’s: nothing is bound, and it is counted', async () => {
    await start([edge(), edgeService('dns', both), policy('ping', { namespace: 'provider' })])
    expect([egress().uid, ingress().uid]).toEqual([undefined, undefined])
    expect(goes()).toBe(false)
    expect(egress().unavailable).toBeGreaterThan(0)
    expect(world().writes).toEqual([])
  })

  test.each([
    ['names another policy, which is not there', { egress: 'other', ingress: 'other' }, 'Pending'],
    ['names none', {}, 'Applied'],
    ['names the reserved one', { egress: 'default-deny-all', ingress: 'default-deny-all' }, 'Applied'],
  ] as const)(
    'while a part of the objects cannot be read: a binding that is there and %s loses what it had',
    async (_, named, said) => {
      const rebound = [web(), bind(named), policy('ping')]
      await start([web(), bind({ egress: 'ping', ingress: 'ping' }), policy('ping')])
      expect([goes('egress'), goes('ingress')]).toEqual([true, true])
      await world().set(rebound, true)
      expect([goes('egress'), goes('ingress')]).toEqual([false, false])
      expect([state('egress')?.state, state('ingress')?.state]).toEqual([said, said])
    },
  )

  test('while a part of the objects cannot be read: a gate that is seen to be closed is closed, and a service may be there', async () => {
    await start([edge(), edgeService('dns', both), policy('ping')])
    expect(goes()).toBe(true)
    await world().set([edge(), policy('ping')], true)
    expect(goes()).toBe(true)
    await world().set([edge({ isAdmitted: false }), policy('ping')], true)
    expect(goes()).toBe(false)
    await world().set([edge(), edgeService('dns', both), policy('ping')], true)
    expect(goes()).toBe(true)
    await world().set([edge(), edgeService('dns', { ...both, provider: 'resolver' }), policy('ping')], true)
    expect(goes()).toBe(false)
  })

  test('66: an edge link that is no longer admitted is unbound both ways, and bound again when it is', async () => {
    const others = [edgeService('dns', both), policy('ping')]
    await start([edge(), ...others])
    expect([goes('egress'), goes('ingress')]).toEqual([true, true])
    await world().set([edge({ isAdmitted: false }), ...others])
    expect([goes('egress'), goes('ingress')]).toEqual([false, false])
    expect(egress().uid).toBeUndefined()
    expect(
      world().logged.filter((line) => /^EdgeAttachment \S+ is not Admitted; whoever admits/.test(line)),
    ).toHaveLength(2)
    await world().set([edge(), ...others])
    expect([goes('egress'), goes('ingress')]).toEqual([true, true])
  })

  test.each([
    ['is being deleted', edgeService('dns', { ...both, isDeleting: true })],
    ['is another one of its name', edgeService('dns', { ...both, uid: 'another' })],
    ['grants another provider', edgeService('dns', { ...both, provider: 'resolver' })],
    ['is not there', edgeService('other', both)],
  ])('67: an edge link whose service %s is unbound both ways', async (_, changed) => {
    const link = edge({ serviceUid: 'uid-service-dns' })
    await start([link, edgeService('dns', both), policy('ping')])
    expect(goes()).toBe(true)
    await world().set([link, changed, policy('ping')])
    expect([egress().uid, ingress().uid, goes()]).toEqual([undefined, undefined, false])
    await world().set([link, edgeService('dns', both), policy('ping')])
    expect(goes()).toBe(true)
  })

  test('68 to 70: the service’s policies, or the built-in one; its VPC and the attachment’s names; and no status', async () => {
    await start([edge(), edgeService('dns')])
    expect([egress().uid, ingress().uid]).toEqual([builtIn, builtIn])
    const other = `${device()}e`
    world().kernel.attach(other)
    const links = [edge(), edgeAttachment('second', 'dns', { device: other })]
    await world().set([...links, edgeService('dns', both), policy('ping')])
    for (const name of [device(), other]) expect(seen(world(), name, 'egress').uid).toBe('uid-ping')
    expect([goes(), world().kernel.passes(other, 'egress')]).toEqual([true, true])
    const view = world()
      .agent()
      .view()
      .interfaces.find((one) => one.interface === other)
    expect(view).toMatchObject({ kind: 'EdgeAttachment', namespace: 'provider', attachment: 'second', vpc: 'blue' })
    expect(world().writes).toEqual([])
    world().kernel.unlink(other)
  })

  test('two policies that swap their names: each direction has what its name means now, and no grant outlives it', async () => {
    const [opens, shuts] = [{ rules: [echo] }, { rules: [rest] }]
    const objects = (a: Parameters<typeof policy>[1], b: Parameters<typeof policy>[1]): RawRecord[] => [
      web(),
      bind({ egress: 'a', ingress: 'b' }),
      policy('a', a),
      policy('b', b),
    ]
    await start(objects({ uid: 'u1', ...opens }, { uid: 'u2', ...shuts }))
    expect([goes('egress'), goes('ingress')]).toEqual([true, false])
    await world().set(objects({ uid: 'u2', ...shuts }, { uid: 'u1', ...opens }))
    expect([goes('egress'), goes('ingress')]).toEqual([false, true])
    expect([egress(), ingress()]).toMatchObject([{ uid: 'u2' }, { uid: 'u1' }])
    // Where one of them cannot be compiled, its direction keeps nothing of the other.
    const broken = { rules: [{ ...echo, name: 'Bad Name' }] }
    await world().set(objects({ uid: 'u1', ...broken }, { uid: 'u2', ...opens }))
    expect([state('egress')?.state, goes('egress'), goes('ingress')]).toEqual(['Failed', false, false])
    expect([egress().uid, ingress().uid]).toEqual([undefined, 'u2'])
  })

  test('an interface that two attachments claim is the older one’s; the other fails and says whose it is', async () => {
    const thief = attachment('a-thief', { device: device(), namespace: 'evil' })
    const older = {
      ...web(),
      metadata: { ...(web().metadata as RawRecord), creationTimestamp: '2026-10-01T00:00:00Z' },
    }
    const newer = {
      ...thief,
      metadata: { ...(thief.metadata as RawRecord), creationTimestamp: '2026-10-02T00:00:00Z' },
    }
    const grab = { ...binding('a-thief', both), metadata: { namespace: 'evil', name: 'a-thief' } }
    await start([older, bind({}), newer, grab, policy('ping', { namespace: 'evil' })])
    expect(state('egress')?.state).toBe('Applied')
    expect(egress().uid).toBe(builtIn)
    expect(world().entry('evil/a-thief')?.egress).toMatchObject({
      state: 'Failed',
      message: `interface ${device()} is that of VPCAttachment tenant/web, which is older or of a lesser name; correct status.hostInterface of one of them, or delete the one that is left over`,
    })
  })

  test('of two bindings of one attachment the older counts, and the other has no entry', async () => {
    const second = binding('later', { attachment: 'web', ...both, created: '2026-10-02T00:00:00Z' })
    await start([web(), bind({}), second, policy('ping')])
    expect([egress().uid, world().entry('tenant/later')]).toEqual([builtIn, undefined])
    await world().set([web(), second, policy('ping')])
    expect(egress().uid).toBe('uid-ping')
    expect([world().entry('tenant/web'), world().entry('tenant/later')?.egress?.state]).toEqual([undefined, 'Applied'])
  })

  test('a policy of another namespace is out of reach, and a binding that becomes unreadable falls back to denial', async () => {
    await start([
      web(),
      bind({ egress: 'ping', ingress: 'shared' }),
      policy('ping'),
      policy('shared', { namespace: 'other' }),
    ])
    expect(state('ingress')).toMatchObject({
      state: 'Pending',
      message: 'there is no TrafficPolicy tenant/shared; create it, or correct the reference',
    })
    expect(egress().uid).toBe('uid-ping')
    const bad = { ...bind({ egress: 'ping' }), spec: { vpcAttachmentRef: { name: 'web' }, policy: 'ping' } }
    await world().set([web(), bad, policy('ping')])
    expect([egress().uid, ingress().uid, goes()]).toEqual([builtIn, builtIn, false])
    expect(state('egress')).toMatchObject({
      state: 'Failed',
      message: expect.stringMatching(/spec\.policy: there is no such/),
    })
  })
}

/** The cases of the Kubernetes end-to-end suite: namespaces x, y, z with pods a, b, c, who listen on 80 and 81 of TCP, UDP and SCTP. */
import { describe, expect, test } from 'vitest'
import { askPolicies } from '../../../test/policy/ask-policies'
import { namespace, networkPolicy, pod, type Raw } from '../../../test/policy/policy-objects'

const namespaces = ['x', 'y', 'z']
const names = ['a', 'b', 'c']
const places = namespaces.flatMap((one) => names.map((name) => `${one}/${name}`))
const ports = [80, 81].flatMap((containerPort) =>
  ['TCP', 'UDP', 'SCTP'].map((protocol) => ({
    name: `serve-${containerPort}-${protocol.toLowerCase()}`,
    containerPort,
    protocol,
  })),
)

type World = { readonly namespaceLabels?: Raw; readonly podLabels?: Raw }

function build(policies: readonly Raw[], { namespaceLabels = {}, podLabels = {} }: World = {}) {
  return askPolicies([
    ...namespaces.map((name) => namespace(name, { ns: name, ...Object(namespaceLabels[name]) })),
    ...places.map((place) =>
      pod(place, { pod: place.slice(2), ...Object(podLabels[place]) }, { ports, nodeName: 'n1' }),
    ),
    ...policies,
  ])
}

/** Ordered pairs with the connection, without pods to themselves: `x/a → y/b`. */
function reached(asked: ReturnType<typeof build>, connection: string): ReadonlySet<string> {
  const pairs = places.flatMap((from) => places.filter((to) => to !== from).map((to) => [from, to] as const))
  return new Set(
    pairs.filter(([from, to]) => asked.may(from, to, connection) === 'yes').map((pair) => pair.join(' → ')),
  )
}

function pairsWhere(holds: (from: string, to: string) => boolean): ReadonlySet<string> {
  return new Set(
    places.flatMap((from) => places.filter((to) => to !== from && holds(from, to)).map((to) => `${from} → ${to}`)),
  )
}

const inX = (place: string): boolean => place.startsWith('x/')
const all = pairsWhere(() => true)
const forA = { matchLabels: { pod: 'a' } }
const dns = { protocol: 'UDP', port: 53 }

describe('conformance', () => {
  test('without policies everybody reaches everybody', () => {
    expect(reached(build([]), 'SCTP 81')).toEqual(all)
  })

  test('default deny of ingress in x: nothing reaches x', () => {
    const asked = build([networkPolicy('x/deny', { podSelector: {}, policyTypes: ['Ingress'] })])
    expect(reached(asked, 'TCP 80')).toEqual(pairsWhere((_, to) => !inX(to)))
    expect(asked.may('x/a', 'x/a', 'TCP 80')).toBe('yes')
  })

  test('default deny of all in x, with DNS: only UDP 53 gets out', () => {
    const spec = { podSelector: {}, policyTypes: ['Ingress', 'Egress'], egress: [{ ports: [dns] }] }
    const asked = build([networkPolicy('x/deny', spec)])
    expect(reached(asked, 'UDP 53')).toEqual(pairsWhere((_, to) => !inX(to)))
    expect(reached(asked, 'TCP 80')).toEqual(pairsWhere((from, to) => !inX(from) && !inX(to)))
    expect(asked.may('x/a', '8.8.8.8', 'UDP 53')).toBe('yes')
    expect(asked.may('x/a', '8.8.8.8', 'TCP 53')).toBe('no')
  })

  test('namespaces not in {x} and pods in {b, c} in one peer: x/a is reached by those of y and z', () => {
    const from = [
      {
        namespaceSelector: { matchExpressions: [{ key: 'ns', operator: 'NotIn', values: ['x'] }] },
        podSelector: { matchExpressions: [{ key: 'pod', operator: 'In', values: ['b', 'c'] }] },
      },
    ]
    const asked = build([networkPolicy('x/p', { podSelector: forA, ingress: [{ from }] })])
    const isAllowed = (place: string): boolean => !inX(place) && !place.endsWith('/a')
    expect(reached(asked, 'TCP 80')).toEqual(pairsWhere((from, to) => to !== 'x/a' || isAllowed(from)))
  })

  test('stacked policies: 81 first, then 80 as well', () => {
    const allow = (port: number): Raw =>
      networkPolicy(`x/allow-${port}`, {
        podSelector: forA,
        ingress: [{ from: [{ namespaceSelector: { matchLabels: { ns: 'y' } } }], ports: [{ port }] }],
      })
    const fromY = pairsWhere((from, to) => to !== 'x/a' || from.startsWith('y/'))
    const none = pairsWhere((_, to) => to !== 'x/a')
    expect([80, 81].map((port) => reached(build([allow(81)]), `TCP ${port}`))).toEqual([none, fromY])
    expect([80, 81].map((port) => reached(build([allow(81), allow(80)]), `TCP ${port}`))).toEqual([fromY, fromY])
  })

  test('allow all of ingress', () => {
    const deny = networkPolicy('x/deny', { podSelector: {}, policyTypes: ['Ingress'] })
    const allow = networkPolicy('x/allow', { podSelector: {}, ingress: [{}] })
    expect(reached(build([deny, allow]), 'TCP 81')).toEqual(all)
  })

  test('a named port: TCP 81 alone', () => {
    const spec = { podSelector: forA, ingress: [{ ports: [{ port: 'serve-81-tcp' }] }] }
    const asked = build([networkPolicy('x/p', spec)])
    expect(reached(asked, 'TCP 81')).toEqual(all)
    for (const other of ['TCP 80', 'UDP 81', 'SCTP 81']) {
      expect(reached(asked, other)).toEqual(pairsWhere((_, to) => to !== 'x/a'))
    }
  })

  test('a policy that changes from 80 to 81 is the new one alone', () => {
    const allow = (port: number): Raw => networkPolicy('x/p', { podSelector: {}, ingress: [{ ports: [{ port }] }] })
    const closed = pairsWhere((_, to) => !inX(to))
    expect([80, 81].map((port) => reached(build([allow(80)]), `TCP ${port}`))).toEqual([all, closed])
    expect([80, 81].map((port) => reached(build([allow(81)]), `TCP ${port}`))).toEqual([closed, all])
    expect([80, 81].map((port) => reached(build([allow(80), allow(81)]), `TCP ${port}`))).toEqual([closed, all])
  })

  test('a namespace that gains the label gains access', () => {
    const from = [{ namespaceSelector: { matchLabels: { ns2: 'updated' } } }]
    const policy = networkPolicy('x/p', { podSelector: forA, ingress: [{ from }] })
    expect(build([policy]).may('y/a', 'x/a', 'TCP 80')).toBe('no')
    const updated = build([policy], { namespaceLabels: { y: { ns2: 'updated' } } })
    expect(reached(updated, 'TCP 80')).toEqual(pairsWhere((from, to) => to !== 'x/a' || from.startsWith('y/')))
  })

  test('so does a pod that gains a label', () => {
    const from = [{ namespaceSelector: {}, podSelector: { matchLabels: { pod2: 'updated' } } }]
    const policy = networkPolicy('x/p', { podSelector: forA, ingress: [{ from }] })
    const updated = build([policy], { podLabels: { 'x/b': { pod2: 'updated' } } })
    expect(reached(updated, 'TCP 80')).toEqual(pairsWhere((from, to) => to !== 'x/a' || from === 'x/b'))
  })

  test('18: labels count as they are now: what loses them loses access, or is isolated no more', () => {
    const from = [
      { namespaceSelector: { matchLabels: { ns2: 'updated' } }, podSelector: { matchLabels: { pod2: 'on' } } },
    ]
    const policy = networkPolicy('x/p', { podSelector: { matchLabels: { target: 'isolated' } }, ingress: [{ from }] })
    const isolated = { target: 'isolated' }
    const steps = [
      build([policy], {
        namespaceLabels: { y: { ns2: 'updated' } },
        podLabels: { 'x/a': isolated, 'y/b': { pod2: 'on' } },
      }),
      build([policy], { podLabels: { 'x/a': isolated, 'y/b': { pod2: 'on' } } }),
      build([policy], {
        namespaceLabels: { y: { ns2: 'updated' } },
        podLabels: { 'x/a': isolated, 'y/b': { pod2: 'off' } },
      }),
      build([policy]),
    ]
    expect(steps.map((asked) => asked.may('y/b', 'x/a', 'TCP 80'))).toEqual(['yes', 'no', 'no', 'yes'])
    expect(steps.map((asked) => asked.may('y/c', 'x/a', 'TCP 80'))).toEqual(['no', 'no', 'no', 'yes'])
  })

  test('a pod that gains the label of the subject becomes isolated', () => {
    const policy = networkPolicy('x/p', {
      podSelector: { matchLabels: { target: 'isolated' } },
      policyTypes: ['Ingress'],
    })
    expect(reached(build([policy]), 'TCP 80')).toEqual(all)
    const updated = build([policy], { podLabels: { 'x/a': { target: 'isolated' } } })
    expect(reached(updated, 'TCP 80')).toEqual(pairsWhere((_, to) => to !== 'x/a'))
  })

  test('ingress and egress together: both sides must allow', () => {
    const spec = {
      podSelector: forA,
      policyTypes: ['Ingress', 'Egress'],
      ingress: [{ from: [{ namespaceSelector: { matchLabels: { ns: 'y' } } }] }],
      egress: [{ ports: [{ port: 80 }, dns] }],
    }
    const asked = build([networkPolicy('x/p', spec)])
    expect(reached(asked, 'TCP 80')).toEqual(pairsWhere((from, to) => to !== 'x/a' || from.startsWith('y/')))
    expect(reached(asked, 'TCP 81')).toEqual(
      pairsWhere((from, to) => from !== 'x/a' && (to !== 'x/a' || from.startsWith('y/'))),
    )
    expect(asked.may('x/a', 'y/a', 'UDP 53')).toBe('yes')
  })

  test('the client denies itself, although the server allows', () => {
    const client = networkPolicy('x/client', { podSelector: forA, policyTypes: ['Egress'], egress: [{ ports: [dns] }] })
    const server = networkPolicy('y/server', { podSelector: forA, ingress: [{}] })
    const asked = build([client, server])
    expect(asked.may('x/a', 'y/a', 'TCP 80')).toBe('no')
    expect(asked.may('x/b', 'y/a', 'TCP 80')).toBe('yes')
  })

  test('without the policy all is as it was', () => {
    expect(reached(build([]), 'TCP 80')).toEqual(all)
  })
})

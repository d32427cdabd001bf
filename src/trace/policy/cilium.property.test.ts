/** For random policies: the answer by the map is the answer by the rules, in every version and in any order of objects. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Direction } from '#compile/policy/policy-rule'
import { ciliumVersions } from '#model/cilium-version'
import { askCilium, ccnp, cnp, exampleWorld } from '../../../test/policy/ask-cilium'
import { networkPolicy, type Raw } from '../../../test/policy/policy-objects'

const labels = fc.constantFrom<Raw>({}, { app: 'client' }, { app: 'server' }, { ver: 'v2' })
const selector = labels.map((matchLabels): Raw => (Object.keys(matchLabels).length === 0 ? {} : { matchLabels }))

const peers = (side: 'from' | 'to'): fc.Arbitrary<Raw> =>
  fc.oneof(
    fc.constant({}),
    fc.array(selector, { maxLength: 2 }).map((list) => ({ [`${side}Endpoints`]: list })),
    fc.constantFrom('all', 'world', 'cluster', 'host', 'remote-node').map((one) => ({ [`${side}Entities`]: [one] })),
    fc.constantFrom('203.0.113.0/24', '10.0.0.0/8', '0.0.0.0/0').map((one) => ({ [`${side}CIDR`]: [one] })),
  )

const port = fc.record({
  port: fc.constantFrom('0', '80', '8080', 'web'),
  protocol: fc.constantFrom('TCP', 'UDP', 'ANY'),
})
const toPorts = fc.oneof(
  fc.constant({}),
  fc.array(port, { minLength: 1, maxLength: 2 }).map((ports) => ({ toPorts: [{ ports }] })),
)
const element = (side: 'from' | 'to'): fc.Arbitrary<Raw> =>
  fc.tuple(peers(side), toPorts).map(([a, b]) => ({ ...a, ...b }))

const spec = fc
  .record({
    endpointSelector: selector,
    section: fc.constantFrom('ingress', 'ingressDeny', 'egress', 'egressDeny'),
    from: fc.array(element('from'), { minLength: 1, maxLength: 2 }),
    to: fc.array(element('to'), { minLength: 1, maxLength: 2 }),
    closes: fc.option(fc.boolean(), { nil: undefined }),
  })
  .map(({ endpointSelector, section, from, to, closes }): Raw => {
    const direction = section.replace('Deny', '')
    return {
      endpointSelector,
      [section]: direction === 'ingress' ? from : to,
      ...(closes !== undefined && { enableDefaultDeny: { [direction]: closes } }),
    }
  })

const policies = fc.array(fc.tuple(spec, fc.constantFrom('cnp', 'ccnp', 'np')), { maxLength: 4 }).map((list) =>
  list.map(([one, kind], index): Raw => {
    if (kind === 'ccnp') return ccnp(`p${index}`, one)
    if (kind === 'cnp') return cnp(`business/p${index}`, one)
    return networkPolicy(`business/p${index}`, {
      podSelector: one.endpointSelector,
      ingress: [{ from: [{ podSelector: {} }] }],
    })
  }),
)

const parties = ['A', 'B', 'C', 'D', 'node-a', 'node-b', '8.8.8.8', '203.0.113.9', 'health']
const connections = ['TCP 80', 'TCP 8080', 'UDP 80', 'ICMP 8']

function answers(objects: readonly Raw[], version: (typeof ciliumVersions)[number]): readonly string[] {
  const asked = askCilium([...exampleWorld, ...objects], { version })
  const ask = (direction: Direction, name: string, connection: string): string => {
    const [source, target] = direction === 'ingress' ? [name, 'B'] : ['B', name]
    const { decision, because } = asked.answer(direction, source, target, connection)
    const surprise = because.some(({ code }) => code === 'cilium.lookup-surprise')
    return `${direction} ${name} ${connection} ${decision}${surprise ? ' surprise' : ''}`
  }
  return parties.flatMap((name) =>
    connections.flatMap((connection) => [ask('ingress', name, connection), ask('egress', name, connection)]),
  )
}

test.each(ciliumVersions)(
  'Cilium %s decides by its map what its rules say, whatever the order of policies',
  (version) => {
    fc.assert(
      fc.property(policies, (objects) => {
        const found = answers(objects, version)
        expect(found.filter((line) => line.endsWith('surprise'))).toEqual([])
        expect(answers([...objects].reverse(), version)).toEqual(found)
      }),
      { numRuns: 10, seed: 5 },
    )
  },
)

test('adding an allow rule never takes a connection away where the direction is closed already', () => {
  const closed = cnp('business/closed', { endpointSelector: {}, ingress: [{}], egress: [{}] })
  fc.assert(
    fc.property(policies, element('from'), (objects, added) => {
      const before = answers([closed, ...objects], '1.18')
      const more = cnp('business/more', { endpointSelector: {}, ingress: [added] })
      const after = new Set(answers([closed, ...objects, more], '1.18'))
      for (const line of before.filter((one) => one.endsWith('allowed'))) expect(after).toContain(line)
    }),
    { numRuns: 10, seed: 6 },
  )
})

/** For random policies: the answer by the map is the answer by the rules, in every version and in any order of objects. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Direction } from '#compile/policy/policy-rule'
import { ciliumVersions } from '#model/cilium-version'
import { askCilium, cnp, exampleWorld } from '../../../test/policy/ask-cilium'
import type { Raw } from '../../../test/policy/policy-objects'
import { ciliumElement, ciliumPolicies } from '../../../test/random/arbitrary-cilium-policies'

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
      fc.property(ciliumPolicies, (objects) => {
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
    fc.property(ciliumPolicies, ciliumElement('from'), (objects, added) => {
      const before = answers([closed, ...objects], '1.18')
      const more = cnp('business/more', { endpointSelector: {}, ingress: [added] })
      const after = new Set(answers([closed, ...objects, more], '1.18'))
      for (const line of before.filter((one) => one.endsWith('allowed'))) expect(after).toContain(line)
    }),
    { numRuns: 10, seed: 6 },
  )
})

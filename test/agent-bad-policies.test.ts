/** Policies that the API server would refuse, as files may hold them: each is told in the status, denies, and spoils nothing else. */
import { expect, test } from 'vitest'
import type { RawRecord } from '#manifests/text/raw-object'
import { oneInterface } from './agent/agent-harness'
import { modelNode } from './agent/model-kernel'
import { echo, policy, rest } from './agent/traffic-objects'

const { web, bind, egress, ingress, state, start } = oneInterface(modelNode)
const wrong = (match: RawRecord): readonly RawRecord[] => [{ ...echo, match }]
test.each([
  ['a rule’s name twice', [echo, echo], /the name "echo" is taken/],
  ['65 rules', Array.from({ length: 65 }, (_, index) => ({ ...rest, name: `r${index}` })), /65 items/],
  ['reversed ports', wrong({ protocols: ['TCP'], destinationPorts: [{ from: 90, to: 80 }] }), /90 to 80 is reversed/],
  ['a network of another family', wrong({ ipFamily: 'IPv4', sources: ['fd00::/64'] }), /not of the family IPv4/],
  ['a field that does not exist', wrong({ source: ['10.0.0.0/8'] }), /there is no such field/],
  ['host bits', wrong({ sources: ['10.0.0.1/8'] }), /bits set beyond/],
  ['an action of its own', [{ name: 'echo', action: 'Drop' }], /none of Allow, Deny/],
  ['rules that are no list', 'all', /a list is wanted/],
  [
    'more entries than fit',
    wrong({
      sources: Array.from({ length: 16 }, (_, index) => `10.${index}.0.0/16`),
      destinations: Array.from({ length: 16 }, (_, index) => `11.${index}.0.0/16`),
      protocols: ['TCP', 'UDP'],
    }),
    /512 compiled entries, where 256 fit/,
  ],
])('a policy with %s is told in the status, denies, and nothing else suffers', async (_, rules, message) => {
  const bad = { ...policy('bad'), spec: { rules } }
  await start([web(), bind({ egress: 'bad', ingress: 'ping' }), bad, policy('ping')])
  expect(state('egress')).toMatchObject({ state: 'Failed', message: expect.stringMatching(message) })
  expect(state('ingress')?.state).toBe('Applied')
  expect([egress().uid, ingress().uid]).toEqual([undefined, 'uid-ping'])
})

/** What several field managers say of one object, and that each keeps its own part (case 64). */
import { expect, test } from 'vitest'
import { parseCluster } from '#manifests/parse-cluster'
import { mergeStatuses, type Said } from './merge-status'

const binding = (status: string, uid = ''): string =>
  `apiVersion: portolan.dev/v1alpha1\nkind: TrafficPolicyBinding\nmetadata: {namespace: tenant, name: web-0${uid}}\nspec: {vpcAttachmentRef: {name: web-0}}\n${status}`

function merged(text: string, said: Partial<Said>) {
  const { value } = parseCluster(text)
  return mergeStatuses(value, { nodes: [], conditions: [], ...said }).trafficPolicyBindings.get('tenant/web-0')?.status
}

const entry = (node: string, minute: string, uid?: string) => ({
  metadata: { namespace: 'tenant', name: 'web-0', ...(uid !== undefined && { uid }) },
  status: { nodes: [{ node, mode: 'Enforce' as const, heartbeatTime: `2026-10-15T12:${minute}:00Z` }] },
})

const condition = (type: string, status: 'True' | 'False') => ({
  type,
  status,
  lastTransitionTime: '2026-10-15T12:00:00Z',
  reason: 'R',
  message: '',
})

test('64: entries of two nodes are both there, sorted, and neither removes the other', () => {
  const nodes = [entry('n2', '01'), entry('n1', '02')]
  expect(merged(binding(''), { nodes })?.nodes?.map(({ node }) => node)).toEqual(['n1', 'n2'])
})

test('a file takes the place of what the object holds of that node, unless it is the older', () => {
  const held = binding('status: {nodes: [{node: n1, heartbeatTime: "2026-10-15T12:05:00Z"}, {node: n3}]}\n')
  const beats = (minute: string) =>
    merged(held, { nodes: [entry('n1', minute)] })?.nodes?.map((one) => one.heartbeatTime)
  expect(beats('09')).toEqual(['2026-10-15T12:09:00Z', undefined])
  expect(beats('01')).toEqual(['2026-10-15T12:05:00Z', undefined])
})

test('what was said of an object of another UID is left out', () => {
  const nodes = [entry('n1', '01', 'u1')]
  expect(merged(binding('', ', uid: u2'), { nodes })?.nodes).toBeUndefined()
  expect(merged(binding('', ', uid: u1'), { nodes })?.nodes).toHaveLength(1)
  expect(merged(binding(''), { nodes })?.nodes).toHaveLength(1)
})

test('conditions take the place of all that the controller said before, and leave those of others', () => {
  const held = binding(
    'status: {conditions: [{type: Enforcing, status: "False", lastTransitionTime: "2026-10-15T12:00:00Z", reason: R, message: ""}, {type: Conflict, status: "True", lastTransitionTime: "2026-10-15T12:00:00Z", reason: R, message: ""}, {type: Theirs, status: "True", lastTransitionTime: "2026-10-15T12:00:00Z", reason: R, message: ""}]}\n',
  )
  const metadata = { namespace: 'tenant', name: 'web-0' }
  const conditions = [
    { kind: 'TrafficPolicyBinding' as const, metadata, status: { conditions: [condition('Enforcing', 'True')] } },
    { kind: 'TrafficPolicy' as const, metadata, status: { conditions: [condition('Valid', 'True')] } },
  ]
  expect(merged(held, { conditions })?.conditions?.map(({ type, status }) => `${type} ${status}`)).toEqual([
    'Theirs True',
    'Enforcing True',
  ])
})

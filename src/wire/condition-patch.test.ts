/** The controller's patches as files: they read back equal, and what is no patch is refused. */
import { expect, test } from 'vitest'
import { conditionFilePath, printConditionPatch, readConditionPatch } from './condition-patch'

const condition = {
  type: 'Enforcing',
  status: 'True',
  observedGeneration: 3,
  lastTransitionTime: '2026-10-15T12:00:00Z',
  reason: 'Enforcing',
  message: 'n1 drops what the policies deny',
} as const

test('a patch reads back as it was printed, and its file is named after its object', () => {
  const patch = printConditionPatch('TrafficPolicyBinding', { namespace: 'tenant', name: 'web-0', uid: 'u1' }, [
    condition,
  ])
  expect(readConditionPatch(JSON.parse(JSON.stringify(patch)))).toEqual({ kind: 'patch', patch })
  expect(conditionFilePath(patch)).toBe('portolan-controller/trafficpolicybindings/tenant/web-0.json')
  expect(conditionFilePath({ ...patch, kind: 'TrafficPolicy' })).toBe(
    'portolan-controller/trafficpolicies/tenant/web-0.json',
  )
})

test.each([
  ['no object', 7, 'metadata'],
  ['a kind that nobody judges', { kind: 'Pod', metadata: { namespace: 'a', name: 'b' } }, 'metadata'],
  ['no name', { kind: 'EdgeService', metadata: { namespace: 'a' } }, 'metadata'],
  ['a name that leads elsewhere', { kind: 'EdgeService', metadata: { namespace: 'a', name: '../b' } }, 'metadata'],
  ['a namespace that does', { kind: 'EdgeService', metadata: { namespace: '..', name: 'b' } }, 'metadata'],
  ['no conditions', { kind: 'EdgeService', metadata: { namespace: 'a', name: 'b' } }, 'status.conditions'],
  [
    'a status that there is not',
    {
      kind: 'EdgeService',
      metadata: { namespace: 'a', name: 'b' },
      status: { conditions: [{ ...condition, status: 'Yes' }] },
    },
    'status.conditions[0].status',
  ],
])('refused: %s', (_, value, path) => {
  const reading = readConditionPatch(value)
  expect(reading.kind === 'refused' && reading.problems[0]?.path).toBe(path)
})

import { expect, test } from 'vitest'
import { type NodeEntry, printStatusPatch, readStatusPatch, statusFilePath } from './status-file'

const entry: NodeEntry = {
  node: 'n1',
  ingress: {
    state: 'Applied',
    policy: { name: 'web', uid: 'u1', generation: 7 },
    observedGeneration: 3,
    lastTransitionTime: '2026-10-15T12:00:00Z',
  },
  egress: { state: 'Failed', observedGeneration: 3, lastTransitionTime: '2026-10-15T12:00:00Z', message: 'no rows' },
  mode: 'Enforce',
  heartbeatTime: '2026-10-15T12:05:00Z',
}

const binding = { namespace: 'tenant', name: 'web-0', uid: 'b1' }

test('a status file reads back as it was written', () => {
  const patch = printStatusPatch(binding, entry)
  expect(readStatusPatch(JSON.parse(JSON.stringify(patch)))).toEqual({ kind: 'patch', patch })
  expect(statusFilePath('n1', binding)).toBe('portolan-agent-n1/trafficpolicybindings/tenant/web-0.json')
  const outside = statusFilePath('n1', { namespace: '..', name: '..' })
  expect(outside).toBe('portolan-agent-n1/trafficpolicybindings/%2E%2E/...json')
})

test('what no agent writes is refused with what is wrong', () => {
  const patch = printStatusPatch(binding, entry)
  const refused = (value: unknown) => {
    const reading = readStatusPatch(value)
    return reading.kind === 'refused' ? reading.problems.map(({ path }) => path) : reading
  }
  expect(refused('text')).toEqual([''])
  expect(refused({ ...patch, kind: 'Pod' })).toEqual(['metadata'])
  expect(refused({ ...patch, status: { nodes: [] } })).toEqual(['status.nodes'])
  expect(refused({ ...patch, status: { nodes: [entry, { ...entry, node: 'n2' }] } })).toEqual(['status.nodes'])
  expect(refused({ ...patch, status: { nodes: [{ ...entry, mode: 'On' }] } })).toEqual(['status.nodes[0].mode'])
})

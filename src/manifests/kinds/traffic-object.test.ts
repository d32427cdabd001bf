/** Objects of the traffic policy kinds as they are read: aliases, defaults, what is refused, and what a status may hold. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parseCluster } from '#manifests/parse-cluster'
import { uidOf } from '#model/traffic-policy'

const object = (kind: string, rest: string, apiVersion = 'portolan.dev/v1alpha1'): string =>
  `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata: {namespace: tenant, name: web}\n${rest}\n`

const policy = (spec: string, apiVersion?: string): string => object('TrafficPolicy', `spec: ${spec}`, apiVersion)

function read(text: string) {
  const { value, findings } = parseCluster(text)
  const told = findings.filter(({ code }) => code === 'traffic-policy.refused')
  return { cluster: value, told: told.map(({ path, message, hint }) => `${path}: ${message}; ${hint}`) }
}

test('both groups are read, other versions and groups are not', () => {
  for (const group of ['portolan.dev', 'galactic.datumapis.com']) {
    const { cluster, told } = read(policy('{rules: [{name: a, action: Allow}]}', `${group}/v1alpha1`))
    expect(told).toEqual([])
    expect(cluster.trafficPolicies.get('tenant/web')?.spec).toEqual({
      stateful: true,
      rules: [{ name: 'a', action: 'Allow' }],
    })
  }
  expect(read(policy('{rules: []}', 'portolan.dev/v2')).told).toEqual([
    'apiVersion: there is no TrafficPolicy in "portolan.dev/v2"; write apiVersion: portolan.dev/v1alpha1',
  ])
  expect(read(policy('{rules: []}', 'example.org/v1alpha1')).cluster.trafficPolicies.size).toBe(0)
})

test('a refused policy is kept without its spec and with all its problems, so that nobody takes it for missing', () => {
  const { cluster, told } = read(policy('{rules: [{name: A, action: allow}, {name: b}, 7], more: 1}'))
  const kept = cluster.trafficPolicies.get('tenant/web')
  expect(kept?.spec).toBeUndefined()
  expect(kept?.problems.map(({ path }) => path)).toEqual([
    'spec.rules[0].name',
    'spec.rules[0].action',
    'spec.rules[1].action',
    'spec.rules[2]',
    'spec.more',
  ])
  expect(told).toHaveLength(5)
  expect(told[1]).toBe('spec.rules[0].action: rule "A": "allow" is none of Allow, Deny; write Allow')
})

test.each([
  ['no spec at all', object('TrafficPolicy', ''), 'spec.rules: the field is missing; add rules'],
  [
    'a spec that is no map',
    object('TrafficPolicy', 'spec: 7'),
    'spec: 7 stands where a map is wanted; write its fields as "name: value"',
  ],
  [
    'rules that are no list',
    policy('{rules: {a: 1}}'),
    'spec.rules: a map stands where a list is wanted; write each item after "- "',
  ],
  [
    'a port as text',
    policy('{rules: [{name: a, action: Deny, match: {sourcePorts: [{from: "80"}]}}]}'),
    'spec.rules[0].match.sourcePorts[0].from: rule "a": "80" stands where a whole number from 1 to 65535 is wanted; write the number without quotes',
  ],
  [
    'a flag as text',
    policy('{stateful: "yes", rules: []}'),
    'spec.stateful: "yes" stands where true or false is wanted; write true or false without quotes',
  ],
  ['a name too long', policy(`{rules: [{name: ${'n'.repeat(64)}, action: Deny}]}`), 'at most 63 are taken; shorten it'],
  [
    'a network twice',
    policy('{rules: [{name: a, action: Deny, match: {sources: [10.0.0.0/8, 10.0.0.0/8]}}]}'),
    'spec.rules[0].match.sources[1]: rule "a": "10.0.0.0/8" stands in the list twice; leave one of the two out',
  ],
  [
    'another namespace',
    object(
      'TrafficPolicyBinding',
      'spec: {vpcAttachmentRef: {name: a}, ingressPolicyRef: {name: b, namespace: other}}',
    ),
    'spec.ingressPolicyRef.namespace: there is no such field; known here: name',
  ],
  [
    'a binding of nothing',
    object('TrafficPolicyBinding', 'spec: {}'),
    'spec.vpcAttachmentRef: the field is missing; add vpcAttachmentRef',
  ],
  [
    'an interface’s name too long',
    object('VPCAttachment', 'status: {hostInterface: sixteen-letters-}'),
    'status.hostInterface: it has 16 characters, where at most 15 are taken; shorten it',
  ],
  [
    'two entries of one node',
    object('TrafficPolicyBinding', 'spec: {vpcAttachmentRef: {name: a}}\nstatus: {nodes: [{node: n1}, {node: n1}]}'),
    'status.nodes[1]: ',
  ],
  [
    'an unknown field of the object',
    `${policy('{rules: []}')}rules: []\n`,
    'rules: there is no such field; known here: metadata, spec, status',
  ],
])('refused: %s', (_, text, told) => {
  expect(read(text).told.join('\n')).toContain(told)
})

test('a UID or a generation that no API server gives is refused, as a snapshot could not hold it', () => {
  const withMeta = (meta: string): string =>
    `apiVersion: portolan.dev/v1alpha1\nkind: TrafficPolicy\nmetadata: {namespace: tenant, name: web, ${meta}}\nspec: {rules: []}\n`
  expect(read(withMeta(`uid: ${'u'.repeat(65)}`)).told[0]).toContain('metadata.uid')
  expect(read(withMeta('uid: "builtin:default-deny-all:v1"')).told[0]).toContain('those of built-in policies')
  expect(read(withMeta('generation: 4294967296')).told[0]).toContain('metadata.generation')
  const { cluster } = read(withMeta('uid: u1, generation: 4294967295'))
  expect(cluster.trafficPolicies.get('tenant/web')).toMatchObject({ generation: 4294967295, meta: { uid: 'u1' } })
})

test('without a UID the name stands for it, and the generation is 1', () => {
  const one = read(policy('{rules: []}')).cluster.trafficPolicies.get('tenant/web')
  expect(one?.generation).toBe(1)
  expect(one === undefined ? '' : uidOf(one.meta)).toMatch(/^name-[0-9a-f]{32}$/)
})

test('what others write into open objects is passed over', () => {
  const text = object(
    'VPCAttachment',
    'spec: {vpc: {name: blue, region: x}, interface: {mtu: 1400}}\nstatus: {node: n1, hostInterface: eth0, extra: 1}',
  )
  const { cluster, told } = read(text)
  expect(told).toEqual([])
  expect(cluster.vpcAttachments.get('tenant/web')).toMatchObject({
    spec: { vpc: { name: 'blue' } },
    status: { node: 'n1', hostInterface: 'eth0' },
  })
})

test('a status of a newer version is read as far as it is known', () => {
  const text = object(
    'TrafficPolicyBinding',
    'spec: {vpcAttachmentRef: {name: a}}\nstatus: {nodes: [{node: n1, later: 1, ingress: {state: Applied, observedGeneration: 3, lastTransitionTime: "2026-10-15T12:00:00Z"}}]}',
  )
  const { cluster, told } = read(text)
  expect(told).toEqual([])
  expect(cluster.trafficPolicyBindings.get('tenant/web')?.status?.nodes).toEqual([
    { node: 'n1', ingress: { state: 'Applied', observedGeneration: 3, lastTransitionTime: '2026-10-15T12:00:00Z' } },
  ])
})

test.each(['web', 'egress', 'attachment', 'edge'])(
  'samples/traffic-policy/%s.yaml reads without a finding about it',
  (name) => {
    const text = readFileSync(`samples/traffic-policy/${name}.yaml`, 'utf8')
    expect(text).toMatch(/^# [A-Z].*\.\n/)
    expect(read(text).told).toEqual([])
  },
)

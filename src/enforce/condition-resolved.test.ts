/** Whether references resolve: of bindings, of EdgeServices (cases 65 and 68), and of policies themselves. */
import { expect, test } from 'vitest'
import { parseCluster } from '#manifests/parse-cluster'
import { surveyConditions } from './condition-survey'

const head = 'apiVersion: portolan.dev/v1alpha1\n'
const policy = (name: string, spec = '{rules: [{name: a, action: Deny}]}', namespace = 'tenant'): string =>
  `${head}kind: TrafficPolicy\nmetadata: {namespace: ${namespace}, name: ${name}}\nspec: ${spec}\n`
const binding = (spec: string): string =>
  `${head}kind: TrafficPolicyBinding\nmetadata: {namespace: tenant, name: b}\nspec: ${spec}\n`
const attachment = `${head}kind: VPCAttachment\nmetadata: {namespace: tenant, name: web-0}\nstatus: {node: n1}\n`
const service = (trafficPolicy: string): string =>
  `${head}kind: EdgeService\nmetadata: {namespace: tenant, name: s}\nspec: {providerRef: {name: p}, vpcRef: {name: v}${trafficPolicy}}\n`

function conditionsOf(kind: string, ...texts: readonly string[]): readonly string[] {
  const { value } = parseCluster(texts.join('---\n'))
  const { objects } = surveyConditions(value, 0)
  return objects
    .filter((one) => one.kind === kind)
    .flatMap(({ conditions }) =>
      conditions.map(({ type, status, reason, message }) => `${type} ${status}/${reason}: ${message}`),
    )
}

const resolvedOf = (...texts: readonly string[]): readonly string[] =>
  conditionsOf('TrafficPolicyBinding', ...texts).filter((one) => one.includes('Resolved'))

test('a binding: each direction by itself, and both together', () => {
  const refs = '{vpcAttachmentRef: {name: web-0}, ingressPolicyRef: {name: web}}'
  expect(resolvedOf(attachment, policy('web'), binding(refs))).toEqual([
    'Resolved True/Resolved: ingress: TrafficPolicy tenant/web, generation 1; egress: the built-in policy default-deny-all',
    'IngressResolved True/Resolved: TrafficPolicy tenant/web, generation 1',
    'EgressResolved True/Default: the built-in policy default-deny-all',
  ])
  expect(resolvedOf(attachment, binding(refs))[0]).toBe(
    'Resolved False/PolicyNotFound: ingress: there is no TrafficPolicy tenant/web; create it, or correct the reference; egress: the built-in policy default-deny-all',
  )
  expect(resolvedOf(attachment, policy('web', '{rules: [{name: A, action: Deny}]}'), binding(refs))[1]).toMatch(
    /^IngressResolved False\/PolicyInvalid: TrafficPolicy tenant\/web does not compile: spec\.rules\[0\]\.name/,
  )
  expect(resolvedOf(attachment, binding('{vpcAttachmentRef: {name: web-0}}'))[0]).toMatch(/^Resolved True\/Default/)
})

test('a binding of an attachment that is not there is on no node, and says so', () => {
  expect(conditionsOf('TrafficPolicyBinding', binding('{vpcAttachmentRef: {name: web-1}}'))).toEqual([
    'Resolved False/AttachmentNotFound: there is no VPCAttachment tenant/web-1; create it, or correct vpcAttachmentRef',
    'IngressResolved True/Default: the built-in policy default-deny-all',
    'EgressResolved True/Default: the built-in policy default-deny-all',
    'Installed False/NoNodes: VPCAttachment tenant/web-1 is on no node; whoever places the workload writes status.node',
    'Enforcing False/NoNodes: VPCAttachment tenant/web-1 is on no node; whoever places the workload writes status.node',
  ])
})

test('a binding that the API server would have refused says why, once for each of its conditions', () => {
  const told = conditionsOf('TrafficPolicyBinding', attachment, binding('{}'))
  expect(told.map((one) => one.split(':')[0])).toEqual([
    'Resolved False/Invalid',
    'Installed False/Invalid',
    'Enforcing False/Invalid',
  ])
  expect(told[0]).toContain('vpcAttachmentRef')
})

test('68: an EdgeService without policies is Default; with one of its own namespace, Resolved', () => {
  expect(conditionsOf('EdgeService', service(''))).toEqual([
    'TrafficPolicyResolved True/Default: ingress: the built-in policy default-deny-all; egress: the built-in policy default-deny-all',
  ])
  const named = service(', trafficPolicy: {ingressPolicyRef: {name: from-vpc}}')
  expect(conditionsOf('EdgeService', named, policy('from-vpc'))[0]).toMatch(/^TrafficPolicyResolved True\/Resolved: /)
})

test('65: a policy of the provider’s namespace does not count', () => {
  const named = service(', trafficPolicy: {egressPolicyRef: {name: from-vpc}}')
  expect(conditionsOf('EdgeService', named, policy('from-vpc', undefined, 'provider'))).toEqual([
    'TrafficPolicyResolved False/PolicyNotFound: ingress: the built-in policy default-deny-all; egress: there is no TrafficPolicy tenant/from-vpc; create it, or correct the reference',
  ])
})

test('a policy is Valid with its size, or not with what is wrong', () => {
  expect(conditionsOf('TrafficPolicy', policy('web'))).toEqual(['Valid True/Valid: 1 rule, 1 compiled entry'])
  expect(conditionsOf('TrafficPolicy', policy('web', '{rules: [{name: A, action: Deny}]}'))[0]).toMatch(
    /^Valid False\/Invalid: spec\.rules\[0\]\.name/,
  )
  const builtIn = '{rules: [{name: deny-all, action: Deny}]}'
  expect(conditionsOf('TrafficPolicy', policy('default-deny-all', builtIn))[0]).toMatch(/^Valid False\/NameReserved/)
  const owned = policy('default-deny-all', builtIn).replace(
    'metadata: {',
    'metadata: {labels: {app.kubernetes.io/managed-by: portolan-controller}, ',
  )
  expect(conditionsOf('TrafficPolicy', owned)).toEqual([
    'Valid True/BuiltIn: the built-in policy, which denies everything',
  ])
})

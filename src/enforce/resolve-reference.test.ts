/** References to policies: what each comes to, and that none leaves its namespace. */
import { expect, test } from 'vitest'
import { parseCluster } from '#manifests/parse-cluster'
import { resolveReference } from './resolve-reference'

const policy = (name: string, rest: string, namespace = 'tenant'): string =>
  `apiVersion: portolan.dev/v1alpha1\nkind: TrafficPolicy\nmetadata: {namespace: ${namespace}, name: ${name}${rest}`

const rules = '}\nspec: {rules: [{name: deny-all, action: Deny}]}\n'
const owned = `, labels: {app.kubernetes.io/managed-by: portolan-controller}${rules}`

function resolve(name: string | undefined, ...objects: readonly string[]) {
  const { value } = parseCluster(objects.join('---\n'))
  return resolveReference(value, 'tenant', name === undefined ? undefined : { name })
}

test('no reference is the built-in policy', () => {
  expect(resolve(undefined)).toEqual({ kind: 'default' })
})

test('a policy of the namespace, and of no other', () => {
  expect(resolve('web', policy('web', rules))).toMatchObject({ kind: 'policy', policy: { meta: { name: 'web' } } })
  expect(resolve('web', policy('web', rules, 'provider'))).toEqual({
    kind: 'missing',
    message: 'there is no TrafficPolicy tenant/web; create it, or correct the reference',
  })
})

test('what does not compile is not taken for missing', () => {
  const refused = resolve('web', policy('web', '}\nspec: {rules: [{name: A, action: Deny}]}\n'))
  expect(refused.kind).toBe('invalid')
  expect('message' in refused && refused.message).toMatch(
    /^TrafficPolicy tenant\/web does not compile: spec\.rules\[0\]/,
  )
})

test('the reserved name is the built-in policy, unless somebody else has taken it (case 11)', () => {
  expect(resolve('default-deny-all')).toEqual({ kind: 'default' })
  expect(resolve('default-deny-all', policy('default-deny-all', owned))).toEqual({ kind: 'default' })
  expect(resolve('default-deny-all', policy('default-deny-all', rules)).kind).toBe('foreign')
})

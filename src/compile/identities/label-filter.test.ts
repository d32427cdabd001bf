import { expect, test } from 'vitest'
import type { CiliumVersion } from '#model/cilium-version'
import { isIdentityLabel, parseLabelFilter } from './label-filter'

function keeps(key: string, labels = '', version: CiliumVersion = '1.18'): boolean {
  const source = key.startsWith('reserved:') ? 'reserved' : 'k8s'
  return isIdentityLabel({ source, key: key.replace('reserved:', ''), value: '' }, parseLabelFilter(labels, version))
}

test.each([
  ['app', true],
  ['app.kubernetes.io/name', true],
  ['kubernetes.io/hostname', false],
  ['beta.kubernetes.io/os', false],
  ['failure-domain.beta.kubernetes.io/zone', false],
  ['my-beta.kubernetes.io/x', false],
  ['betaXkubernetes.io', true],
  ['node.kubernetes.io/x', true],
  ['batch.kubernetes.io/controller-uid', false],
  ['batch.kubernetes.io/job-name', true],
  ['annotations', false],
])('by default %s counts: %s', (key, isKept) => {
  expect(keeps(key)).toBe(isKept)
})

test('of the default patterns some came with 1.18', () => {
  const account = 'io.cilium.k8s.policy.serviceaccount'
  expect(keeps(account, 'app', '1.17')).toBe(false)
  expect(keeps(account, 'app', '1.18')).toBe(true)
  expect(keeps('topology.kubernetes.io/zone', '', '1.17')).toBe(true)
  expect(keeps('topology.kubernetes.io/zone', '', '1.19')).toBe(false)
})

test('one pattern that includes leaves out all that none includes', () => {
  expect(keeps('app', 'team')).toBe(false)
  expect(keeps('team', 'team')).toBe(true)
  expect(keeps('app.kubernetes.io/name', 'team')).toBe(true)
  expect(keeps('reserved:host', 'team')).toBe(true)
})

test('the shortest match that excludes is held against the longest that includes', () => {
  expect(keeps('foo.bar.baz', '!foo foo.bar !foo.bar.baz')).toBe(true)
  expect(keeps('foo.bar', '!foo.bar foo.bar')).toBe(false)
})

test('a pattern’s source comes before its exclamation mark, and any is none', () => {
  expect(keeps('job', 'k8s:!job')).toBe(false)
  expect(keeps('job', 'container:!job')).toBe(true)
  expect(keeps('job', 'any:!job')).toBe(true)
  // Read as one that includes labels of the source `!k8s`, of which there are none.
  expect(keeps('app', '!k8s:job')).toBe(false)
})

test('what is no pattern is left out', () => {
  expect(keeps('app', '( k8s:')).toBe(true)
})

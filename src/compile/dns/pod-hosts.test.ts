import { expect, test } from 'vitest'
import { buildFrom } from '#manifests/support/raw-objects'
import { podHosts } from './pod-hosts'

const podOf = (name: string, spec: object = {}) => {
  const { cluster } = buildFrom([
    { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'shop' }, spec, status: { podIP: '10.244.1.5' } },
  ])
  const pod = cluster.pods.get(`shop/${name}`)
  if (pod === undefined) throw new Error(name)
  return pod
}

const ownNames = (name: string, spec?: object) => podHosts(podOf(name, spec), 'cluster.local').at(-1)?.names

test('a pod has its name, and its whole one with a subdomain', () => {
  expect(ownNames('web-0')).toEqual(['web-0'])
  expect(ownNames('db-0', { hostname: 'one', subdomain: 'db' })).toEqual(['one.db.shop.svc.cluster.local', 'one'])
})

test('a long name is cut, and does not end in a dash or a dot then', () => {
  expect(ownNames(`${'n'.repeat(62)}x-rest`)).toEqual([`${'n'.repeat(62)}x`])
  expect(ownNames(`${'n'.repeat(61)}--rest`)).toEqual(['n'.repeat(61)])
})

test('on the host’s network the file is the node’s', () => {
  expect(ownNames('agent', { hostNetwork: true })).not.toContain('agent')
})

/** Identities and selectors as Cilium's policies meet them: cases I1 to I20. */
import { describe, expect, test } from 'vitest'
import type { CiliumOptions } from '#compile/policy/cilium-options'
import { ciliumVersions } from '#model/cilium-version'
import { askCilium, ccnp, cnp, exampleWorld } from '../../../test/policy/ask-cilium'
import { namespace, networkPolicy, pod, type Raw } from '../../../test/policy/policy-objects'
import { identitiesOf } from './cilium-identity'
import { classOf } from './world'

const server = { endpointSelector: { matchLabels: { app: 'server' } } }

function numberOf(objects: readonly Raw[], name: string, options = {}): number {
  const asked = askCilium(objects, options)
  const of = classOf(asked.world, asked.party(name))
  return identitiesOf(asked.semantics.identities, of, 'apart')[0]?.number ?? -1
}

/** Who may reach B on TCP 8080 by one ingress policy: the same in every version unless one is asked for. */
function reaching(policy: Raw, options: CiliumOptions = {}, more: readonly Raw[] = []): readonly string[] {
  const names = ['A', 'C', 'D', 'node-b', 'world', 'remote-node', 'host', '8.8.8.8']
  const versions = options.version === undefined ? ciliumVersions : [options.version]
  const found = versions.map((version) => {
    const asked = askCilium([...exampleWorld, ...more, policy], { ...options, version })
    return names.filter((name) => asked.at('ingress', name, 'B', 'TCP 8080') === 'allowed')
  })
  for (const one of found) expect(one).toEqual(found[0])
  return found[0] ?? []
}

const from = (...fromEndpoints: readonly Raw[]): Raw => cnp('business/p', { ...server, ingress: [{ fromEndpoints }] })

describe('numbers', () => {
  const twins = [
    namespace('x'),
    pod('x/one', { app: 'web' }),
    pod('x/two', { app: 'web' }),
    pod('x/hashed', { app: 'web', 'pod-template-hash': 'abc' }),
    pod('x/job', { app: 'web', 'batch.kubernetes.io/job-name': 'j' }),
    pod('x/other', { app: 'web' }, { serviceAccountName: 'robot' }),
  ]

  test('I1: pods with the same labels, namespace and service account have one identity', () => {
    expect(numberOf(twins, 'x/one')).toBe(numberOf(twins, 'x/two'))
    expect(numberOf(twins, 'x/one')).not.toBe(numberOf(twins, 'x/other'))
  })

  test('I2: pod-template-hash is no part of it', () => {
    expect(numberOf(twins, 'x/hashed')).toBe(numberOf(twins, 'x/one'))
  })

  test('I3: batch.kubernetes.io/job-name is part of it', () => {
    expect(numberOf(twins, 'x/job')).not.toBe(numberOf(twins, 'x/one'))
  })

  test('I4: a new label of the namespace changes the identity of each of its pods', () => {
    const labelsOf = (labels: Raw): readonly (readonly string[])[] => {
      const asked = askCilium([namespace('x', labels), pod('x/one', { app: 'web' }), pod('x/two', { app: 'db' })])
      return ['x/one', 'x/two'].map((name) => {
        const [identity] = identitiesOf(asked.semantics.identities, classOf(asked.world, asked.party(name)), 'apart')
        return (identity?.labels.labels ?? []).map(({ key, value }) => `${key}=${value}`)
      })
    }
    const added = 'io.cilium.k8s.namespace.labels.tier=gold'
    expect(labelsOf({ tier: 'gold' }).map((own) => own.filter((one) => one !== added))).toEqual(labelsOf({}))
    expect(labelsOf({ tier: 'gold' }).every((own) => own.includes(added))).toBe(true)
  })

  test('I5: with labels=k8s:app an env label makes no identity of its own', () => {
    const pods = [namespace('x'), pod('x/bare'), pod('x/prod', { env: 'prod' }), pod('x/web', { app: 'web' })]
    const options = { labels: 'k8s:app' }
    expect(numberOf(pods, 'x/prod', options)).toBe(numberOf(pods, 'x/bare', options))
    expect(numberOf(pods, 'x/web', options)).not.toBe(numberOf(pods, 'x/bare', options))
    expect(numberOf(pods, 'x/prod')).not.toBe(numberOf(pods, 'x/bare'))
  })

  test('C15: numbers of CiliumIdentity objects win, and other sets are numbered from 256 in order', () => {
    expect(numberOf(exampleWorld, 'A')).toBe(1001)
    expect(numberOf(exampleWorld, 'D')).toBe(1004)
    expect(numberOf([namespace('x'), pod('x/one', { app: 'a' }), pod('x/two', { app: 'b' })], 'x/one')).toBe(256)
  })

  test('C41: in a mesh a cluster numbers from its id on, and its pods have its name', () => {
    const config = (data: Raw): Raw => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { namespace: 'kube-system', name: 'cilium-config' },
      data: { 'cluster-name': 'north', ...data },
    })
    const pods = [namespace('x'), pod('x/one', { app: 'a' }), pod('x/two', { app: 'b' })]
    const first = (data: Raw) => numberOf([...pods, config(data)], 'x/one')
    expect(first({})).toBe(256)
    expect(first({ 'cluster-id': '3' })).toBe(3 << 16)
    expect(first({ 'cluster-id': '3', 'max-connected-clusters': '511' })).toBe(3 << 15)
    expect(first({ 'cluster-id': 'x' })).toBe(256)
    expect(numberOf([...exampleWorld, config({ 'cluster-id': '3' })], 'A')).not.toBe(1001)
    const asked = askCilium([
      ...pods,
      config({ 'cluster-id': '3' }),
      cnp('x/p', { endpointSelector: {}, ingress: [{ fromEntities: ['cluster'] }] }),
    ])
    expect(asked.at('ingress', 'x/one', 'x/two', 'TCP 80')).toBe('allowed')
    expect(asked.at('ingress', '8.8.8.8', 'x/two', 'TCP 80')).toBe('133')
  })

  test('I19: the first identity of a prefix is 16777217', () => {
    const policy = cnp('business/p', { ...server, ingress: [{ fromCIDR: ['203.0.113.0/24'] }] })
    expect(numberOf([...exampleWorld, policy], '203.0.113.9')).toBe(16777217)
  })

  test('C16: a pod that is still initialising has identity 5', () => {
    const endpoint = {
      apiVersion: 'cilium.io/v2',
      kind: 'CiliumEndpoint',
      metadata: { namespace: 'business', name: 'a' },
      status: { identity: { id: 5, labels: ['reserved:init'] } },
    }
    expect(numberOf([...exampleWorld, endpoint], 'A')).toBe(5)
  })
})

describe('selectors', () => {
  test('I6: a selector without namespace means the policy’s own', () => {
    expect(reaching(from({ matchLabels: { app: 'client' } }))).toEqual(['A', 'host'])
  })

  test('I7: a namespace that is named replaces it', () => {
    const labels = { app: 'client', 'k8s:io.kubernetes.pod.namespace': 'other' }
    expect(reaching(from({ matchLabels: labels }))).toEqual(['D', 'host'])
  })

  test.each([
    ['1.16', ['host']],
    ['1.17', ['host']],
    ['1.18', ['D', 'host']],
    ['1.19', ['D', 'host']],
  ] as const)('I8: labels of a namespace free a selector of the policy’s own from 1.18 on: %s', (version, expected) => {
    const policy = from({ matchLabels: { 'k8s:io.cilium.k8s.namespace.labels.team': 'blue' } })
    expect(reaching(policy, { version })).toEqual(expected)
  })

  test('I9: {} in a clusterwide policy means every pod, and no node, host or world', () => {
    const policy = ccnp('p', { ...server, ingress: [{ fromEndpoints: [{}] }] })
    expect(reaching(policy, { allowsLocalhost: false })).toEqual(['A', 'C', 'D'])
  })

  test('I10: an empty namespaceSelector means every pod, and neither world nor nodes', () => {
    const policy = networkPolicy('business/p', {
      podSelector: { matchLabels: { app: 'server' } },
      ingress: [{ from: [{ namespaceSelector: {} }] }],
    })
    expect(reaching(policy, { allowsLocalhost: false })).toEqual(['A', 'C', 'D'])
  })

  test('I11: both selectors of one peer are ANDed, those of two peers are ORed', () => {
    const namespaceSelector = { matchLabels: { team: 'blue' } }
    const podSelector = { matchLabels: { app: 'client' } }
    const of = (...peers: readonly Raw[]): Raw =>
      networkPolicy('business/p', { podSelector: {}, ingress: [{ from: peers }] })
    expect(reaching(of({ namespaceSelector, podSelector }))).toEqual(['D', 'host'])
    expect(reaching(of({ namespaceSelector }, { podSelector }))).toEqual(['A', 'D', 'host'])
  })

  test('I12: fromCIDR never matches a pod', () => {
    expect(reaching(cnp('business/p', { ...server, ingress: [{ fromCIDR: ['10.244.2.30/32'] }] }))).toEqual(['host'])
  })

  test('I13: fromCIDR matches a node only with policy-cidr-match-mode=nodes', () => {
    const policy = cnp('business/p', { ...server, ingress: [{ fromCIDR: ['192.168.1.0/24'] }] })
    expect(reaching(policy)).toEqual(['host'])
    expect(reaching(policy, { cidrMatchesNodes: true })).toEqual(['node-b', 'host'])
  })

  test('I14: toEntities world matches an address that has an identity of its prefix', () => {
    const objects = [
      ...exampleWorld,
      cnp('business/p', { endpointSelector: { matchLabels: { app: 'client' } }, egress: [{ toEntities: ['world'] }] }),
      cnp('business/q', { endpointSelector: { matchLabels: { app: 'none' } }, egress: [{ toCIDR: ['8.8.8.0/24'] }] }),
    ]
    const asked = askCilium(objects)
    expect([numberOf(objects, '8.8.8.8'), numberOf(objects, '8.8.4.4')]).toEqual([16777217, 2])
    expect(asked.at('egress', 'A', '8.8.8.8', 'TCP 443')).toBe('allowed')
  })

  test('I15: the entity cluster holds pods, nodes, health, ingress and an API server outside, and not the world', () => {
    const apiServer = {
      apiVersion: 'v1',
      kind: 'Endpoints',
      metadata: { namespace: 'default', name: 'kubernetes' },
      subsets: [{ addresses: [{ ip: '203.0.113.5' }], ports: [{ port: 6443 }] }],
    }
    const policy = cnp('business/p', {
      endpointSelector: { matchLabels: { app: 'client' } },
      egress: [{ toEntities: ['cluster'] }],
    })
    const asked = askCilium([...exampleWorld, apiServer, policy])
    for (const name of ['B', 'D', 'node-b', 'health', 'ingress', '203.0.113.5']) {
      expect([name, asked.at('egress', 'A', name, 'TCP 443')]).toEqual([name, 'allowed'])
    }
    expect(asked.at('egress', 'A', '203.0.113.6', 'TCP 443')).toBe('133')
  })

  test('I16: remote-node matches the API server on another node', () => {
    const apiServer = {
      apiVersion: 'v1',
      kind: 'Endpoints',
      metadata: { namespace: 'default', name: 'kubernetes' },
      subsets: [{ addresses: [{ ip: '192.168.1.11' }], ports: [{ port: 6443 }] }],
    }
    const policy = cnp('business/p', { ...server, ingress: [{ fromEntities: ['remote-node'] }] })
    expect(numberOf([...exampleWorld, apiServer], 'node-b')).toBe(7)
    expect(reaching(policy, {}, [apiServer])).toEqual(['node-b', 'remote-node', 'host'])
  })

  test('I17: NotIn matches where the key is absent', () => {
    const policy = from({ matchExpressions: [{ key: 'ver', operator: 'NotIn', values: ['v2'] }] })
    expect(reaching(policy)).toEqual(['A', 'host'])
  })

  test('I18: a reserved: key gets no namespace', () => {
    const policy = from({ matchLabels: { 'reserved:host': '' } })
    expect(reaching(policy, { allowsLocalhost: false })).toEqual(['host'])
  })

  test('C38: reserved.host and $host are short for reserved:host, and k8s.app is a key as it stands', () => {
    for (const key of ['reserved.host', '$host']) {
      expect(reaching(from({ matchLabels: { [key]: '' } }), { allowsLocalhost: false })).toEqual(['host'])
    }
    expect(reaching(from({ matchLabels: { 'k8s.app': 'client' } }), { allowsLocalhost: false })).toEqual([])
  })

  test('C39: a key of a source that nobody has is no fault: it selects nothing, and the rest of the policy counts', () => {
    const policy = cnp('business/p', {
      ...server,
      ingress: [{ fromEndpoints: [{ matchLabels: { 'foo:app': 'client' } }] }, { fromEntities: ['remote-node'] }],
    })
    expect(reaching(policy, { allowsLocalhost: false })).toEqual(['node-b', 'remote-node'])
    expect(askCilium([...exampleWorld, policy]).findings).toEqual([])
  })

  test('I20: with two families fromEntities world makes keys for 2, 9 and 10', () => {
    const policy = cnp('business/p', {
      endpointSelector: { matchLabels: { app: 'client' } },
      ingress: [{ fromEntities: ['world'] }],
    })
    const asked = askCilium([...exampleWorld, policy], { isDualStack: true })
    expect(asked.map('A').filter((line) => line.startsWith('Allow Ingress'))).toEqual([
      'Allow Ingress 1 ANY',
      'Allow Ingress 10 ANY',
      'Allow Ingress 2 ANY',
      'Allow Ingress 9 ANY',
    ])
  })

  test('C17: a source of an address that CiliumNode tells to be a router is a node', () => {
    const router = {
      apiVersion: 'cilium.io/v2',
      kind: 'CiliumNode',
      metadata: { name: 'node-b' },
      spec: { addresses: [{ type: 'CiliumInternalIP', ip: '10.244.2.1' }], health: { ipv4: '10.244.2.2' } },
    }
    const policy = cnp('business/p', { ...server, ingress: [{ fromEntities: ['remote-node', 'host'] }] })
    const asked = askCilium([...exampleWorld, router, policy])
    expect(asked.at('ingress', '10.244.2.1', 'B', 'TCP 80')).toBe('allowed')
    expect(asked.at('ingress', '10.244.2.2', 'B', 'TCP 80')).toBe('133')
  })
})

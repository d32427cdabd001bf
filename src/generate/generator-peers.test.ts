import { describe, expect, test } from 'vitest'
import { gatherFlows, observedIndex, startGathering } from './gather-flows'
import { provePolicies } from './prove-policies'
import { surroundingsOf } from './select-pods'
import { both, directory, generate, knownPod, knownService, observed, policyOf } from './support/observed'

const block = (cidr: string): object => ({ ipBlock: { cidr } })
const tcp = (port: number): object => ({ protocol: 'TCP', port })
const codesOf = (generated: ReturnType<typeof generate>): readonly string[] =>
  generated.findings.map(({ code }) => code)

describe('the API server', () => {
  const toService = observed({
    direction: 'EGRESS',
    peerAddress: '10.96.0.1',
    port: 443,
    peer: { kind: 'service', namespace: 'default', name: 'kubernetes', uid: null },
  })
  const service = knownService({
    namespace: 'default',
    name: 'kubernetes',
    addresses: ['10.96.0.1'],
    selector: null,
    ports: [{ protocol: 'TCP', port: 443, targetPort: 6443, nodePort: 0 }],
  })
  const endpoints = ['172.18.0.2', '172.18.0.5'].map((address) => ({
    address,
    ports: [{ protocol: 'TCP', port: 6443 }],
  }))
  const known = directory({ services: [{ ...service, endpoints }] })

  test('is the addresses of its endpoints, at their port', () => {
    const { spec, comments } = policyOf([toService], { known })
    expect(spec.egress).toEqual([{ to: [block('172.18.0.2/32'), block('172.18.0.5/32')], ports: [tcp(6443)] }])
    expect(comments).toEqual(['the API server'])
  })

  test('is an entity of Cilium, whether by its Service or by its own address', () => {
    const direct = observed({ direction: 'EGRESS', peerAddress: '172.18.0.2', port: 6443, peer: null })
    for (const flow of [toService, direct]) {
      const { spec } = policyOf([flow], { known, kind: 'ciliumnetworkpolicy' })
      expect(spec.egress).toEqual([
        { toEntities: ['kube-apiserver'], toPorts: [{ ports: [{ port: '6443', protocol: 'TCP' }] }] },
      ])
    }
  })

  test('without known endpoints is its Service’s address, with a comment that this will not match', () => {
    const { spec, comments } = policyOf([toService], { known: directory({ services: [service] }) })
    expect(spec.egress).toEqual([{ to: [block('10.96.0.1/32')], ports: [tcp(6443)] }])
    expect(comments).toContain(
      'its endpoints are not known: the address of its Service does not match once it is translated',
    )
  })

  test('another port of a control plane’s node is that node', () => {
    const exporter = observed({
      direction: 'EGRESS',
      peerAddress: '172.18.0.2',
      port: 9100,
      peer: { kind: 'node', namespace: 'monitoring', name: 'exporter-1', labels: null },
    })
    expect(policyOf([exporter], { known }).comments[0]).toContain('host-network peer monitoring/web')
  })
})

describe('nodes and link-local addresses', () => {
  test('a cache of the DNS on the node is let through, other link-local addresses are left out', () => {
    const dns = observed({ direction: 'EGRESS', protocol: 'UDP', peerAddress: '169.254.20.10', port: 53, peer: null })
    const metadata = observed({ direction: 'EGRESS', peerAddress: '169.254.169.254', port: 80, peer: null })
    const { spec, comments } = policyOf([dns, metadata])
    expect(spec.egress).toEqual([{ to: [block('169.254.20.10/32')], ports: [{ protocol: 'UDP', port: 53 }] }])
    expect(comments).toEqual(['node-local address — podSelector cannot match host traffic'])
    expect(codesOf(generate([dns, metadata]))).toContain('generate.flows-left-out')
  })

  test('an address that no pod ever held, and that is a node’s, is the node', () => {
    const known = directory({ nodes: [{ name: 'worker-1', addresses: ['172.18.0.3', '192.0.2.3'] }] })
    const flow = observed({ peerAddress: '192.0.2.3', peer: null })
    expect(policyOf([flow], { known }).comments).toEqual(['node worker-1 — podSelector cannot match host traffic'])
    const { spec } = policyOf([flow], { known, kind: 'ciliumnetworkpolicy' })
    expect(spec.ingress).toMatchObject([{ fromEntities: ['host', 'remote-node'] }])
  })
})

describe('both ends', () => {
  const web = {
    namespace: 'shop',
    name: 'web-1',
    uid: 'uid-web-1',
    address: '10.244.1.11',
    workload: { kind: 'Deployment', name: 'web' },
    labels: { app: 'web' },
  }

  test.each(both)('what one end recorded is a rule of the other, which recorded other things (%s)', (kind) => {
    const other = observed({ pod: web, peer: null, peerAddress: '203.0.113.9', port: 443, direction: 'EGRESS' })
    const { spec } = policyOf([observed(), other], { kind, of: 'web' })
    expect(JSON.stringify(spec.egress)).toContain('3306')
    expect(generate([observed(), other], { kind }).proof).toMatchObject({ connections: 2, allowed: 2, faults: [] })
  })

  test('a peer at whose pods nothing was recorded gets no policy, unless it is named', () => {
    const generated = generate([observed()])
    expect(generated.policies.map(({ target }) => target.name)).toEqual(['db'])
    expect(codesOf(generated)).toEqual(['generate.not-recorded'])
    const named = generate([observed()], { choice: { namespace: 'shop', name: 'web' } })
    expect(named.policies.map(({ target }) => target.name)).toEqual(['web'])
    expect(codesOf(named)).toEqual(['generate.only-peers-told'])
  })
})

describe('selectors', () => {
  test('pods of another workload with the same labels are told, and what was seen of them is in the policy', () => {
    const canary = {
      name: 'db-canary-0',
      uid: 'canary',
      address: '10.244.1.31',
      workload: { kind: 'StatefulSet', name: 'db-canary' },
      labels: { app: 'db', track: 'canary' },
    }
    const flows = [observed(), observed({ pod: canary, port: 3307 })]
    const choice = { namespace: 'shop', name: 'db' }
    const { spec, comments } = policyOf(flows, { choice })
    expect(comments).toEqual([
      'its selector takes in the pods of StatefulSet db-canary too, which have the same labels',
    ])
    expect(spec.ingress).toEqual([
      { from: [{ podSelector: { matchLabels: { app: 'web' } } }], ports: [tcp(3306), tcp(3307)] },
    ])
    expect(codesOf(generate(flows, { choice }))).toContain('generate.selects-others')
  })

  test('the workload’s own selector goes before the labels of its pods', () => {
    const workload = {
      kind: 'StatefulSet',
      namespace: 'shop',
      name: 'db',
      labels: { app: 'db', tier: 'data' },
      isHostNetwork: false,
      ports: [],
    }
    const selector = {
      matchLabels: { app: 'db', 'controller-uid': 'x' },
      matchExpressions: [{ key: 'tier', operator: 'Exists', values: [] }],
    } as const
    const { spec } = policyOf([observed({ pod: { labels: { app: 'db', tier: 'data' } } })], {
      known: directory({ workloads: [{ ...workload, selector }] }),
    })
    expect(spec.podSelector).toEqual({
      matchLabels: { app: 'db' },
      matchExpressions: [{ key: 'tier', operator: 'Exists' }],
    })
  })

  test('of pods with different labels those count that all have', () => {
    const { spec } = policyOf([
      observed({ pod: { labels: { app: 'db', version: '1' } } }),
      observed({ pod: { uid: 'two', name: 'db-1', labels: { app: 'db', version: '2' } } }),
    ])
    expect(spec.podSelector).toEqual({ matchLabels: { app: 'db' } })
  })

  test('without a label that stays there is no policy, as it would hold for the whole namespace', () => {
    const generated = generate([observed({ pod: { labels: { 'pod-template-hash': 'x' } } })])
    expect(generated.policies).toEqual([])
    expect(codesOf(generated)).toContain('generate.no-labels')
  })

  test('a bare pod has a policy of its own', () => {
    const [policy] = generate([observed({ pod: { workload: null } })]).policies
    expect(policy).toMatchObject({ name: 'db-0-pod', target: { kind: 'Pod', name: 'db-0' } })
  })

  test('a Service that selects one replica by its name becomes the labels that stay', () => {
    const replica = knownPod({
      name: 'cache-0',
      uid: 'cache-0',
      labels: { app: 'cache', 'statefulset.kubernetes.io/pod-name': 'cache-0' },
    })
    const known = directory({
      pods: [replica],
      services: [knownService({ selector: { 'statefulset.kubernetes.io/pod-name': 'cache-0' } })],
    })
    const flow = observed({
      direction: 'EGRESS',
      peerAddress: '10.96.1.20',
      peer: { kind: 'service', uid: null, name: 'web' },
    })
    expect(policyOf([flow], { known }).spec.egress).toEqual([
      { to: [{ podSelector: { matchLabels: { app: 'cache' } } }], ports: [tcp(8080)] },
    ])
  })
})

describe('the proof', () => {
  const prove = (texts: readonly string[]) => {
    const gathering = gatherFlows(startGathering(directory()), [observed()])
    return provePolicies(texts, {
      gathering,
      surroundings: surroundingsOf(observedIndex(gathering), 'networkpolicy'),
      kind: 'networkpolicy',
    })
  }
  const closed =
    'apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: { name: db, namespace: shop }\nspec: { podSelector: {}, policyTypes: [Ingress] }\n'

  test('names what a policy would deny of the flows', () => {
    expect(prove([closed])).toMatchObject({
      connections: 1,
      allowed: 0,
      faults: [
        'NetworkPolicy shop/db would deny shop/Deployment/web to shop/StatefulSet/db 3306/TCP, which was seen to pass',
      ],
    })
  })

  test('names what an API server would refuse', () => {
    const [first] = prove([closed.replace('[Ingress]', '[Sideways]')]).faults
    expect(first).toBeDefined()
  })

  test('a connection of pods without known labels is unknown, and no fault', () => {
    const gathering = gatherFlows(startGathering(directory()), [observed({ pod: { labels: null } })])
    const proof = provePolicies([closed], {
      gathering,
      surroundings: surroundingsOf(observedIndex(gathering), 'networkpolicy'),
      kind: 'networkpolicy',
    })
    expect(proof).toMatchObject({ connections: 1, unknown: 1, faults: [] })
  })
})

import { describe, expect, test } from 'vitest'
import { both, directory, generate, knownPod, knownService, observed, policyOf } from './support/observed'

const tcp = (port: number): object => ({ protocol: 'TCP', port })
const codesOf = (generated: ReturnType<typeof generate>): readonly string[] =>
  generated.findings.map(({ code }) => code)

describe('nobody else is let in', () => {
  const evil = knownPod({
    name: 'evil-1',
    uid: 'evil',
    labels: { app: 'web', tier: 'evil' },
    addresses: ['10.244.1.66'],
    workload: { kind: 'Deployment', name: 'evil' },
  })
  const ofEvil = observed({
    peer: { name: 'evil-1', uid: 'evil', labels: evil.labels, workload: evil.workload },
    peerAddress: '10.244.1.66',
  })

  test.each(both)('a workload with all labels of a peer and one more is kept out by that one (%s)', (kind) => {
    const known = directory({ pods: [evil] })
    const { spec } = policyOf([observed()], { kind, known })
    expect(JSON.stringify(spec.ingress)).toContain(
      kind === 'networkpolicy'
        ? '{"key":"tier","operator":"DoesNotExist"}'
        : '{"key":"k8s:tier","operator":"DoesNotExist"}',
    )
    expect(codesOf(generate([observed()], { kind, known }))).not.toContain('generate.lets-others')
  })

  test('and let in where it was seen', () => {
    const { spec } = policyOf([observed(), ofEvil], {})
    expect(spec.ingress).toEqual([
      {
        from: [
          {
            podSelector: {
              matchLabels: { app: 'web' },
              matchExpressions: [{ key: 'tier', operator: 'DoesNotExist' }],
            },
          },
        ],
        ports: [tcp(3306)],
      },
      { from: [{ podSelector: { matchLabels: { app: 'web', tier: 'evil' } } }], ports: [tcp(3306)] },
    ])
  })

  const twin = knownPod({ ...evil, labels: { app: 'web' } })

  test.each(both)('one that no label tells apart is told, at the rule and as a finding (%s)', (kind) => {
    const known = directory({ pods: [twin] })
    expect(policyOf([observed()], { kind, known }).comments).toEqual([
      'no label tells the pods of Deployment shop/evil from those that were seen: the rule is theirs too',
    ])
    expect(codesOf(generate([observed()], { kind, known }))).toContain('generate.lets-others')
  })

  test('unless it was seen at the same ports', () => {
    const seen = observed({
      peer: { name: 'evil-1', uid: 'evil', labels: twin.labels, workload: twin.workload },
      peerAddress: '10.244.1.66',
    })
    expect(policyOf([observed(), seen]).comments).toEqual([])
    expect(policyOf([observed(), { ...seen, ownPort: 3307 }]).comments).toEqual([
      'no label tells the pods of Deployment shop/evil and Deployment shop/web from those that were seen: the rule is theirs too',
    ])
  })

  test('a key that some pods of the peer’s own workload have keeps nobody out', () => {
    const own = knownPod({ name: 'web-2', uid: 'web-2', labels: { app: 'web', tier: 'front' } })
    const { spec, comments } = policyOf([observed()], { known: directory({ pods: [evil, own] }) })
    expect(JSON.stringify(spec)).not.toContain('DoesNotExist')
    expect(comments).toHaveLength(1)
  })

  test('a Service means whoever its selector takes in', () => {
    const known = directory({ pods: [evil, knownPod()], services: [knownService()] })
    const flow = observed({
      direction: 'EGRESS',
      peerAddress: '10.96.1.20',
      peer: { kind: 'service', uid: null, name: 'web' },
    })
    const { spec, comments } = policyOf([flow], { known })
    expect(spec.egress).toEqual([{ to: [{ podSelector: { matchLabels: { app: 'web' } } }], ports: [tcp(8080)] }])
    expect(comments).toEqual([])
  })
})

describe('labels of a release', () => {
  const release = { 'app.kubernetes.io/version': '1.2', 'helm.sh/chart': 'web-1.2', 'rollouts-pod-template-hash': 'h' }

  test.each(both)('are in no selector, as the next release has others (%s)', (kind) => {
    const flow = observed({ pod: { labels: { app: 'db', ...release } }, peer: { labels: { app: 'web', ...release } } })
    const { text } = policyOf([flow], { kind })
    expect(Object.keys(release).filter((key) => text.includes(key))).toEqual([])
  })

  test('but where they alone keep another workload out', () => {
    const canary = knownPod({
      name: 'canary-1',
      uid: 'canary',
      labels: { app: 'web', 'app.kubernetes.io/version': '2' },
      workload: { kind: 'Deployment', name: 'canary' },
    })
    const peer = { labels: { app: 'web', 'app.kubernetes.io/version': '1' } }
    const { spec, comments } = policyOf([observed({ peer })], { known: directory({ pods: [canary] }) })
    expect(spec.ingress).toEqual([{ from: [{ podSelector: { matchLabels: peer.labels } }], ports: [tcp(3306)] }])
    expect(comments).toEqual([])
  })

  test('and where there are no others', () => {
    const peer = { labels: { 'helm.sh/chart': 'web-1.2' } }
    expect(policyOf([observed({ peer })]).spec.ingress).toEqual([
      { from: [{ podSelector: { matchLabels: peer.labels } }], ports: [tcp(3306)] },
    ])
  })
})

describe('labels that Cilium makes no identity of', () => {
  const kind = 'ciliumnetworkpolicy'
  const hidden = { 'kubernetes.io/name': 'x' }

  test('are in none of its selectors', () => {
    const flow = observed({ pod: { labels: { app: 'db', ...hidden } }, peer: { labels: { app: 'web', ...hidden } } })
    expect(policyOf([flow], { kind }).text).not.toContain('kubernetes.io/name: x')
    expect(policyOf([flow]).text).toContain('kubernetes.io/name: x')
  })

  test('alone mean nobody: the peer is an address, which the proof cannot tell of', () => {
    const flows = [observed({ peer: { labels: hidden } })]
    expect(policyOf(flows, { kind }).comments).toEqual(['unattributed peer 10.244.1.11 at 2026-07-23T10:00:00'])
    expect(generate(flows, { kind }).proof).toMatchObject({ connections: 1, allowed: 0, unknown: 1 })
    expect(generate(flows).proof).toMatchObject({ connections: 1, allowed: 1, unknown: 0 })
  })

  test('alone are no policy', () => {
    const generated = generate([observed({ pod: { labels: hidden } })], { kind })
    expect(generated.policies).toEqual([])
    expect(codesOf(generated)).toContain('generate.no-labels')
  })

  test('of a Service’s selector: the labels of its pods stand for it', () => {
    const pod = knownPod({ labels: { app: 'web', ...hidden } })
    const service = knownService({ selector: hidden })
    const flow = observed({
      direction: 'EGRESS',
      peerAddress: '10.96.1.20',
      peer: { kind: 'service', uid: null, name: 'web' },
    })
    const { spec } = policyOf([flow], { kind, known: directory({ pods: [pod], services: [service] }) })
    expect(JSON.stringify(spec.egress)).toContain('"toEndpoints":[{"matchLabels":{"k8s:app":"web"}}]')
  })
})

describe('what no cluster can hold', () => {
  test.each([
    ['a label', { labels: { 'a b': 'c' } }],
    ['a value', { labels: { app: 'web\n# x' } }],
    ['a long value', { labels: { app: 'x'.repeat(64) } }],
    ['a namespace', { namespace: '../evil' }],
    ['no namespace', { namespace: '' }],
  ])('of a peer makes it an address: %s', (_, peer) => {
    for (const kind of both) {
      const flows = [observed({ peer })]
      expect(policyOf(flows, { kind }).comments).toEqual(['unattributed peer 10.244.1.11 at 2026-07-23T10:00:00'])
      expect(generate(flows, { kind }).proof.faults).toEqual([])
    }
  })

  test.each([
    ['a name', { workload: { kind: 'Deployment', name: 'Web_App!' } }],
    ['a kind', { workload: { kind: 'De ploy', name: 'web' } }],
    ['a namespace', { namespace: '../../evil' }],
    ['a label', { labels: { 'a b': 'c' } }],
  ])('of a workload is told, and the others get their policies: %s', (_, pod) => {
    const other = observed({
      pod: { name: 'api-1', uid: 'api', labels: { app: 'api' }, workload: { kind: 'Deployment', name: 'api' } },
    })
    const generated = generate([observed({ pod: { ...pod, uid: 'bad' } }), other])
    expect(generated.policies.map(({ target }) => target.name)).toEqual(['api'])
    expect(codesOf(generated)).toContain('generate.bad-name')
    expect(generated.proof.faults).toEqual([])
  })
})

describe('what was recorded and what is there', () => {
  test('the labels of the living count for the workload, not those of pods that are gone', () => {
    const gone = knownPod({
      name: 'db-9',
      uid: 'gone',
      labels: { team: 'a', app: 'old-db' },
      workload: { kind: 'StatefulSet', name: 'db' },
      isDead: true,
    })
    const now = knownPod({ ...gone, name: 'db-0', uid: 'uid-db-0', labels: { team: 'a', app: 'db' }, isDead: false })
    const { spec } = policyOf([observed({ pod: { labels: { team: 'a', app: 'db' } } })], {
      known: directory({ pods: [gone, now] }),
    })
    expect(spec.podSelector).toEqual({ matchLabels: { app: 'db', team: 'a' } })
  })

  test('a policy that holds for none of the recorded pods is told, as it proves nothing', () => {
    const now = knownPod({
      name: 'db-0',
      uid: 'new',
      labels: { app: 'mysql' },
      workload: { kind: 'StatefulSet', name: 'db' },
    })
    const known = directory({ pods: [now] })
    expect(codesOf(generate([observed()], { known }))).toContain('generate.selects-nobody')
    expect(codesOf(generate([observed()]))).not.toContain('generate.selects-nobody')
  })

  test('two policies never have one file', () => {
    const of = (namespace: string, name: string) =>
      observed({ pod: { namespace, uid: name, labels: { app: name }, workload: { kind: 'Deployment', name } } })
    const { policies } = generate([of('a-b', 'c'), of('a', 'b-c')])
    expect(policies.map(({ fileName }) => fileName)).toEqual([
      'a.b-c-deployment.networkpolicy.yaml',
      'a-b.c-deployment.networkpolicy.yaml',
    ])
  })

  test('what Cilium audited was let through, and is a rule; what nobody knows is none', () => {
    const { spec } = policyOf([observed({ decision: 'AUDIT' }), observed({ decision: 'FORWARDED', port: 9 })])
    expect(spec.ingress).toEqual([{ from: [{ podSelector: { matchLabels: { app: 'web' } } }], ports: [tcp(3306)] }])
  })
})

describe('what is behind a Service', () => {
  const told = (service: object, kind: 'networkpolicy' | 'ciliumnetworkpolicy' = 'networkpolicy') => {
    const flow = observed({
      direction: 'EGRESS',
      peerAddress: '10.96.1.20',
      peer: { kind: 'service', uid: null, name: 'web', labels: { app: 'web' } },
    })
    const api = observed({
      direction: 'EGRESS',
      peerAddress: '10.96.0.1',
      port: 443,
      peer: { kind: 'service', namespace: 'default', name: 'kubernetes', uid: null },
    })
    const services = [knownService(service)]
    const generated = generate([flow, api], { kind, known: directory({ services }) })
    const notes = generated.findings.filter(({ code }) => code === 'generate.service-untold')
    return { proof: generated.proof, names: notes.flatMap(({ message }) => message.match(/[\w-]+\/svc\/[\w-]+/g)) }
  }

  test('is told where it is not known, and proves nothing', () => {
    const both = ['default/svc/kubernetes', 'shop/svc/web']
    expect(told({ ports: [] })).toMatchObject({ names: both, proof: { connections: 2, allowed: 0, unknown: 2 } })
    expect(told({ selector: null })).toMatchObject({ names: both, proof: { allowed: 0, unknown: 2 } })
  })

  test('is known by its port and its selector, or by its endpoints; Cilium has a word for the API server', () => {
    expect(told({})).toMatchObject({ names: ['default/svc/kubernetes'], proof: { allowed: 1, unknown: 1 } })
    const endpoints = [{ address: '203.0.113.9', ports: [{ protocol: 'TCP', port: 8080 }] }]
    expect(told({ selector: null, endpoints })).toMatchObject({ names: ['default/svc/kubernetes'] })
    expect(told({}, 'ciliumnetworkpolicy')).toMatchObject({ names: [], proof: { allowed: 2, unknown: 0 } })
  })
})

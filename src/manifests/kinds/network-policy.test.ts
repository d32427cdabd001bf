/** NetworkPolicy as it is read: defaults, and every way in which the API server refuses one. */
import { describe, expect, test } from 'vitest'
import { buildFrom, type Raw } from '../support/raw-objects'

function read(spec: unknown, apiVersion = 'networking.k8s.io/v1') {
  const { cluster, findings } = buildFrom([
    { apiVersion, kind: 'NetworkPolicy', metadata: { name: 'p', namespace: 'shop' }, spec },
  ])
  return { policy: cluster.networkPolicies.get('shop/p'), findings }
}

const ingress = (rule: Raw): Raw => ({ podSelector: {}, ingress: [rule] })
const selector = (podSelector: unknown): Raw => ({ podSelector })

describe('defaults', () => {
  test('policyTypes is Ingress, and Egress when there are egress rules', () => {
    expect(read({ podSelector: {} }).policy).toMatchObject({ policyTypes: ['Ingress'], hasPolicyTypes: false })
    expect(read({ policyTypes: [], egress: [{}] }).policy).toMatchObject({ policyTypes: ['Ingress', 'Egress'] })
    expect(read({ policyTypes: ['Egress'] }).policy).toMatchObject({ policyTypes: ['Egress'], hasPolicyTypes: true })
  })

  test('without spec it selects every pod of the namespace', () => {
    const none = { matchLabels: {}, matchExpressions: [] }
    expect(read(undefined).policy).toMatchObject({
      podSelector: none,
      policyTypes: ['Ingress'],
      ingress: [],
      egress: [],
    })
  })

  test('a port has the protocol TCP, and every part knows its place', () => {
    const { policy, findings } = read(
      ingress({
        from: [{ podSelector: {} }, { ipBlock: { cidr: '10.0.0.0/8', except: ['10.1.0.0/16'] } }],
        ports: [{}, { protocol: 'UDP', port: 5, endPort: 9 }],
      }),
    )
    expect(findings.filter(({ severity }) => severity !== 'info')).toEqual([])
    expect(policy?.ingress[0]).toMatchObject({
      path: 'spec.ingress[0]',
      peers: [
        { kind: 'selectors', path: 'spec.ingress[0].from[0]' },
        { kind: 'ipBlock', path: 'spec.ingress[0].from[1]' },
      ],
      ports: [
        { path: 'spec.ingress[0].ports[0]', protocol: 'TCP', assumesProtocol: true },
        { path: 'spec.ingress[0].ports[1]', protocol: 'UDP', port: 5, endPort: 9 },
      ],
    })
  })
})

describe('what the API server refuses', () => {
  test.each<[string, unknown, string]>([
    [
      'In without values',
      selector({ matchExpressions: [{ key: 'a', operator: 'In' }] }),
      'spec.podSelector.matchExpressions[0].values',
    ],
    [
      'NotIn with an empty list',
      selector({ matchExpressions: [{ key: 'a', operator: 'NotIn', values: [] }] }),
      'spec.podSelector.matchExpressions[0].values',
    ],
    [
      'Exists with values',
      selector({ matchExpressions: [{ key: 'a', operator: 'Exists', values: ['x'] }] }),
      'spec.podSelector.matchExpressions[0].values',
    ],
    [
      'an operator nobody knows',
      selector({ matchExpressions: [{ key: 'a', operator: 'Gt', values: ['1'] }] }),
      'spec.podSelector.matchExpressions[0].operator',
    ],
    [
      'an operator in lower case',
      selector({ matchExpressions: [{ key: 'a', operator: 'in', values: ['1'] }] }),
      'spec.podSelector.matchExpressions[0].operator',
    ],
    ['no operator', selector({ matchExpressions: [{ key: 'a' }] }), 'spec.podSelector.matchExpressions[0].operator'],
    ['no key', selector({ matchExpressions: [{ operator: 'Exists' }] }), 'spec.podSelector.matchExpressions[0].key'],
    ['a bad key', selector({ matchLabels: { 'a b': 'x' } }), 'spec.podSelector.matchLabels.a b'],
    ['a bad value', selector({ matchLabels: { a: 'x y' } }), 'spec.podSelector.matchLabels.a'],
    [
      'a value in an expression that is too long',
      selector({ matchExpressions: [{ key: 'a', operator: 'In', values: ['x'.repeat(64)] }] }),
      'spec.podSelector.matchExpressions[0].values[0]',
    ],
    ['a peer with nothing', ingress({ from: [{}] }), 'spec.ingress[0].from[0]'],
    [
      'an ipBlock with a selector',
      ingress({ from: [{ ipBlock: { cidr: '10.0.0.0/8' }, podSelector: {} }] }),
      'spec.ingress[0].from[0]',
    ],
    ['an ipBlock without cidr', ingress({ from: [{ ipBlock: {} }] }), 'spec.ingress[0].from[0].ipBlock.cidr'],
    [
      'an address that is no range',
      ingress({ from: [{ ipBlock: { cidr: '10.0.0.1' } }] }),
      'spec.ingress[0].from[0].ipBlock.cidr',
    ],
    [
      'a range that is too long',
      ingress({ from: [{ ipBlock: { cidr: '10.0.0.0/33' } }] }),
      'spec.ingress[0].from[0].ipBlock.cidr',
    ],
    [
      'an exception outside',
      ingress({ from: [{ ipBlock: { cidr: '10.0.0.0/8', except: ['11.0.0.0/16'] } }] }),
      'spec.ingress[0].from[0].ipBlock.except[0]',
    ],
    [
      'an exception that is all',
      ingress({ from: [{ ipBlock: { cidr: '10.0.0.0/8', except: ['10.0.0.0/8'] } }] }),
      'spec.ingress[0].from[0].ipBlock.except[0]',
    ],
    [
      'an exception of the other family',
      ingress({ from: [{ ipBlock: { cidr: '10.0.0.0/8', except: ['fd00::/64'] } }] }),
      'spec.ingress[0].from[0].ipBlock.except[0]',
    ],
    ['a protocol in lower case', ingress({ ports: [{ protocol: 'tcp' }] }), 'spec.ingress[0].ports[0].protocol'],
    ['a protocol without ports', ingress({ ports: [{ protocol: 'ICMP' }] }), 'spec.ingress[0].ports[0].protocol'],
    ['port 0', ingress({ ports: [{ port: 0 }] }), 'spec.ingress[0].ports[0].port'],
    ['a number as text', ingress({ ports: [{ port: '80' }] }), 'spec.ingress[0].ports[0].port'],
    ['a name that is too long', ingress({ ports: [{ port: 'abcdefghijklmnop' }] }), 'spec.ingress[0].ports[0].port'],
    ['endPort below port', ingress({ ports: [{ port: 80, endPort: 79 }] }), 'spec.ingress[0].ports[0].endPort'],
    ['endPort without port', ingress({ ports: [{ endPort: 80 }] }), 'spec.ingress[0].ports[0].endPort'],
    ['endPort with a name', ingress({ ports: [{ port: 'http', endPort: 80 }] }), 'spec.ingress[0].ports[0].endPort'],
    ['endPort out of range', ingress({ ports: [{ port: 80, endPort: 65536 }] }), 'spec.ingress[0].ports[0].endPort'],
    ['a policyType in lower case', { policyTypes: ['ingress'] }, 'spec.policyTypes[0]'],
    ['three policyTypes', { policyTypes: ['Ingress', 'Egress', 'Ingress'] }, 'spec.policyTypes'],
  ])('%s', (_, spec, path) => {
    const { policy, findings } = read(spec)
    expect(policy).toBeUndefined()
    expect(findings).toContainEqual(
      expect.objectContaining({
        code: 'policy.refused',
        severity: 'error',
        path,
        object: { kind: 'NetworkPolicy', namespace: 'shop', name: 'p' },
        message: expect.stringMatching(/^the API server refuses this object: .*; it is left out$/),
        hint: expect.any(String),
      }),
    )
  })

  test('a value of the wrong type, which it cannot even decode', () => {
    const { policy, findings } = read({ podSelector: [], ingress: 'all' })
    expect(policy).toBeUndefined()
    expect(findings.map(({ code }) => code)).toEqual(['manifest.wrong-type', 'manifest.wrong-type', 'policy.refused'])
  })

  test('all that is wrong is told, not the first thing alone', () => {
    expect(read(ingress({ from: [{}], ports: [{ protocol: 'tcp' }] })).findings).toHaveLength(2)
  })

  test('a version that does not exist', () => {
    const { policy, findings } = read({ podSelector: {} }, 'networking.k8s.io/v2')
    expect(policy).toBeUndefined()
    expect(findings[0]).toMatchObject({
      code: 'policy.refused',
      path: 'apiVersion',
      hint: 'write apiVersion: networking.k8s.io/v1',
    })
    expect(read({ podSelector: {} }, 'extensions/v1beta1').policy).toBeUndefined()
  })
})

describe('what it accepts with a warning', () => {
  test.each([
    ['10.1.2.3/8', '10.0.0.0/8'],
    ['010.0.0.0/8', '10.0.0.0/8'],
    ['fd00::1/64', 'fd00::/64'],
    ['::ffff:10.0.0.0/104', '10.0.0.0/8'],
  ])('%s is read as %s', (cidr, range) => {
    const { policy, findings } = read(ingress({ from: [{ ipBlock: { cidr } }] }))
    expect(policy).toBeDefined()
    expect(findings[0]).toMatchObject({ code: 'policy.sloppy-range', severity: 'warning', hint: `write ${range}` })
  })

  test('a field that nobody knows is left out, and the policy kept', () => {
    const { policy, findings } = read({
      podSelector: {},
      Ingress: [],
      ingress: [{ from: [{ podSelector: {}, foo: 1 }] }],
    })
    expect(policy?.ingress).toHaveLength(1)
    expect(findings.map(({ code, path }) => `${code} ${path}`)).toEqual([
      'policy.unknown-field spec.Ingress',
      'policy.unknown-field spec.ingress[0].from[0].foo',
    ])
    expect(findings[0]?.hint).toBe('write ingress')
  })
})

describe('a namespace that is missing from the input', () => {
  const policy = (namespaceSelector: unknown): Raw => ({
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: 'p', namespace: 'shop' },
    spec: ingress({ from: [{ namespaceSelector }] }),
  })

  test('is told where a policy selects namespaces by labels, with what to add', () => {
    const { findings, cluster } = buildFrom([policy({ matchLabels: { team: 'a' } })])
    expect(findings).toContainEqual(
      expect.objectContaining({
        code: 'policy.namespace-missing',
        path: 'spec.ingress[0].from[0]',
        hint: 'add the output of kubectl get namespaces -o yaml',
      }),
    )
    expect(cluster.namespaces.get('shop')?.meta.labels).toEqual({ 'kubernetes.io/metadata.name': 'shop' })
  })

  test('is no matter where they are selected by name, or all of them', () => {
    const codes = (objects: readonly Raw[]) => buildFrom(objects).findings.map(({ code }) => code)
    expect(codes([policy({ matchLabels: { 'kubernetes.io/metadata.name': 'x' } })])).toEqual([])
    expect(codes([policy({})])).toEqual([])
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } }
    expect(codes([policy({ matchLabels: { team: 'a' } }), namespace])).toEqual([])
  })
})

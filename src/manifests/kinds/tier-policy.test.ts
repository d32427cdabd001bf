/** The cluster-wide policies as they are read, and every way in which their CRDs refuse one. */
import { describe, expect, test } from 'vitest'
import { buildFrom, type Raw } from '../support/raw-objects'

function read(
  kind: string,
  spec: Raw,
  { name = 'p', version = kind === 'ClusterNetworkPolicy' ? 'v1alpha2' : 'v1alpha1' } = {},
) {
  const { cluster, findings } = buildFrom([
    { apiVersion: `policy.networking.k8s.io/${version}`, kind, metadata: { name }, spec },
  ])
  return { policy: cluster.tierPolicies.get(`${kind} ${name}`), findings }
}

const subject = { namespaces: {} }
const from = [{ namespaces: {} }]
const admin = (rest: Raw): Raw => ({ priority: 5, subject, ...rest })
const rule = (rest: Raw): Raw => admin({ ingress: [{ action: 'Allow', from, ...rest }] })
const egress = (peer: Raw, rest: Raw = {}): Raw => admin({ egress: [{ action: 'Allow', to: [peer], ...rest }] })
const many = (count: number, item: unknown): readonly unknown[] => Array.from({ length: count }, () => item)

describe('what is read', () => {
  test('an AdminNetworkPolicy with its places', () => {
    const { policy, findings } = read(
      'AdminNetworkPolicy',
      rule({ name: 'r', ports: [{ portNumber: { port: 80 } }, { namedPort: 'http' }] }),
    )
    expect(findings).toEqual([])
    expect(policy).toMatchObject({
      tier: 'admin',
      priority: 5,
      ingress: [
        {
          path: 'spec.ingress[0]',
          name: 'r',
          action: 'allow',
          ports: [
            { kind: 'range', path: 'spec.ingress[0].ports[0]', protocol: 'TCP', range: { from: 80, to: 80 } },
            { kind: 'named', name: 'http' },
          ],
        },
      ],
    })
  })

  test('a baseline has no priority, and the name default', () => {
    const baseline = { subject, egress: [{ action: 'Deny', to: from }] }
    expect(read('BaselineAdminNetworkPolicy', baseline, { name: 'default' }).policy).toMatchObject({
      tier: 'baseline',
      priority: 0,
    })
    expect(read('BaselineAdminNetworkPolicy', baseline).findings[0]).toMatchObject({
      code: 'policy.refused',
      path: 'metadata.name',
    })
  })

  test('a ClusterNetworkPolicy takes pods without a namespaceSelector, as its version lets it', () => {
    const spec = {
      tier: 'Baseline',
      priority: 0,
      subject: { pods: { podSelector: {} } },
      ingress: [{ action: 'Accept', from }],
    }
    expect(read('ClusterNetworkPolicy', spec).policy).toMatchObject({
      tier: 'baseline',
      ingress: [{ action: 'allow' }],
    })
    expect(read('AdminNetworkPolicy', admin({ subject: { pods: { podSelector: {} } } })).policy).toBeUndefined()
  })

  test('ports of the first drafts of v1alpha2 are read, and told', () => {
    const spec = {
      tier: 'Admin',
      priority: 0,
      subject,
      ingress: [{ action: 'Deny', from, ports: [{ portNumber: { port: 80 } }] }],
    }
    const { policy, findings } = read('ClusterNetworkPolicy', spec)
    expect(policy?.ingress[0]?.ports).toHaveLength(1)
    expect(findings[0]).toMatchObject({
      code: 'policy.unknown-field',
      path: 'spec.ingress[0].ports',
      hint: 'write protocols',
    })
  })
})

describe('what the API server refuses', () => {
  test.each<[string, Raw, string]>([
    ['no priority', { subject }, 'spec.priority'],
    ['a priority below 0', admin({ priority: -1 }), 'spec.priority'],
    ['a priority above 1000', admin({ priority: 1001 }), 'spec.priority'],
    ['a priority as text', admin({ priority: '5' }), 'spec.priority'],
    ['no subject', { priority: 5 }, 'spec.subject'],
    ['an empty subject', admin({ subject: {} }), 'spec.subject'],
    [
      'two subjects',
      admin({ subject: { namespaces: {}, pods: { namespaceSelector: {}, podSelector: {} } } }),
      'spec.subject',
    ],
    ['101 rules', admin({ ingress: many(101, { action: 'Allow', from }) }), 'spec.ingress'],
    ['no action', admin({ ingress: [{ from }] }), 'spec.ingress[0].action'],
    ['the action of another kind', rule({ action: 'Accept' }), 'spec.ingress[0].action'],
    ['an action in lower case', rule({ action: 'allow' }), 'spec.ingress[0].action'],
    ['no peers', rule({ from: [] }), 'spec.ingress[0].from'],
    ['101 peers', rule({ from: many(101, { namespaces: {} }) }), 'spec.ingress[0].from'],
    ['a peer with nothing', rule({ from: [{}] }), 'spec.ingress[0].from[0]'],
    [
      'a peer with two things',
      rule({ from: [{ namespaces: {}, pods: { namespaceSelector: {}, podSelector: {} } }] }),
      'spec.ingress[0].from[0]',
    ],
    ['a name of 101 characters', rule({ name: 'x'.repeat(101) }), 'spec.ingress[0].name'],
    ['a port with nothing', rule({ ports: [{}] }), 'spec.ingress[0].ports[0]'],
    [
      'a port with two things',
      rule({ ports: [{ namedPort: 'a', portNumber: { port: 1 } }] }),
      'spec.ingress[0].ports[0]',
    ],
    ['port 0', rule({ ports: [{ portNumber: { port: 0 } }] }), 'spec.ingress[0].ports[0].portNumber.port'],
    [
      'a range that ends before it starts',
      rule({ ports: [{ portRange: { start: 9, end: 8 } }] }),
      'spec.ingress[0].ports[0].portRange.end',
    ],
    ['a range without end', rule({ ports: [{ portRange: { start: 9 } }] }), 'spec.ingress[0].ports[0].portRange.end'],
    ['no networks', egress({ networks: [] }), 'spec.egress[0].to[0].networks'],
    ['26 networks', egress({ networks: many(26, '10.0.0.0/8') }), 'spec.egress[0].to[0].networks'],
    ['a network that is none', egress({ networks: ['10.0.0.0'] }), 'spec.egress[0].to[0].networks[0]'],
    ['a name that is none', egress({ domainNames: ['example'] }), 'spec.egress[0].to[0].domainNames[0]'],
    ['a star inside a name', egress({ domainNames: ['a.*.com'] }), 'spec.egress[0].to[0].domainNames[0]'],
    [
      'networks with a named port',
      egress({ networks: ['10.0.0.0/8'] }, { ports: [{ namedPort: 'http' }] }),
      'spec.egress[0]',
    ],
  ])('%s', (_, spec, path) => {
    const { policy, findings } = read('AdminNetworkPolicy', spec)
    expect(policy).toBeUndefined()
    expect(findings.map((finding) => `${finding.path}`)).toContain(path)
    expect(findings.map(({ code }) => code)).toContain('policy.refused')
  })

  test.each<[string, Raw, string]>([
    ['no tier', { priority: 5, subject }, 'spec.tier'],
    ['the normal tier', { tier: 'NetworkPolicy', priority: 5, subject }, 'spec.tier'],
    ['26 rules', { tier: 'Admin', priority: 5, subject, ingress: many(26, { action: 'Deny', from }) }, 'spec.ingress'],
    [
      'no protocols in the list',
      { tier: 'Admin', priority: 5, subject, ingress: [{ action: 'Deny', from, protocols: [] }] },
      'spec.ingress[0].protocols',
    ],
    [
      'a protocol without port',
      { tier: 'Admin', priority: 5, subject, ingress: [{ action: 'Deny', from, protocols: [{ tcp: {} }] }] },
      'spec.ingress[0].protocols[0].tcp',
    ],
  ])('of ClusterNetworkPolicy: %s', (_, spec, path) => {
    const { policy, findings } = read('ClusterNetworkPolicy', spec)
    expect(policy).toBeUndefined()
    expect(findings.map((finding) => finding.path)).toContain(path)
  })

  test('the baseline knows no Pass', () => {
    const spec = { subject, ingress: [{ action: 'Pass', from }] }
    expect(read('BaselineAdminNetworkPolicy', spec, { name: 'default' }).policy).toBeUndefined()
  })

  test('a version that does not hold the kind', () => {
    expect(read('AdminNetworkPolicy', rule({}), { version: 'v1' }).findings[0]).toMatchObject({ path: 'apiVersion' })
  })
})

describe('what the CRD takes and no implementation can read', () => {
  const broken = { matchExpressions: [{ key: 'a', operator: 'In', values: [] }] }

  test('a subject makes the policy void', () => {
    const { policy, findings } = read('AdminNetworkPolicy', admin({ subject: { namespaces: broken } }))
    expect(policy).toBeUndefined()
    expect(findings.map(({ code }) => code)).toEqual(['policy.not-enforced'])
  })

  test('a peer makes its rule unknown', () => {
    const { policy, findings } = read('AdminNetworkPolicy', rule({ from: [{ namespaces: broken }] }))
    expect(policy?.ingress[0]?.peers[0]?.kind).toBe('unreadable')
    expect(findings.map(({ code }) => code)).toEqual(['policy.doubtful'])
  })

  test('a protocol in lower case matches nothing, and domainNames is for rules that allow', () => {
    const lower = read('AdminNetworkPolicy', rule({ ports: [{ portNumber: { protocol: 'tcp', port: 80 } }] }))
    expect(lower.policy?.ingress[0]?.ports).toEqual([])
    expect(lower.findings.map(({ code }) => code)).toEqual(['policy.doubtful'])
    const deny = read('AdminNetworkPolicy', egress({ domainNames: ['a.example.com'] }, { action: 'Deny' }))
    expect(deny.findings.map(({ code }) => code)).toEqual(['policy.doubtful'])
  })
})

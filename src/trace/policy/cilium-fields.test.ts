/** Fields of Cilium's kinds that no other case asks about, in every version. */
import { describe, expect, test } from 'vitest'
import { parseDnsCache } from '#compile/policy/cilium-dns-cache'
import type { CiliumOptions } from '#compile/policy/cilium-options'
import { ciliumVersions } from '#model/cilium-version'
import { ccnp, cnp } from '../../../test/policy/ask-cilium'
import { ask, client, expectAtB, fromClient, server, tcp } from '../../../test/policy/cilium-cases'
import { networkPolicy, type Raw } from '../../../test/policy/policy-objects'

/** Egress of A in every version. */
function atA(
  element: Raw,
  rows: readonly (readonly [string, string, string])[],
  options: CiliumOptions & { readonly more?: readonly Raw[] } = {},
): void {
  const { more = [], ...rest } = options
  for (const version of rest.version === undefined ? ciliumVersions : [rest.version]) {
    const asked = ask([...more, cnp('business/p', { ...client, egress: [element] })], { ...rest, version })
    expect(
      rows.map(([target, connection]) => [target, connection, asked.at('egress', 'A', target, connection)]),
    ).toEqual(rows)
  }
}

describe('subjects and sections', () => {
  test('C20: a CiliumNetworkPolicy selects endpoints of its namespace alone', () => {
    for (const version of ciliumVersions) {
      const asked = ask([cnp('other/p', { endpointSelector: {}, ingress: [{}] })], { version })
      expect(asked.at('ingress', 'A', 'D', 'TCP 80')).toBe('133')
      expect(asked.at('ingress', 'A', 'B', 'TCP 80')).toBe('allowed')
    }
  })

  test('C21: another namespace in its endpointSelector is overwritten', () => {
    const labels = { app: 'server', 'k8s:io.kubernetes.pod.namespace': 'other' }
    expectAtB(
      [cnp('business/p', { endpointSelector: { matchLabels: labels }, ingress: [{}] })],
      [['A', 'TCP 80', '133']],
    )
  })

  test('C22: egressDeny denies what egress allows', () => {
    for (const version of ciliumVersions) {
      const spec = { ...client, egress: [{ toEntities: ['all'] }], egressDeny: [{ toEntities: ['world'] }] }
      const asked = ask([cnp('business/p', spec)], { version })
      expect(asked.at('egress', 'A', '8.8.8.8', 'TCP 80')).toBe('181')
      expect(asked.at('egress', 'A', 'B', 'TCP 80')).toBe('allowed')
    }
  })

  test('C23: description, labels and log change no answer', () => {
    const spec = {
      ...server,
      description: 'd',
      labels: [{ key: 'k', value: 'v', source: 's' }],
      log: { value: 'l' },
      ingress: [fromClient],
    }
    expectAtB(
      [cnp('business/p', spec)],
      [
        ['A', 'TCP 80', 'allowed'],
        ['C', 'TCP 80', '133'],
      ],
    )
    expect(ask([cnp('business/p', spec)]).findings.filter(({ code }) => code.startsWith('policy.'))).toEqual([])
  })

  test('C24: a clusterwide policy selects by the namespace’s label', () => {
    const labels = { 'k8s:io.cilium.k8s.namespace.labels.team': 'red', app: 'server' }
    expectAtB([ccnp('p', { endpointSelector: { matchLabels: labels }, ingress: [{}] })], [['A', 'TCP 80', '133']])
  })
})

describe('peers', () => {
  test.each([
    ['all', ['B', '8.8.8.8', 'node-b', 'health']],
    ['world', ['8.8.8.8']],
    ['cluster', ['B', 'node-b', 'health']],
    ['host', []],
    ['init', []],
    ['ingress', []],
    ['unmanaged', []],
    ['remote-node', ['node-b']],
    ['health', ['health']],
    ['none', []],
    ['kube-apiserver', []],
  ])('C25: the entity %s', (entity, expected) => {
    for (const version of ciliumVersions) {
      const asked = ask([cnp('business/p', { ...client, egress: [{ toEntities: [entity] }] })], { version })
      const found = ['B', '8.8.8.8', 'node-b', 'health'].filter(
        (name) => asked.at('egress', 'A', name, 'TCP 80') === 'allowed',
      )
      expect([version, found]).toEqual([version, expected])
    }
  })

  test('C26: toServices by the labels of Services', () => {
    const service = {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { namespace: 'business', name: 'svc', labels: { tier: 'front' } },
      spec: { clusterIP: '10.96.0.50', selector: { app: 'server' }, ports: [{ port: 80 }] },
    }
    const element = { toServices: [{ k8sServiceSelector: { selector: { matchLabels: { tier: 'front' } } } }] }
    for (const version of ['1.17', '1.18', '1.19'] as const) {
      atA(
        element,
        [
          ['B', 'TCP 80', 'allowed'],
          ['D', 'TCP 80', '133'],
        ],
        { version, more: [service] },
      )
    }
    atA(element, [['B', 'TCP 80', '133']], { version: '1.16', more: [service] })
  })

  const dnsCache = parseDnsCache({
    'a.example.com': ['203.0.113.1'],
    'b.a.example.com.': ['203.0.113.2'],
    'example.com': ['203.0.113.3'],
  }).cache

  test('C27: in matchPattern * stands for one label', () => {
    const rows = [
      ['203.0.113.1', 'TCP 1', 'allowed'],
      ['203.0.113.2', 'TCP 1', '133'],
      ['203.0.113.3', 'TCP 1', '133'],
    ] as const
    atA({ toFQDNs: [{ matchPattern: '*.example.com' }] }, rows, { dnsCache })
    atA(
      { toFQDNs: [{ matchPattern: '*' }] },
      [
        ['203.0.113.2', 'TCP 1', 'allowed'],
        ['203.0.113.9', 'TCP 1', '133'],
      ],
      { dnsCache },
    )
  })

  test('C28: **. in front stands for several labels from 1.19 on, and for one before', () => {
    const element = { toFQDNs: [{ matchPattern: '**.example.com' }] }
    for (const version of ['1.16', '1.17', '1.18'] as const)
      atA(
        element,
        [
          ['203.0.113.2', 'TCP 1', '133'],
          ['203.0.113.1', 'TCP 1', 'allowed'],
        ],
        { dnsCache, version },
      )
    atA(
      element,
      [
        ['203.0.113.2', 'TCP 1', 'allowed'],
        ['203.0.113.3', 'TCP 1', '133'],
      ],
      { dnsCache, version: '1.19' },
    )
  })

  test('C29: the except of an ipBlock is not allowed', () => {
    const spec = {
      podSelector: {},
      ingress: [{ from: [{ ipBlock: { cidr: '203.0.0.0/8', except: ['203.0.113.0/24'] } }] }],
    }
    expectAtB(
      [networkPolicy('business/np', spec)],
      [
        ['203.1.1.1', 'TCP 80', 'allowed'],
        ['203.0.113.1', 'TCP 80', '133'],
      ],
    )
  })
})

describe('ports and what follows', () => {
  test('C30: SCTP is a protocol as others are, and a rule for TCP does not allow it', () => {
    const policy = cnp('business/p', {
      ...server,
      ingress: [{ toPorts: [{ ports: [{ port: '80', protocol: 'SCTP' }] }] }],
    })
    expectAtB(
      [policy],
      [
        ['A', 'SCTP 80', 'allowed'],
        ['A', 'TCP 80', '133'],
      ],
    )
  })

  test.each(['VRRP', 'IGMP'])('C31: %s has no ports', (protocol) => {
    const policy = cnp('business/p', { ...server, ingress: [{ toPorts: [{ ports: [{ port: '0', protocol }] }] }] })
    expectAtB(
      [policy],
      [
        ['A', protocol, 'allowed'],
        ['A', 'TCP 80', '133'],
      ],
    )
  })

  test.each<[string, Raw]>([
    ['http', { rules: { http: [{ path: '/x' }] } }],
    ['kafka', { rules: { kafka: [{ topic: 't' }] } }],
    ['l7proto', { rules: { l7proto: 'r2d2', l7: [{ cmd: 'READ' }] } }],
    ['serverNames', { serverNames: ['a.example.com'] }],
    ['terminatingTLS', { terminatingTLS: { secret: { name: 's' } } }],
    ['originatingTLS', { originatingTLS: { secret: { name: 's' } } }],
  ])('C32: %s redirects to the proxy, and what it judges is left to it', (_, more) => {
    for (const version of ciliumVersions) {
      const policy = cnp('business/p', { ...server, ingress: [{ ...fromClient, toPorts: [tcp('80', more)] }] })
      const { decision, because } = ask([policy], { version }).answer('ingress', 'A', 'B', 'TCP 80')
      expect([decision, because.map(({ code }) => code)]).toEqual([
        'allowed',
        ['cilium.rule-allows', 'cilium.redirected'],
      ])
    }
  })

  test('C33: dns rules and listeners redirect what is sent', () => {
    const dns = { toPorts: [{ ports: [{ port: '53' }], rules: { dns: [{ matchPattern: '*' }] } }] }
    const listener = { toPorts: [tcp('80', { listener: { name: 'l', envoyConfig: { name: 'c' } } })] }
    for (const version of ciliumVersions) {
      const asked = ask([cnp('business/p', { ...client, egress: [dns, listener] })], { version })
      for (const connection of ['UDP 53', 'TCP 53', 'TCP 80']) {
        expect(asked.answer('egress', 'A', 'B', connection).because.map(({ code }) => code)).toContain(
          'cilium.redirected',
        )
      }
    }
  })

  test('C34: an empty list of http rules asks nothing of the proxy', () => {
    const policy = cnp('business/p', {
      ...server,
      ingress: [{ ...fromClient, toPorts: [tcp('80', { rules: { http: [] } })] }],
    })
    expect(
      ask([policy])
        .answer('ingress', 'A', 'B', 'TCP 80')
        .because.map(({ code }) => code),
    ).toEqual(['cilium.rule-allows'])
  })

  test('C35: ports of a NetworkPolicy: a number, a range, a name, a protocol without port', () => {
    const at = (port: Raw): readonly Raw[] => [
      networkPolicy('business/np', { podSelector: {}, ingress: [{ ports: [port] }] }),
    ]
    expectAtB(at({ port: 80 }), [
      ['A', 'TCP 80', 'allowed'],
      ['A', 'UDP 80', '133'],
    ])
    expectAtB(at({ port: 80, endPort: 90 }), [
      ['A', 'TCP 90', 'allowed'],
      ['A', 'TCP 91', '133'],
    ])
    expectAtB(at({ port: 'web' }), [
      ['A', 'TCP 8080', 'allowed'],
      ['A', 'TCP 80', '133'],
    ])
    expectAtB(at({ protocol: 'UDP' }), [
      ['A', 'UDP 1', 'allowed'],
      ['A', 'TCP 1', '133'],
    ])
  })

  test('C36: authentication disabled takes back what a broader rule of the peer demands', () => {
    const required = { ...fromClient, authentication: { mode: 'required' } }
    const disabled = { ...fromClient, toPorts: [tcp('80')], authentication: { mode: 'disabled' } }
    const rows = [
      ['A', 'TCP 80', 'allowed'],
      ['A', 'TCP 81', '189'],
    ] as const
    expectAtB([cnp('business/p', { ...server, ingress: [required, disabled] })], rows, { isAuthenticated: false })
  })

  test('C37: in 1.16 an allowed range hides a denied port in it, and the answer says so', () => {
    const range = { ports: [{ port: '20', endPort: 25, protocol: 'TCP' }] }
    const spec = { ...server, ingress: [{ ...fromClient, toPorts: [range] }], ingressDeny: [{ toPorts: [tcp('22')] }] }
    const answer = ask([cnp('business/p', spec)], { version: '1.16' }).answer('ingress', 'A', 'B', 'TCP 22')
    expect([answer.decision, answer.because.map(({ code }) => code)]).toEqual([
      'allowed',
      ['cilium.rule-allows', 'cilium.lookup-surprise'],
    ])
    for (const version of ['1.17', '1.18', '1.19'] as const) {
      expect(ask([cnp('business/p', spec)], { version }).at('ingress', 'A', 'B', 'TCP 22')).toBe('181')
    }
  })
})

import { describe, expect, test } from 'vitest'
import { readFlowsFile } from '#flows/read-flows-file'
import { both, commentsIn, directory, generate, knownPod, knownService, observed, policyOf } from './support/observed'

const selectorPeer = (app: string): object => ({ podSelector: { matchLabels: { app } } })
const block = (cidr: string): object => ({ ipBlock: { cidr } })
const tcp = (port: number | string): object => ({ protocol: 'TCP', port })

/** Two rows of the compatible shape, whose peer was told by nobody: their address is held by a pod that started later. */
const recycled = readFlowsFile(
  ['2026-05-21T08:00:00', '2026-07-23T10:00:00']
    .map((time_stamp) =>
      JSON.stringify({
        pod_name: 'mysql-0',
        pod_namespace: 'media',
        pod_ip: '10.244.12.10',
        pod_port: '3306',
        ip_protocol: 'TCP',
        traffic_type: 'INGRESS',
        traffic_in_out_ip: '10.244.12.199',
        traffic_in_out_port: '0',
        decision: 'ALLOW',
        time_stamp,
        peer_kind: null,
      }),
    )
    .join('\n'),
).value
const mysql = knownPod({
  namespace: 'media',
  name: 'mysql-0',
  uid: null,
  labels: { app: 'mysql' },
  addresses: ['10.244.12.10'],
  workload: { kind: 'StatefulSet', name: 'mysql' },
})
const autobrr = knownPod({
  namespace: 'media',
  name: 'autobrr-1',
  labels: { app: 'autobrr' },
  addresses: ['10.244.12.199'],
  startedAt: Date.UTC(2026, 7, 4, 9, 12, 41) * 1000,
})

describe('who a peer was', () => {
  test.each(both)(
    '44: the holder of a recycled address came later: one rule by address, with a comment (%s)',
    (kind) => {
      const { text, spec, comments } = policyOf(recycled, {
        kind,
        of: 'mysql',
        known: directory({ pods: [mysql, autobrr] }),
      })
      expect(comments).toEqual(['unattributed peer 10.244.12.199 at 2026-07-23T10:00:00'])
      expect(text).not.toContain('autobrr')
      if (kind === 'networkpolicy') {
        expect(spec.ingress).toEqual([{ from: [block('10.244.12.199/32')], ports: [tcp(3306)] }])
      } else {
        expect(spec.ingress).toEqual([
          { fromCIDR: ['10.244.12.199/32'], toPorts: [{ ports: [{ port: '3306', protocol: 'TCP' }] }] },
        ])
      }
    },
  )

  test('45: a stored pod counts, whoever has its address now', () => {
    const today = knownPod({ name: 'other-1', uid: 'uid-other', labels: { app: 'other' } })
    const { spec } = policyOf([observed()], { known: directory({ pods: [today] }) })
    expect(spec.ingress).toEqual([{ from: [selectorPeer('web')], ports: [tcp(3306)] }])
  })

  test('46: a stored pod whose record is gone, without kept labels, is an address, and not the new holder', () => {
    const today = knownPod({ name: 'other-1', uid: 'uid-other', labels: { app: 'other' } })
    const flow = observed({ peer: { labels: null } })
    const { spec, comments } = policyOf([flow], { known: directory({ pods: [today] }) })
    expect(spec.ingress).toEqual([{ from: [block('10.244.1.11/32')], ports: [tcp(3306)] }])
    expect(comments).toEqual(['unattributed peer 10.244.1.11 at 2026-07-23T10:00:00'])
  })

  test('46: with its labels kept it is still who it was', () => {
    const { spec } = policyOf([observed({ peer: { labels: { app: 'gone', 'pod-template-hash': 'x' } } })])
    expect(spec.ingress).toEqual([{ from: [selectorPeer('gone')], ports: [tcp(3306)] }])
  })

  test('20: a pod that restarted under its name with another uid does not lend its labels', () => {
    const restarted = knownPod({ uid: 'uid-web-1-again', labels: { app: 'changed' } })
    const { spec } = policyOf([observed({ peer: { labels: null } })], { known: directory({ pods: [restarted] }) })
    expect(spec.ingress).toEqual([{ from: [block('10.244.1.11/32')], ports: [tcp(3306)] }])
  })

  test('47: a stored Service that is another one at that address now is an address with a comment', () => {
    const flow = observed({
      direction: 'EGRESS',
      peerAddress: '10.96.1.20',
      peer: { kind: 'service', name: 'web', uid: null },
    })
    const renamed = knownService({ name: 'web-new' })
    const { spec, comments } = policyOf([flow], { known: directory({ services: [renamed] }) })
    expect(spec.egress).toEqual([{ to: [block('10.96.1.20/32')], ports: [tcp(80)] }])
    expect(comments).toEqual(['unattributed peer 10.96.1.20 at 2026-07-23T10:00:00'])
  })

  test('47: a Service of the same name with another uid is another Service', () => {
    const flow = observed({
      direction: 'EGRESS',
      peerAddress: '10.96.1.20',
      peer: { kind: 'service', name: 'web', uid: 'one' },
    })
    const { spec } = policyOf([flow], { known: directory({ services: [knownService({ uid: 'two' })] }) })
    expect(spec.egress).toEqual([{ to: [block('10.96.1.20/32')], ports: [tcp(80)] }])
  })

  test('48: an address that nobody ever held has no comment', () => {
    const { spec, comments } = policyOf([observed({ peerAddress: '203.0.113.9', peer: null })])
    expect(spec.ingress).toEqual([{ from: [block('203.0.113.9/32')], ports: [tcp(3306)] }])
    expect(comments).toEqual([])
  })

  test('49: one address with several identities has a rule for each, in order', () => {
    const of = { peerAddress: '10.0.0.7' } as const
    const flows = [
      observed({
        ...of,
        peer: null,
        outcome: { kind: 'rejected', reason: 'started-after', nearest: { kind: 'pod', namespace: 'shop', name: 'x' } },
      }),
      observed({ ...of }),
      observed({
        ...of,
        peer: { kind: 'node', namespace: 'kube-system', name: 'proxy-1', workload: null, labels: null },
      }),
      observed({ ...of, peer: null }),
    ]
    const { spec, comments } = policyOf(flows)
    expect(spec.ingress).toEqual([
      { from: [block('10.0.0.7/32')], ports: [tcp(3306)] },
      { from: [block('10.0.0.7/32')], ports: [tcp(3306)] },
      { from: [selectorPeer('web')], ports: [tcp(3306)] },
      { from: [block('10.0.0.7/32')], ports: [tcp(3306)] },
    ])
    expect(comments).toEqual([
      'host-network peer kube-system/proxy-1 — podSelector cannot match host traffic',
      'unattributed peer 10.0.0.7 at 2026-07-23T10:00:00',
    ])
  })

  test('50: a peer of another namespace is one entry with both selectors', () => {
    const { spec } = policyOf([observed({ peer: { namespace: 'front' } })])
    expect(spec.ingress).toEqual([
      {
        from: [
          {
            namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'front' } },
            podSelector: { matchLabels: { app: 'web' } },
          },
        ],
        ports: [tcp(3306)],
      },
    ])
  })

  test('51: Cilium adds the namespace of another namespace alone, and every key has its source', () => {
    const flows = [
      observed({ peer: { namespace: 'front' } }),
      observed({ peer: { name: 'own-1', uid: 'own', labels: { app: 'own' } } }),
    ]
    const { spec } = policyOf(flows, { kind: 'ciliumnetworkpolicy' })
    const ports = [{ ports: [{ port: '3306', protocol: 'TCP' }] }]
    expect(spec.endpointSelector).toEqual({ matchLabels: { 'k8s:app': 'db' } })
    expect(spec.ingress).toEqual([
      {
        fromEndpoints: [{ matchLabels: { 'k8s:app': 'web', 'k8s:io.kubernetes.pod.namespace': 'front' } }],
        toPorts: ports,
      },
      { fromEndpoints: [{ matchLabels: { 'k8s:app': 'own' } }], toPorts: ports },
    ])
  })

  test('52: IPv6 is a /128, a mapped address a /32, one with a zone no rule', () => {
    const of = (peerAddress: string) => observed({ peerAddress, peer: null })
    const { spec } = policyOf([of('fd00::7'), of('::ffff:10.0.0.1'), of('fe80::1%eth0')])
    expect(spec.ingress).toEqual([
      { from: [block('10.0.0.1/32')], ports: [tcp(3306)] },
      { from: [block('fd00::7/128')], ports: [tcp(3306)] },
    ])
  })
})

describe('ports', () => {
  test('53: of an ingress row the own port counts, never the client’s', () => {
    const { spec, text } = policyOf([observed({ ownPort: 8080, peerPort: 51_000 })])
    expect(spec.ingress).toEqual([{ from: [selectorPeer('web')], ports: [tcp(8080)] }])
    expect(text).not.toContain('51000')
  })

  test('54: ports are unique and in order, by number and then by protocol, and what is no port is none', () => {
    const row = (port: string, ip_protocol: string): string =>
      JSON.stringify({
        pod_name: 'db-0',
        pod_namespace: 'shop',
        pod_port: port,
        ip_protocol,
        traffic_type: 'ingress',
        traffic_in_out_ip: '203.0.113.9',
        time_stamp: '2026-07-23T10:00:00',
      })
    const ports = [
      ['53', 'TCP'],
      ['53', 'UDP'],
      ['53', 'TCP'],
      ['443', 'TCP'],
      ['80', 'TCP'],
      ['80junk', 'TCP'],
      ['70000', 'TCP'],
    ] as const
    const { value, findings } = readFlowsFile(ports.map(([port, protocol]) => row(port, protocol)).join('\n'), 'rows')
    const known = directory({
      pods: [
        knownPod({ name: 'db-0', uid: null, labels: { app: 'db' }, workload: { kind: 'StatefulSet', name: 'db' } }),
      ],
    })
    const { spec } = policyOf(value, { known })
    expect(spec.ingress).toEqual([
      { from: [block('203.0.113.9/32')], ports: [tcp(53), { protocol: 'UDP', port: 53 }, tcp(80), tcp(443)] },
    ])
    expect(findings.filter(({ code }) => code === 'flows.no-port').map(({ origin }) => origin?.line)).toEqual([6, 7])
  })

  test.each(both)('55: traffic with itself alone, or none at all, is denied whole (%s)', (kind) => {
    const known = directory({
      pods: [knownPod({ name: 'db-0', labels: { app: 'db' }, workload: { kind: 'StatefulSet', name: 'db' } })],
    })
    const choice = { namespace: 'shop', name: 'db' }
    const itself = observed({ peerAddress: '10.244.1.30', peer: { name: 'db-0' } })
    for (const flows of [[itself], []]) {
      const { spec, comments } = policyOf(flows, { kind, known, choice })
      const expected =
        kind === 'networkpolicy'
          ? { podSelector: { matchLabels: { app: 'db' } }, policyTypes: ['Ingress', 'Egress'] }
          : {
              description: 'What was seen of StatefulSet shop/db',
              endpointSelector: { matchLabels: { 'k8s:app': 'db' } },
              enableDefaultDeny: { ingress: true, egress: true },
              ingress: [{}],
              egress: [{}],
            }
      expect(spec).toEqual(expected)
      expect(comments).toContain('nothing was seen that could be allowed: everything is denied')
    }
  })

  const toService = (port: number, protocol = 'TCP') =>
    observed({
      direction: 'EGRESS',
      protocol,
      peerAddress: '10.96.1.20',
      port,
      peer: { kind: 'service', uid: null, name: 'web' },
    })
  const behind = (targetPort: number | string, port = 80, protocol = 'TCP') =>
    directory({ services: [knownService({ ports: [{ protocol, port, targetPort, nodePort: 0 }] })] })

  test('56: a Service’s port becomes that of its pods', () => {
    const { spec } = policyOf([toService(80)], { known: behind(8080) })
    expect(spec.egress).toEqual([{ to: [selectorPeer('web')], ports: [tcp(8080)] }])
  })

  test.each(['metrics', '8080-tcp', 'on'])('56: a named port stays a name that YAML reads as one: %s', (name) => {
    for (const kind of both) {
      const { spec } = policyOf([toService(80)], { kind, known: behind(name) })
      const expected =
        kind === 'networkpolicy'
          ? [{ to: [selectorPeer('web')], ports: [tcp(name)] }]
          : [
              {
                toEndpoints: [{ matchLabels: { 'k8s:app': 'web' } }],
                toPorts: [{ ports: [{ port: name, protocol: 'TCP' }] }],
              },
            ]
      expect(spec.egress).toEqual(expected)
    }
  })

  test('56: a port that the Service lacks stays as it was seen, with a comment', () => {
    const { spec, comments } = policyOf([toService(6380)], { known: behind(8080) })
    expect(spec.egress).toEqual([{ to: [selectorPeer('web')], ports: [tcp(6380)] }])
    expect(comments).toEqual([
      'service shop/svc/web: port 6380/TCP could not be mapped to a targetPort; allowing the Service port as observed',
    ])
  })

  test('56: the DNS at another port than 53', () => {
    const { spec } = policyOf([toService(53, 'UDP')], { known: behind(5353, 53, 'UDP') })
    expect(spec.egress).toEqual([{ to: [selectorPeer('web')], ports: [{ protocol: 'UDP', port: 5353 }] }])
  })
})

describe('hosts', () => {
  const onHost = (name: string, nodeName: string, address: string) =>
    knownPod({
      name,
      uid: name,
      isHostNetwork: true,
      nodeName,
      addresses: [address],
      ports: [{ name: 'metrics', protocol: 'TCP', port: 9100 }],
    })
  const known = directory({
    services: [knownService({ ports: [{ protocol: 'TCP', port: 80, targetPort: 'metrics', nodePort: 0 }] })],
    pods: [onHost('b', 'worker-2', '172.18.0.4'), onHost('a', 'worker-1', '172.18.0.3')],
  })
  const toHosts = observed({
    direction: 'EGRESS',
    peerAddress: '10.96.1.20',
    peer: { kind: 'service', uid: null, name: 'web' },
  })

  test('57: a Service on host-network pods is the addresses of their nodes, in order, with one comment', () => {
    const { spec, comments, text } = policyOf([toHosts], { known })
    expect(spec.egress).toEqual([{ to: [block('172.18.0.3/32'), block('172.18.0.4/32')], ports: [tcp(9100)] }])
    expect(comments).toEqual([
      'host-network peer shop/svc/web on node worker-1,worker-2 — podSelector cannot match host traffic',
    ])
    expect(text).not.toContain('10.96.1.20')
    const cilium = policyOf([toHosts], { known, kind: 'ciliumnetworkpolicy' })
    expect(cilium.spec.egress).toEqual([
      { toEntities: ['host', 'remote-node'], toPorts: [{ ports: [{ port: '9100', protocol: 'TCP' }] }] },
    ])
  })

  test('58: two host-network peers with the same ports are one rule of entities, and two comments', () => {
    const peer = (name: string) =>
      ({ kind: 'node', namespace: 'monitoring', name, uid: name, workload: null, labels: null }) as const
    const flows = [observed({ peer: peer('exporter') }), observed({ peerAddress: '172.18.0.9', peer: peer('agent') })]
    const { spec, comments } = policyOf(flows, { kind: 'ciliumnetworkpolicy' })
    expect(spec.ingress).toEqual([
      { fromEntities: ['host', 'remote-node'], toPorts: [{ ports: [{ port: '3306', protocol: 'TCP' }] }] },
    ])
    expect(comments.map((line) => line.slice(0, 'host-network peer monitoring/exporter'.length).trim())).toEqual([
      'host-network peer monitoring/agent —',
      'host-network peer monitoring/exporter',
    ])
  })

  test.each(both)('59: a target on its node’s network has three lines of warning, and the same body (%s)', (kind) => {
    const pod = { isHostNetwork: true }
    const [host, plain] = [policyOf([observed({ pod })], { kind }), policyOf([observed()], { kind })]
    expect(host.comments.filter((line) => line.startsWith('WARNING'))).toHaveLength(3)
    expect(host.comments.join(' ')).toContain('CiliumClusterwideNetworkPolicy with a nodeSelector')
    expect(host.spec).toEqual(plain.spec)
  })
})

describe('workloads', () => {
  const some = [
    observed(),
    observed({ peer: { namespace: 'front' }, port: 3307 }),
    observed({ peerAddress: '203.0.113.9', peer: null }),
    observed({
      direction: 'EGRESS',
      protocol: 'UDP',
      port: 53,
      peer: { labels: { app: 'dns' }, namespace: 'kube-system', uid: 'dns' },
    }),
    observed({ peer: { labels: null }, peerAddress: '10.0.0.10', time: '2026-07-24T10:00:00' }),
    observed({ peer: { labels: null }, peerAddress: '10.0.0.9' }),
    observed({ peer: { kind: 'node', workload: null, labels: null }, peerAddress: '172.18.0.9' }),
    observed({ decision: 'DROP', port: 22 }),
  ]

  test.each(both)('60: every rotation of the rows, and their reversal, gives the same bytes (%s)', (kind) => {
    const [first, ...others] = [...some.keys(), -1].map((turn) => {
      const rows = turn < 0 ? some.toReversed() : [...some.slice(turn), ...some.slice(0, turn)]
      return generate(rows, { kind }).policies.map(({ text }) => text)
    })
    expect(others.filter((texts) => JSON.stringify(texts) !== JSON.stringify(first))).toEqual([])
  })

  test.each(both)('61: what was dropped is no rule, and is listed (%s)', (kind) => {
    const { spec, comments, text } = policyOf([observed(), observed({ decision: 'DROP', port: 22, hits: 4 })], { kind })
    expect(comments).toEqual([
      'not allowed when it was seen, and no reason for a rule: ingress from shop/Deployment/web 22/TCP, 4 times, last at 2026-07-23T10:00:00',
    ])
    expect(JSON.stringify(spec)).not.toContain('22')
    expect(text.indexOf('#')).toBe(0)
  })

  const passing = {
    'pod-template-hash': '6d5f8c7b94',
    'controller-revision-hash': 'db-7f',
    'controller-uid': 'c-1',
    'job-name': 'backup-1',
    'batch.kubernetes.io/job-name': 'backup-1',
    'batch.kubernetes.io/controller-uid': 'c-1',
    'statefulset.kubernetes.io/pod-name': 'db-0',
    'topology.kubernetes.io/zone': 'a',
    'topology.kubernetes.io/region': 'b',
  }

  test.each(both)('62: labels of one revision, replica or place are in no selector (%s)', (kind) => {
    const flow = observed({ pod: { labels: { app: 'db', ...passing } }, peer: { labels: { app: 'web', ...passing } } })
    const text = policyOf([flow], { kind }).text
    expect(Object.keys(passing).filter((key) => text.includes(key))).toEqual([])
    expect(text).toContain('app: web')
  })

  test('62: a peer with no other label is an address: an empty selector would take in the whole namespace', () => {
    const { spec } = policyOf([observed({ peer: { labels: passing } })])
    expect(spec.ingress).toEqual([{ from: [block('10.244.1.11/32')], ports: [tcp(3306)] }])
  })

  test('63: ten replicas are one policy, and one peer', () => {
    const replicas = Array.from({ length: 10 }, (_, number) =>
      observed({
        pod: { name: `db-${number}`, uid: `uid-db-${number}`, address: `10.244.1.${number + 100}` },
        peerAddress: `10.244.2.${number}`,
        peer: { name: `web-${number}`, uid: `uid-web-${number}` },
      }),
    )
    const { policies } = generate(replicas)
    expect(policies.map(({ name }) => name)).toEqual(['db-statefulset'])
    expect(policyOf(replicas).spec.ingress).toEqual([{ from: [selectorPeer('web')], ports: [tcp(3306)] }])
    expect(commentsIn(policies[0]?.text ?? '')).toEqual([])
  })
})

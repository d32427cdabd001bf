/** Policies as Cilium enforces them: cases P1 to P43. */
import { describe, expect, test } from 'vitest'
import { parseDnsCache } from '#compile/policy/cilium-dns-cache'
import type { Direction } from '#compile/policy/policy-rule'
import { ciliumVersions } from '#model/cilium-version'
import { askCilium, ccnp, cnp, exampleWorld } from '../../../test/policy/ask-cilium'
import { networkPolicy, type Raw } from '../../../test/policy/policy-objects'
import { asksPolicy } from './cilium-conntrack'

const server = { endpointSelector: { matchLabels: { app: 'server' } } }
const client = { endpointSelector: { matchLabels: { app: 'client' } } }
const fromClient = { fromEndpoints: [{ matchLabels: { app: 'client' } }] }
const tcp = (port: string, more: Raw = {}): Raw => ({ ports: [{ port, protocol: 'TCP' }], ...more })

const article = cnp('business/article', { ...server, ingress: [{ ...fromClient, toPorts: [tcp('8080')] }] })
const nothing = cnp('business/nothing', { ...server, ingress: [{}] })

function ask(policies: readonly Raw[], options = {}) {
  return askCilium([...exampleWorld, ...policies], options)
}

type Row = readonly [source: string, connection: string, expected: string]

/** Ingress of B. */
function expectAtB(policies: readonly Raw[], rows: readonly Row[], options = {}): void {
  const asked = ask(policies, options)
  const found = rows.map(
    ([source, connection]): Row => [source, connection, asked.at('ingress', source, 'B', connection)],
  )
  expect(found).toEqual(rows)
}

function isRefused(policy: Raw, options = {}): boolean {
  const { findings } = ask([policy], options)
  return findings.some(({ code }) => code === 'policy.refused' || code === 'policy.agent-refuses')
}

describe('enforcement', () => {
  test('P1: without policies all is allowed, by one key a direction', () => {
    const asked = ask([])
    expect(asked.at('ingress', 'D', 'B', 'TCP 80')).toBe('allowed')
    expect(asked.map('B')).toEqual(['Allow Egress 0 ANY', 'Allow Ingress 0 ANY', 'Allow Ingress 1 ANY'])
  })

  test('P2: the article’s policy', () => {
    const rows: readonly Row[] = [
      ['A', 'TCP 8080', 'allowed'],
      ['A', 'TCP 8081', '133'],
      ['C', 'TCP 8080', '133'],
      ['D', 'TCP 8080', '133'],
      ['world', 'TCP 8080', '133'],
      ['host', 'TCP 22', 'allowed'],
      ['node-a', 'TCP 22', 'allowed'],
    ]
    expectAtB([article], rows)
    expect(ask([article]).at('egress', 'B', '8.8.8.8', 'TCP 443')).toBe('allowed')
    expect(ask([article]).map('B')).toEqual([
      'Allow Egress 0 ANY',
      'Allow Ingress 1 ANY',
      'Allow Ingress 1001 8080/TCP',
    ])
  })

  test('P3: ingress: [{}] drops everything but the own host', () => {
    expectAtB(
      [nothing],
      [
        ['A', 'TCP 80', '133'],
        ['world', 'UDP 53', '133'],
        ['node-b', 'TCP 80', '133'],
        ['node-a', 'TCP 80', 'allowed'],
      ],
    )
  })

  test.each(ciliumVersions)('P4: ingress: [] is not enforced in %s', (version) => {
    expectAtB([cnp('business/p', { ...server, ingress: [] })], [['A', 'TCP 80', 'allowed']], { version })
  })

  test('P5: egress: [{}] drops what is sent, and leaves ingress open', () => {
    const asked = ask([cnp('business/p', { ...client, egress: [{}] })])
    expect(asked.at('egress', 'A', 'B', 'TCP 80')).toBe('133')
    expect(asked.at('ingress', 'B', 'A', 'TCP 80')).toBe('allowed')
  })

  test('P6: with enableDefaultDeny.ingress=false alone all is allowed', () => {
    const spec = {
      ...server,
      enableDefaultDeny: { ingress: false },
      ingress: [{ ...fromClient, toPorts: [tcp('8080')] }],
    }
    expectAtB(
      [cnp('business/p', spec)],
      [
        ['A', 'TCP 8081', 'allowed'],
        ['world', 'TCP 1', 'allowed'],
      ],
    )
  })

  test('P7: its denies still deny', () => {
    const spec = {
      ...server,
      enableDefaultDeny: { ingress: false },
      ingressDeny: [{ ...fromClient, toPorts: [tcp('8080')] }],
    }
    expectAtB(
      [cnp('business/p', spec)],
      [
        ['A', 'TCP 8080', '181'],
        ['A', 'TCP 8081', 'allowed'],
        ['C', 'TCP 8080', 'allowed'],
      ],
    )
  })

  test('P25: mode always drops both directions without a policy, and the host still reaches pods', () => {
    const asked = ask([], { enforcement: 'always' })
    expect(asked.at('ingress', 'A', 'B', 'TCP 80')).toBe('133')
    expect(asked.at('egress', 'A', 'B', 'TCP 80')).toBe('133')
    expect(asked.at('ingress', 'node-a', 'B', 'TCP 80')).toBe('allowed')
  })

  test('P26: mode never allows what P3 drops', () => {
    expectAtB([nothing], [['A', 'TCP 80', 'allowed']], { enforcement: 'never' })
  })

  test('P27: audit mode forwards what P3 drops, and says so', () => {
    const answer = ask([nothing], { isAudit: true }).answer('ingress', 'A', 'B', 'TCP 80')
    expect(answer.decision).toBe('allowed')
    expect(answer.because[0].sentence).toContain('AUDIT')
  })

  test('allow-localhost=policy drops what the host sends', () => {
    expectAtB([nothing], [['node-a', 'TCP 80', '133']], { allowsLocalhost: false })
  })

  test('settings are read from cilium-config', () => {
    const config = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { namespace: 'kube-system', name: 'cilium-config' },
      data: { 'enable-policy': 'always' },
    }
    expectAtB([config], [['A', 'TCP 80', '133']])
  })
})

describe('denies, ports and redirections', () => {
  const anyClient = cnp('business/allow', { ...server, ingress: [fromClient] })
  const deny22 = cnp('business/deny', { ...server, ingressDeny: [{ toPorts: [tcp('22')] }] })

  test.each(ciliumVersions)('P8: a deny of a port for anybody beats an allow of a peer in %s', (version) => {
    expectAtB(
      [anyClient, deny22],
      [
        ['A', 'TCP 22', '181'],
        ['A', 'TCP 23', 'allowed'],
      ],
      { version },
    )
  })

  test.each(ciliumVersions)('P9: a deny of a peer beats an allow of a port for anybody in %s', (version) => {
    const policies = [
      cnp('business/allow', { ...server, ingress: [{ toPorts: [tcp('8080')] }] }),
      cnp('business/deny', { ...server, ingressDeny: [fromClient] }),
    ]
    expectAtB(
      policies,
      [
        ['A', 'TCP 8080', '181'],
        ['C', 'TCP 8080', 'allowed'],
      ],
      { version },
    )
  })

  test('P10: a denied range keeps the allow of a port in it out of the map', () => {
    const range = { ports: [{ port: '64', endPort: 127, protocol: 'TCP' }] }
    const asked = ask([
      cnp('business/deny', { ...server, ingressDeny: [{ toPorts: [range] }] }),
      cnp('business/allow', { ...server, ingress: [{ ...fromClient, toPorts: [tcp('80')] }] }),
    ])
    expect(asked.at('ingress', 'A', 'B', 'TCP 80')).toBe('181')
    expect(asked.map('B')).toEqual(['Allow Egress 0 ANY', 'Allow Ingress 1 ANY', 'Deny Ingress 0 64/TCP/10'])
  })

  test('P11: a denied port inside an allowed range leaves both keys', () => {
    const range = { ports: [{ port: '64', endPort: 127, protocol: 'TCP' }] }
    const policies = [
      cnp('business/allow', { ...server, ingress: [{ ...fromClient, toPorts: [range] }] }),
      cnp('business/deny', { ...server, ingressDeny: [{ ...fromClient, toPorts: [tcp('80')] }] }),
    ]
    expectAtB(policies, [
      ['A', 'TCP 79', 'allowed'],
      ['A', 'TCP 80', '181'],
    ])
    expect(ask(policies).map('B')).toEqual(
      expect.arrayContaining(['Allow Ingress 1001 64/TCP/10', 'Deny Ingress 1001 80/TCP']),
    )
  })

  test('P12: a deny of a peer removes its redirection', () => {
    const http = { rules: { http: [{ method: 'GET' }] } }
    const policies = [
      cnp('business/deny', { ...server, ingressDeny: [fromClient] }),
      cnp('business/allow', { ...server, ingress: [{ ...fromClient, toPorts: [tcp('80', http)] }] }),
    ]
    expectAtB(policies, [['A', 'TCP 80', '181']])
    expect(ask(policies).map('B')).not.toContain('Allow Ingress 1001 80/TCP http')
  })

  test('P13: of two allows with one key the redirection wins', () => {
    const policies = [
      cnp('business/plain', { ...server, ingress: [{ ...fromClient, toPorts: [tcp('80')] }] }),
      cnp('business/http', {
        ...server,
        ingress: [{ ...fromClient, toPorts: [tcp('80', { rules: { http: [{}] } })] }],
      }),
    ]
    expect(ask(policies).map('B')).toContain('Allow Ingress 1001 80/TCP http')
    const answer = ask(policies).answer('ingress', 'A', 'B', 'TCP 80')
    expect(answer.decision).toBe('allowed')
    expect(answer.because.map(({ code }) => code)).toContain('cilium.redirected')
  })

  test('P14: port "0" is the whole protocol', () => {
    const asked = ask([cnp('business/p', { ...server, ingress: [{ ...fromClient, toPorts: [tcp('0')] }] })])
    const key = asked.entries('B').find(({ key: one }) => one.identity === 1001)?.key
    expect(key).toEqual({ direction: 'ingress', identity: 1001, protocol: 6, port: 0, length: 8 })
  })

  test('P15: a name is the number of the container’s port, for its protocol alone', () => {
    const any = cnp('business/p', { ...server, ingress: [{ ...fromClient, toPorts: [{ ports: [{ port: 'web' }] }] }] })
    expectAtB(
      [any],
      [
        ['A', 'TCP 8080', 'allowed'],
        ['A', 'UDP 8080', '133'],
      ],
    )
    expect(
      ask([any])
        .map('B')
        .filter((line) => line.includes('1001')),
    ).toEqual(['Allow Ingress 1001 8080/TCP'])
    const udp = cnp('business/p', {
      ...server,
      ingress: [{ ...fromClient, toPorts: [{ ports: [{ port: 'web', protocol: 'UDP' }] }] }],
    })
    expect(
      ask([udp])
        .map('B')
        .filter((line) => line.includes('1001')),
    ).toEqual([])
  })

  test('P16: a name that no container has makes no key, and the direction is enforced', () => {
    const policy = cnp('business/p', { ...server, ingress: [{ ...fromClient, toPorts: [tcp('nope')] }] })
    expectAtB([policy], [['A', 'TCP 8080', '133']])
  })

  test('P17: a rule for ICMP type 8 allows ping alone', () => {
    const fields = { icmps: [{ fields: [{ type: 8 }] }] }
    const policy = cnp('business/p', { ...server, ingress: [{ ...fromClient, ...fields }] })
    expectAtB(
      [policy],
      [
        ['A', 'ICMP 8', 'allowed'],
        ['A', 'TCP 80', '133'],
      ],
    )
    const named = cnp('business/p', {
      ...server,
      ingress: [{ ...fromClient, icmps: [{ fields: [{ type: 'EchoRequest', family: 'IPv6' }] }] }],
    })
    expectAtB(
      [named],
      [
        ['A', 'ICMPv6 128', 'allowed'],
        ['A', 'ICMP 8', '133'],
      ],
    )
  })

  test('P18: a rule for a port of TCP does not allow ping', () => {
    expectAtB([article], [['A', 'ICMP 8', '133']])
  })

  test('P19: ICMP that says that fragmentation is needed always passes', () => {
    expectAtB(
      [nothing],
      [
        ['A', 'ICMP 3 4', 'allowed'],
        ['A', 'ICMP 3 1', '133'],
        ['A', 'ICMP 3', 'unknown'],
      ],
    )
  })

  test('P39: in 1.17 a redirection for anybody beats a peer’s plain allow', () => {
    const policies = [
      anyClient,
      cnp('business/http', { ...server, ingress: [{ toPorts: [tcp('8080', { rules: { http: [{}] } })] }] }),
    ]
    const answer = ask(policies, { version: '1.17' }).answer('ingress', 'A', 'B', 'TCP 8080')
    expect(answer.because.map(({ code }) => code)).toContain('cilium.redirected')
  })

  test('P41: policies that allow different ports add up', () => {
    const more = cnp('business/more', { ...server, ingress: [{ ...fromClient, toPorts: [tcp('9090')] }] })
    expectAtB(
      [article, more],
      [
        ['A', 'TCP 8080', 'allowed'],
        ['A', 'TCP 9090', 'allowed'],
        ['A', 'TCP 7070', '133'],
      ],
    )
  })

  test('UDP to the port of the tunnel is dropped with 170 whatever policies say', () => {
    const data = { 'routing-mode': 'tunnel', 'tunnel-protocol': 'vxlan' }
    const config = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { namespace: 'kube-system', name: 'cilium-config' },
      data,
    }
    expect(ask([config]).at('egress', 'A', 'node-b', 'UDP 8472')).toBe('170')
    expect(ask([]).at('egress', 'A', 'node-b', 'UDP 8472')).toBe('allowed')
  })
})

describe('what is refused', () => {
  test('P20: two kinds of peers in one element', () => {
    expect(isRefused(cnp('business/p', { ...server, ingress: [{ ...fromClient, fromEntities: ['world'] }] }))).toBe(
      true,
    )
  })

  test('P21: 41 ports in one toPorts', () => {
    const ports = Array.from({ length: 41 }, (_, index) => ({ port: String(index + 1) }))
    expect(isRefused(cnp('business/p', { ...server, ingress: [{ toPorts: [{ ports }] }] }))).toBe(true)
    expect(isRefused(cnp('business/p', { ...server, ingress: [{ toPorts: [{ ports: ports.slice(1) }] }] }))).toBe(false)
  })

  test('P23: an except outside its cidr', () => {
    const set = [{ cidr: '10.0.0.0/8', except: ['192.168.0.0/16'] }]
    expect(isRefused(cnp('business/p', { ...server, ingress: [{ fromCIDRSet: set }] }))).toBe(true)
  })

  test('P24: http on UDP, http with port 0, and dns on ingress', () => {
    const http = { rules: { http: [{}] } }
    const udp = { ports: [{ port: '80', protocol: 'UDP' }], ...http }
    const dns = { ports: [{ port: '53', protocol: 'UDP' }], rules: { dns: [{ matchPattern: '*' }] } }
    expect(isRefused(cnp('business/p', { ...server, ingress: [{ toPorts: [udp] }] }))).toBe(true)
    expect(isRefused(cnp('business/p', { ...server, ingress: [{ toPorts: [tcp('0', http)] }] }))).toBe(true)
    expect(isRefused(cnp('business/p', { ...server, ingress: [{ toPorts: [dns] }] }))).toBe(true)
    expect(isRefused(cnp('business/p', { ...server, egress: [{ toPorts: [dns] }] }))).toBe(false)
  })

  test('P42: nodeSelector in a CiliumNetworkPolicy; in a clusterwide one it holds for host endpoints alone', () => {
    const spec = { nodeSelector: {}, ingress: [{ toPorts: [tcp('22')] }] }
    expect(isRefused(cnp('business/p', spec))).toBe(true)
    const asked = ask([ccnp('p', spec)], { hasHostFirewall: true })
    expect(asked.at('ingress', '8.8.8.8', 'node-a', 'TCP 22')).toBe('allowed')
    expect(asked.at('ingress', '8.8.8.8', 'node-a', 'TCP 23')).toBe('133')
    expect(asked.at('ingress', '8.8.8.8', 'B', 'TCP 23')).toBe('allowed')
    expect(ask([ccnp('p', spec)]).at('ingress', '8.8.8.8', 'node-a', 'TCP 23')).toBe('allowed')
  })
})

describe('destinations', () => {
  const egress = (element: Raw): Raw => cnp('business/p', { ...client, egress: [element] })
  const atA = (policies: readonly Raw[], target: string, connection: string, options = {}): string =>
    ask(policies, options).at('egress', 'A', target, connection)

  test('P22: a CIDRSet without its except, and never a pod', () => {
    const policy = egress({ toCIDRSet: [{ cidr: '10.0.0.0/8', except: ['10.1.0.0/16'] }] })
    expect(atA([policy], '10.1.2.3', 'TCP 80')).toBe('133')
    expect(atA([policy], '10.2.3.4', 'TCP 80')).toBe('allowed')
    expect(atA([policy], 'C', 'TCP 80')).toBe('133')
  })

  const service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace: 'business', name: 'svc' },
    spec: { clusterIP: '10.96.0.50', selector: { app: 'server' }, ports: [{ port: 80, targetPort: 8080 }] },
  }

  test('P33: toServices of a Service with selector allows its pods on any port', () => {
    const policy = egress({ toServices: [{ k8sService: { serviceName: 'svc', namespace: 'business' } }] })
    expect(atA([service, policy], 'B', 'TCP 8080')).toBe('allowed')
    expect(atA([service, policy], 'B', 'TCP 1')).toBe('allowed')
    expect(atA([service, policy], 'D', 'TCP 8080')).toBe('133')
    expect(atA([service, policy], 'B', 'TCP 8080', { version: '1.16' })).toBe('133')
    expect(atA([policy], 'B', 'TCP 8080')).toBe('unknown')
  })

  test('toServices of a Service without selector allows the addresses of its endpoints', () => {
    const { selector: _, ...spec } = service.spec
    const slice = {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { namespace: 'business', name: 'svc-1', labels: { 'kubernetes.io/service-name': 'svc' } },
      addressType: 'IPv4',
      endpoints: [{ addresses: ['203.0.113.7'] }],
      ports: [{ port: 8080 }],
    }
    const policy = egress({ toServices: [{ k8sService: { serviceName: 'svc' } }] })
    const objects = [{ ...service, spec }, slice, policy]
    expect(atA(objects, '203.0.113.7', 'TCP 1')).toBe('allowed')
    expect(atA(objects, '203.0.113.8', 'TCP 1')).toBe('133')
  })

  test('P34: policies see the port of the backend, not that of the Service', () => {
    const policy = egress({ toEndpoints: [{ matchLabels: { app: 'server' } }], toPorts: [tcp('80')] })
    expect(atA([service, policy], 'B', 'TCP 8080')).toBe('133')
  })

  const dnsRule = { toPorts: [{ ports: [{ port: '53', protocol: 'UDP' }], rules: { dns: [{ matchPattern: '*' }] } }] }
  const named = { toFQDNs: [{ matchName: 'api.example.com' }] }

  test('P35: without a DNS rule a name is never learned: the destination stays the world', () => {
    const answer = ask([egress(named)]).answer('egress', 'A', '203.0.113.7', 'TCP 443')
    expect(answer.decision).toBe('denied')
    expect(answer.because.map(({ code }) => code)).toEqual(['cilium.drop-133', 'cilium.names-not-learned'])
  })

  test('with a DNS rule and without a cache the answer is unknown, with a cache it is known', () => {
    const policy = cnp('business/p', { ...client, egress: [dnsRule, named] })
    expect(atA([policy], '203.0.113.7', 'TCP 443')).toBe('unknown')
    const dnsCache = parseDnsCache([{ fqdn: 'api.example.com.', ips: ['203.0.113.7'] }]).cache
    expect(atA([policy], '203.0.113.7', 'TCP 443', { dnsCache })).toBe('allowed')
    expect(atA([policy], '203.0.113.8', 'TCP 443', { dnsCache })).toBe('133')
  })

  test('a CiliumCIDRGroup stands for its ranges, by name and by labels, in both API versions', () => {
    const group = (version: string): Raw => ({
      apiVersion: `cilium.io/${version}`,
      kind: 'CiliumCIDRGroup',
      metadata: { name: 'partners', labels: { trust: 'high' } },
      spec: { externalCIDRs: ['203.0.113.0/24'] },
    })
    const byName = egress({ toCIDRSet: [{ cidrGroupRef: 'partners' }] })
    const byLabel = egress({ toCIDRSet: [{ cidrGroupSelector: { matchLabels: { trust: 'high' } } }] })
    for (const version of ['v2', 'v2alpha1']) {
      expect(atA([group(version), byName], '203.0.113.7', 'TCP 443')).toBe('allowed')
      expect(atA([group(version), byLabel], '203.0.113.7', 'TCP 443')).toBe('allowed')
      expect(atA([group(version), byName], '203.0.114.7', 'TCP 443')).toBe('133')
    }
    expect(atA([byName], '203.0.113.7', 'TCP 443')).toBe('unknown')
  })

  test('toGroups is unknown, as AWS alone knows the addresses', () => {
    expect(atA([egress({ toGroups: [{ aws: { securityGroupsIds: ['sg-1'] } }] })], '203.0.113.7', 'TCP 443')).toBe(
      'unknown',
    )
  })

  test('a range of every address means the world, and never pods or nodes', () => {
    const policy = egress({ toCIDR: ['0.0.0.0/0'] })
    expect(atA([policy], '8.8.8.8', 'TCP 443')).toBe('allowed')
    expect(atA([policy], 'B', 'TCP 443')).toBe('133')
    expect(atA([policy], 'node-b', 'TCP 443')).toBe('133')
  })

  test('toNodes selects nodes by their labels, with enable-node-selector-labels', () => {
    const policy = egress({ toNodes: [{ matchLabels: { 'kubernetes.io/hostname': 'b' } }] })
    const [, , ...rest] = exampleWorld
    const labelled = {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'node-b', labels: { 'kubernetes.io/hostname': 'b' } },
      status: { addresses: [{ type: 'InternalIP', address: '192.168.1.11' }] },
    }
    const asked = askCilium([exampleWorld[0] ?? {}, labelled, ...rest, policy], { hasNodeLabels: true })
    expect(asked.at('egress', 'A', 'node-b', 'TCP 443')).toBe('allowed')
    expect(asked.at('egress', 'A', 'B', 'TCP 443')).toBe('133')
    expect(isRefused(policy)).toBe(true)
  })

  test('an empty list of peers selects nobody, an absent one everybody', () => {
    expect(atA([egress({ toEndpoints: [], toPorts: [tcp('80')] })], 'B', 'TCP 80')).toBe('133')
    expect(atA([egress({ toEntities: [] })], 'B', 'TCP 80')).toBe('133')
    expect(atA([egress({ toPorts: [tcp('80')] })], 'B', 'TCP 80')).toBe('allowed')
    expect(atA([egress({ toEndpoints: [{}] })], 'B', 'TCP 80')).toBe('allowed')
  })
})

describe('NetworkPolicy and the tiers', () => {
  const np = (spec: Raw): Raw =>
    networkPolicy('business/np', { podSelector: { matchLabels: { app: 'server' } }, ...spec })
  const both = (policies: readonly Raw[], name: string): readonly string[] => {
    const asked = ask(policies)
    const at = (direction: Direction, source: string, target: string): string =>
      asked.at(direction, source, target, 'TCP 80')
    return [at('ingress', name, 'B'), at('egress', 'B', name)]
  }

  test('P28: policyTypes [Egress] alone leaves ingress open', () => {
    expect(both([np({ policyTypes: ['Egress'] })], 'A')).toEqual(['allowed', '133'])
  })

  test('P29: a spec with a podSelector alone closes ingress', () => {
    expect(both([np({})], 'A')).toEqual(['133', 'allowed'])
  })

  test('P30: ingress: [{}] allows all, nodes and the world as well', () => {
    expectAtB(
      [np({ ingress: [{}] })],
      [
        ['A', 'TCP 80', 'allowed'],
        ['8.8.8.8', 'TCP 80', 'allowed'],
        ['node-b', 'TCP 80', 'allowed'],
      ],
    )
  })

  test('P31: an empty from is any peer', () => {
    expectAtB(
      [np({ ingress: [{ from: [] }] })],
      [
        ['A', 'TCP 80', 'allowed'],
        ['8.8.8.8', 'TCP 80', 'allowed'],
      ],
    )
  })

  test('P32: an ipBlock selects no pod', () => {
    expectAtB([np({ ingress: [{ from: [{ ipBlock: { cidr: '10.244.0.0/16' } }] }] })], [['A', 'TCP 80', '133']])
  })

  test('rules count even where policyTypes does not list their direction', () => {
    const policy = np({ policyTypes: ['Ingress'], egress: [{ to: [{ podSelector: {} }] }] })
    expect(ask([policy]).at('egress', 'B', '8.8.8.8', 'TCP 80')).toBe('133')
  })

  test.each(ciliumVersions)('Cilium %s reads no policy of the tiers, and says so', (version) => {
    const admin = {
      apiVersion: 'policy.networking.k8s.io/v1alpha1',
      kind: 'AdminNetworkPolicy',
      metadata: { name: 'deny' },
      spec: { priority: 1, subject: { namespaces: {} }, ingress: [{ action: 'Deny', from: [{ namespaces: {} }] }] },
    }
    const asked = ask([admin], { version })
    expect(asked.at('ingress', 'A', 'B', 'TCP 80')).toBe('allowed')
    expect(asked.findings.map(({ code }) => code)).toContain('policy.not-read')
  })
})

describe('connections, authentication and requirements', () => {
  test('P36: an established connection is judged anew, so that P3 cuts it', () => {
    expect(asksPolicy('ESTABLISHED')).toBe(true)
    expect(ask([nothing]).at('ingress', 'A', 'B', 'TCP 8080')).toBe('133')
  })

  test('P37: a reply passes though its sender is closed for egress', () => {
    expect(asksPolicy('REPLY')).toBe(false)
    const asked = ask([cnp('business/p', { ...server, egress: [{}] })])
    expect(asked.at('ingress', 'A', 'B', 'TCP 8080')).toBe('allowed')
    expect(asked.at('egress', 'A', 'B', 'TCP 8080')).toBe('allowed')
  })

  test('P38: what must authenticate is dropped with 189 until it has', () => {
    const policy = cnp('business/p', { ...server, ingress: [{ ...fromClient, authentication: { mode: 'required' } }] })
    expectAtB([policy], [['A', 'TCP 8080', '189']], { isAuthenticated: false })
    expectAtB([policy], [['A', 'TCP 8080', 'allowed']], { isAuthenticated: true })
    expectAtB([policy], [['A', 'TCP 8080', 'unknown']])
    const failing = cnp('business/p', {
      ...server,
      ingress: [{ ...fromClient, authentication: { mode: 'test-always-fail' } }],
    })
    expectAtB([failing], [['A', 'TCP 8080', '189']], { isAuthenticated: true })
  })

  test.each(['1.16', '1.17', '1.18'] as const)(
    'P43: fromRequires binds the other rules of its endpoints in %s',
    (version) => {
      const requires = cnp('business/r', { ...server, ingress: [{ fromRequires: [{ matchLabels: { env: 'prod' } }] }] })
      const allows = cnp('business/p', { ...server, ingress: [fromClient] })
      expectAtB([allows], [['A', 'TCP 80', 'allowed']], { version })
      expectAtB([allows, requires], [['A', 'TCP 80', '133']], { version })
    },
  )

  test('P43: from 1.19 on it is refused', () => {
    const requires = cnp('business/r', { ...server, ingress: [{ fromRequires: [{ matchLabels: { env: 'prod' } }] }] })
    expect(isRefused(requires, { version: '1.19' })).toBe(true)
  })
})

describe('endpoints that are no pods', () => {
  test('a clusterwide endpointSelector {} closes health and ingress endpoints as well, and not the host', () => {
    const asked = ask([ccnp('p', { endpointSelector: {}, ingress: [{}] })], { hasHostFirewall: true })
    expect(asked.at('ingress', 'A', 'health', 'TCP 4240')).toBe('133')
    expect(asked.at('ingress', 'A', 'ingress', 'TCP 80')).toBe('133')
    expect(asked.at('ingress', 'A', 'node-b', 'TCP 80')).toBe('allowed')
  })

  test('specs holds several rules, each of which counts', () => {
    const policy = {
      apiVersion: 'cilium.io/v2',
      kind: 'CiliumClusterwideNetworkPolicy',
      metadata: { name: 'several' },
      specs: [
        { endpointSelector: { matchLabels: { app: 'server' } }, ingress: [{ fromEntities: ['world'] }] },
        { endpointSelector: { matchLabels: { app: 'client' } }, egress: [{}] },
      ],
    }
    const asked = ask([policy])
    expect(asked.at('ingress', '8.8.8.8', 'B', 'TCP 80')).toBe('allowed')
    expect(asked.at('egress', 'A', 'B', 'TCP 80')).toBe('133')
    expect(asked.answer('egress', 'A', 'B', 'TCP 80').because[0].path).toBe('specs[1]')
  })
})

/** Whom Cilium's rules mean, and which policies are refused: cases P20 to P24 and P28 to P35. */
import { describe, expect, test } from 'vitest'
import { parseDnsCache } from '#compile/policy/cilium-dns-cache'
import type { CiliumOptions } from '#compile/policy/cilium-options'
import type { Direction } from '#compile/policy/policy-rule'
import { ciliumVersions } from '#model/cilium-version'
import { askCilium, ccnp, cnp, exampleWorld } from '../../../test/policy/ask-cilium'
import { askIn, client, expectAtB, fromClient, isRefused, server, tcp } from '../../../test/policy/cilium-cases'
import { networkPolicy, type Raw } from '../../../test/policy/policy-objects'
import { evaluate } from './evaluate'
import { kubernetesSemantics } from './k8s-semantics'
import type { Party } from './party'
import { preparePolicies } from './world'

describe.each(ciliumVersions)('what is refused in %s', (version) => {
  const ask = askIn(version)
  const refused = (policy: Raw): boolean => isRefused(policy, { version })

  test('P20: two kinds of peers in one element', () => {
    expect(refused(cnp('business/p', { ...server, ingress: [{ ...fromClient, fromEntities: ['world'] }] }))).toBe(true)
  })

  test('P21: 41 ports in one toPorts', () => {
    const ports = Array.from({ length: 41 }, (_, index) => ({ port: String(index + 1) }))
    expect(refused(cnp('business/p', { ...server, ingress: [{ toPorts: [{ ports }] }] }))).toBe(true)
    expect(refused(cnp('business/p', { ...server, ingress: [{ toPorts: [{ ports: ports.slice(1) }] }] }))).toBe(false)
  })

  test('P23: an except outside its cidr', () => {
    const set = [{ cidr: '10.0.0.0/8', except: ['192.168.0.0/16'] }]
    expect(refused(cnp('business/p', { ...server, ingress: [{ fromCIDRSet: set }] }))).toBe(true)
  })

  test('P24: http on UDP, http with port 0, and dns on ingress', () => {
    const http = { rules: { http: [{}] } }
    const udp = { ports: [{ port: '80', protocol: 'UDP' }], ...http }
    const dns = { ports: [{ port: '53', protocol: 'UDP' }], rules: { dns: [{ matchPattern: '*' }] } }
    expect(refused(cnp('business/p', { ...server, ingress: [{ toPorts: [udp] }] }))).toBe(true)
    expect(refused(cnp('business/p', { ...server, ingress: [{ toPorts: [tcp('0', http)] }] }))).toBe(true)
    expect(refused(cnp('business/p', { ...server, ingress: [{ toPorts: [dns] }] }))).toBe(true)
    expect(refused(cnp('business/p', { ...server, egress: [{ toPorts: [dns] }] }))).toBe(false)
  })

  test('P42: nodeSelector in a CiliumNetworkPolicy; in a clusterwide one it holds for host endpoints alone', () => {
    const spec = { nodeSelector: {}, ingress: [{ toPorts: [tcp('22')] }] }
    expect(refused(cnp('business/p', spec))).toBe(true)
    const asked = ask([ccnp('p', spec)], { hasHostFirewall: true })
    expect(asked.at('ingress', '8.8.8.8', 'node-a', 'TCP 22')).toBe('allowed')
    expect(asked.at('ingress', '8.8.8.8', 'node-a', 'TCP 23')).toBe('133')
    expect(asked.at('ingress', '8.8.8.8', 'B', 'TCP 23')).toBe('allowed')
    expect(ask([ccnp('p', spec)]).at('ingress', '8.8.8.8', 'node-a', 'TCP 23')).toBe('allowed')
  })
})

describe.each(ciliumVersions)('destinations in %s', (version) => {
  const ask = askIn(version)

  const egress = (element: Raw): Raw => cnp('business/p', { ...client, egress: [element] })
  /** Egress of A, the same in every version unless one is asked for. */
  const atA = (policies: readonly Raw[], target: string, connection: string, options: CiliumOptions = {}): string => {
    const versions = options.version === undefined ? ciliumVersions : [options.version]
    const found = versions.map((version) =>
      ask(policies, { ...options, version }).at('egress', 'A', target, connection),
    )
    expect(new Set(found).size).toBe(1)
    return found[0] ?? ''
  }

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
    for (const version of ['1.17', '1.18', '1.19'] as const) {
      expect(atA([service, policy], 'B', 'TCP 8080', { version })).toBe('allowed')
      expect(atA([service, policy], 'B', 'TCP 1', { version })).toBe('allowed')
      expect(atA([service, policy], 'D', 'TCP 8080', { version })).toBe('133')
    }
    expect(atA([service, policy], 'B', 'TCP 8080', { version: '1.16' })).toBe('133')
    expect(atA([policy], 'B', 'TCP 8080')).toBe('unknown')
  })

  test('C4: toServices of a Service without selector allows the addresses of its endpoints', () => {
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

  test('C5: with a DNS rule and without a cache the answer is unknown, with a cache it is known', () => {
    const policy = cnp('business/p', { ...client, egress: [dnsRule, named] })
    expect(atA([policy], '203.0.113.7', 'TCP 443')).toBe('unknown')
    const dnsCache = parseDnsCache([{ fqdn: 'api.example.com.', ips: ['203.0.113.7'] }]).cache
    expect(atA([policy], '203.0.113.7', 'TCP 443', { dnsCache })).toBe('allowed')
    expect(atA([policy], '203.0.113.8', 'TCP 443', { dnsCache })).toBe('133')
  })

  test('C6: a CiliumCIDRGroup stands for its ranges, by name and by labels, in both API versions', () => {
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
      for (const cilium of ['1.17', '1.18', '1.19'] as const) {
        expect(atA([group(version), byLabel], '203.0.113.7', 'TCP 443', { version: cilium })).toBe('allowed')
      }
      expect(atA([group(version), byName], '203.0.114.7', 'TCP 443')).toBe('133')
    }
    expect(atA([byName], '203.0.113.7', 'TCP 443')).toBe('unknown')
    // Ranges never mean what is inside the cluster, whichever they are.
    for (const inside of ['B', 'C', 'node-b', 'health']) expect(atA([byName], inside, 'TCP 443')).toBe('133')
  })

  test('C7: toGroups is unknown, as AWS alone knows the addresses', () => {
    expect(atA([egress({ toGroups: [{ aws: { securityGroupsIds: ['sg-1'] } }] })], '203.0.113.7', 'TCP 443')).toBe(
      'unknown',
    )
  })

  test('C8: a range of every address means the world, and never pods or nodes', () => {
    const policy = egress({ toCIDR: ['0.0.0.0/0'] })
    expect(atA([policy], '8.8.8.8', 'TCP 443')).toBe('allowed')
    expect(atA([policy], 'B', 'TCP 443')).toBe('133')
    expect(atA([policy], 'node-b', 'TCP 443')).toBe('133')
  })

  test('C9: toNodes selects nodes by their labels, with enable-node-selector-labels', () => {
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
    expect(isRefused(policy, { version })).toBe(true)
  })

  test('C10: an empty list of peers selects nobody, an absent one everybody', () => {
    expect(atA([egress({ toEndpoints: [], toPorts: [tcp('80')] })], 'B', 'TCP 80')).toBe('133')
    expect(atA([egress({ toEntities: [] })], 'B', 'TCP 80')).toBe('133')
    expect(atA([egress({ toPorts: [tcp('80')] })], 'B', 'TCP 80')).toBe('allowed')
    expect(atA([egress({ toEndpoints: [{}] })], 'B', 'TCP 80')).toBe('allowed')
  })
})

describe.each(ciliumVersions)('NetworkPolicy and the tiers in %s', (version) => {
  const ask = askIn(version)

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
    const policy = np({ ingress: [{ from: [{ ipBlock: { cidr: '10.244.0.0/16' } }] }] })
    expectAtB([policy], [['A', 'TCP 80', '133']])
    // Kubernetes' own meaning, which other plugins follow.
    const { cluster } = ask([policy])
    const world = preparePolicies(cluster, { semantics: kubernetesSemantics })
    const [source, target] = ['business/a', 'business/b'].map((name): Party => {
      const pod = cluster.pods.get(name)
      if (pod === undefined) throw new Error(name)
      return { kind: 'pod', pod }
    })
    if (source === undefined || target === undefined) throw new Error('no pods')
    expect(evaluate(world, { source, target, protocol: 'TCP', port: 80 }).ingress.decision).toBe('allowed')
  })

  test('C11: rules count even where policyTypes does not list their direction', () => {
    const policy = np({ policyTypes: ['Ingress'], egress: [{ to: [{ podSelector: {} }] }] })
    expect(ask([policy]).at('egress', 'B', '8.8.8.8', 'TCP 80')).toBe('133')
  })

  test('C12: no policy of the tiers is read, and that is said', () => {
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

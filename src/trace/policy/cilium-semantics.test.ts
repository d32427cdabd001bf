/** Policies as Cilium enforces them: cases P1 to P19, P25 to P27 and P36 to P43. */
import { describe, expect, test } from 'vitest'
import { ciliumVersions } from '#model/cilium-version'
import { ccnp, cnp } from '../../../test/policy/ask-cilium'
import {
  article,
  askIn,
  client,
  expectAtB,
  fromClient,
  isRefused,
  nothing,
  type Row,
  server,
  tcp,
} from '../../../test/policy/cilium-cases'
import { pod } from '../../../test/policy/policy-objects'
import { asksPolicy } from './cilium-conntrack'

describe.each(ciliumVersions)('enforcement in %s', (version) => {
  const ask = askIn(version)

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

  test('P4: ingress: [] is not enforced', () => {
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

  test('C1: allow-localhost=policy drops what the host sends', () => {
    expectAtB([nothing], [['node-a', 'TCP 80', '133']], { allowsLocalhost: false })
  })

  test('C2: settings are read from cilium-config', () => {
    const config = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { namespace: 'kube-system', name: 'cilium-config' },
      data: { 'enable-policy': 'always' },
    }
    expectAtB([config], [['A', 'TCP 80', '133']])
  })
})

describe.each(ciliumVersions)('denies, ports and redirections in %s', (version) => {
  const ask = askIn(version)

  const anyClient = cnp('business/allow', { ...server, ingress: [fromClient] })
  const deny22 = cnp('business/deny', { ...server, ingressDeny: [{ toPorts: [tcp('22')] }] })

  test('P8: a deny of a port for anybody beats an allow of a peer', () => {
    expectAtB(
      [anyClient, deny22],
      [
        ['A', 'TCP 22', '181'],
        ['A', 'TCP 23', 'allowed'],
      ],
      { version },
    )
  })

  test('P9: a deny of a peer beats an allow of a port for anybody', () => {
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
    expect(ask([policy]).map('B')).toEqual(['Allow Egress 0 ANY', 'Allow Ingress 1 ANY'])
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

  test('C3: UDP to the port of the tunnel is dropped with 170 whatever policies say', () => {
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

describe.each(ciliumVersions)('connections, authentication and requirements in %s', (version) => {
  const ask = askIn(version)

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
})

describe.each(ciliumVersions)('endpoints that are no pods in %s', (version) => {
  const ask = askIn(version)

  test('C13: a clusterwide endpointSelector {} closes health and ingress endpoints as well, and not the host', () => {
    const asked = ask([ccnp('p', { endpointSelector: {}, ingress: [{}] })], { hasHostFirewall: true })
    expect(asked.at('ingress', 'A', 'health', 'TCP 4240')).toBe('133')
    expect(asked.at('ingress', 'A', 'ingress', 'TCP 80')).toBe('133')
    expect(asked.at('ingress', 'A', 'node-b', 'TCP 80')).toBe('allowed')
  })

  test('C14: specs holds several rules, each of which counts', () => {
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

test.each(['1.16', '1.17', '1.18'] as const)(
  'P43: fromRequires binds the other rules of its endpoints in %s',
  (version) => {
    const requires = cnp('business/r', { ...server, ingress: [{ fromRequires: [{ matchLabels: { env: 'prod' } }] }] })
    const allows = cnp('business/p', { ...server, ingress: [fromClient] })
    expectAtB([allows], [['A', 'TCP 80', 'allowed']], { version })
    expectAtB([allows, requires], [['A', 'TCP 80', '133']], { version })
    const asked = askIn(version)([
      allows,
      requires,
      pod('business/prod', { app: 'client', env: 'prod' }),
      pod('business/test', { app: 'client', env: 'test' }),
    ])
    const fates = ['prod', 'test'].map((name) => asked.at('ingress', `business/${name}`, 'B', 'TCP 80'))
    expect(fates).toEqual(['allowed', '133'])
  },
)

test('P43: from 1.19 on it is refused', () => {
  const requires = cnp('business/r', { ...server, ingress: [{ fromRequires: [{ matchLabels: { env: 'prod' } }] }] })
  expect(isRefused(requires, { version: '1.19' })).toBe(true)
})

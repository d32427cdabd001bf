/** AdminNetworkPolicy, BaselineAdminNetworkPolicy and ClusterNetworkPolicy: order, Pass, priorities, peers, fail closed. */
import { describe, expect, test } from 'vitest'
import { askPolicies, sentencesOf } from '../../../test/policy/ask-policies'
import {
  adminPolicy,
  baselinePolicy,
  clusterPolicy,
  everyPod,
  namespace,
  networkPolicy,
  node,
  pod,
  type Raw,
} from '../../../test/policy/policy-objects'

const world: readonly Raw[] = [
  node('n1', '192.168.1.1', { zone: 'a' }),
  node('n2', '192.168.1.2', { zone: 'b' }),
  namespace('x', { team: 'red' }),
  namespace('y', { team: 'blue' }),
  pod('x/a', { app: 'a' }, { ip: '10.244.0.10', ports: [{ name: 'http', containerPort: 8080 }] }),
  pod('y/b', { app: 'b' }, { ip: '10.244.1.10' }),
]

function ask(...policies: readonly Raw[]) {
  return askPolicies([...world, ...policies])
}

const from = (action: string, rest: Raw = {}): Raw => ({ action, from: [everyPod], ...rest })
const to = (action: string, peer: Raw, rest: Raw = {}): Raw => ({ action, to: [peer], ...rest })
const port = (number: number, protocol = 'TCP'): Raw => ({ portNumber: { protocol, port: number } })
const denyAll = networkPolicy('x/deny', { podSelector: {} })
const allowAll = networkPolicy('x/allow', { podSelector: {}, ingress: [{}] })

describe('order of the tiers', () => {
  test.each([
    [
      'Admin Allow is final',
      [adminPolicy('a', 5, { ingress: [from('Allow')] }), denyAll],
      'yes',
      '[ANP] Allow (a spec.ingress[0])',
    ],
    [
      'Admin Deny is final',
      [adminPolicy('a', 5, { ingress: [from('Deny', { name: 'no' })] }), allowAll],
      'no',
      '[ANP] Deny (no)',
    ],
    [
      'Pass goes to NetworkPolicy',
      [adminPolicy('a', 5, { ingress: [from('Pass', { name: 'p' })] }), denyAll],
      'no',
      '[ANP] Pass (p) -> [NPv1] Dropped',
    ],
    [
      '… and there it may be allowed',
      [adminPolicy('a', 5, { ingress: [from('Pass', { name: 'p' })] }), allowAll],
      'yes',
      '[ANP] Pass (p) -> [NPv1] Allow',
    ],
    [
      'Pass skips later rules of the tier',
      [
        adminPolicy('a', 5, { ingress: [from('Pass', { name: 'p' }), from('Deny')] }),
        adminPolicy('b', 6, { ingress: [from('Deny')] }),
      ],
      'yes',
      '[ANP] Pass (p) -> [Default] Allow',
    ],
    [
      'no rule matches, and the baseline decides',
      [
        adminPolicy('a', 5, { ingress: [from('Deny', { ports: [port(81)] })] }),
        baselinePolicy({ ingress: [from('Deny', { name: 'b' })] }),
      ],
      'no',
      '[ANP] No-Op -> [BANP] Deny (b)',
    ],
    [
      'a NetworkPolicy keeps the baseline out',
      [allowAll, baselinePolicy({ ingress: [from('Deny')] })],
      'yes',
      '[NPv1] Allow',
    ],
    ['… also when it denies', [denyAll, baselinePolicy({ ingress: [from('Allow')] })], 'no', '[NPv1] Dropped'],
    [
      '… but not of the other direction',
      [
        networkPolicy('x/e', { podSelector: {}, policyTypes: ['Egress'], egress: [{}] }),
        baselinePolicy({ ingress: [from('Deny', { name: 'b' })] }),
      ],
      'no',
      '[BANP] Deny (b)',
    ],
    [
      'a tier rule isolates nobody',
      [adminPolicy('a', 5, { ingress: [from('Allow', { ports: [port(81)] })] })],
      'yes',
      '[ANP] No-Op -> [Default] Allow',
    ],
    [
      'ClusterNetworkPolicy has both tiers',
      [
        clusterPolicy('c', 'Admin', { ingress: [from('Pass', { name: 'p' })] }),
        clusterPolicy('d', 'Baseline', { ingress: [from('Deny', { name: 'q' })] }),
      ],
      'no',
      '[Admin] Pass (p) -> [Baseline] Deny (q)',
    ],
    [
      'Accept of ClusterNetworkPolicy',
      [clusterPolicy('c', 'Admin', { ingress: [from('Accept', { name: 'p' })] }), denyAll],
      'yes',
      '[Admin] Allow (p)',
    ],
    [
      'Pass out of the baseline is allowed',
      [clusterPolicy('c', 'Baseline', { ingress: [from('Pass', { name: 'p' }), from('Deny')] })],
      'yes',
      '[Baseline] Pass (p) -> [Default] Allow',
    ],
  ] as const)('%s', (_, policies, expected, tiers) => {
    const asked = ask(...policies)
    expect(asked.may('y/b', 'x/a', 'TCP 80')).toBe(expected)
    expect(asked.answer('y/b', 'x/a', 'TCP 80').ingress.tiers).toBe(tiers)
  })

  test('rules count in their order, policies by their priority', () => {
    const first = adminPolicy('z', 1, { ingress: [from('Allow', { ports: [port(80)] }), from('Deny')] })
    const second = adminPolicy('a', 2, { ingress: [from('Allow')] })
    const asked = ask(first, second)
    expect(asked.may('y/b', 'x/a', 'TCP 80')).toBe('yes')
    expect(asked.may('y/b', 'x/a', 'TCP 81')).toBe('no')
  })
})

describe('equal priorities', () => {
  const one = adminPolicy('one', 7, { ingress: [from('Allow', { ports: [port(80), port(81)] })] })

  test('when they disagree the order is undefined upstream, and the answer unknown', () => {
    const two = adminPolicy('two', 7, { ingress: [from('Deny', { ports: [port(80)] })] })
    const asked = ask(one, two)
    expect(asked.may('y/b', 'x/a', 'TCP 80')).toBe('unknown')
    expect(sentencesOf(asked.answer('y/b', 'x/a', 'TCP 80').ingress)).toContain('have the same priority 7')
    expect(asked.answer('y/b', 'x/a', 'TCP 80').ingress.changes).toEqual(['give the policies different priorities'])
    expect(asked.may('y/b', 'x/a', 'TCP 81')).toBe('yes')
  })

  test('Allow against Pass is no question where all below allows', () => {
    const two = adminPolicy('two', 7, { ingress: [from('Pass')] })
    expect(ask(one, two).may('y/b', 'x/a', 'TCP 80')).toBe('yes')
    expect(ask(one, two, denyAll).may('y/b', 'x/a', 'TCP 80')).toBe('unknown')
  })

  test('a better priority decides before them', () => {
    const two = adminPolicy('two', 7, { ingress: [from('Deny')] })
    const best = adminPolicy('best', 6, { ingress: [from('Deny')] })
    expect(ask(one, two, best).may('y/b', 'x/a', 'TCP 80')).toBe('no')
  })
})

describe('subjects, peers and ports', () => {
  test('subjects by namespaces and by pods', () => {
    const by = (subject: Raw): Raw => adminPolicy('a', 5, { subject, ingress: [from('Deny')] })
    expect(ask(by({ namespaces: { matchLabels: { team: 'blue' } } })).may('y/b', 'x/a', 'TCP 80')).toBe('yes')
    const pods = { namespaceSelector: { matchLabels: { team: 'red' } }, podSelector: { matchLabels: { app: 'a' } } }
    expect(ask(by({ pods })).may('y/b', 'x/a', 'TCP 80')).toBe('no')
  })

  test('host-networked pods are neither subjects nor peers', () => {
    const host = pod('x/host', { app: 'a' }, { hostNetwork: true, nodeName: 'n2', ip: '192.168.1.2' })
    const asked = askPolicies([...world, host, adminPolicy('a', 5, { ingress: [from('Deny')] })])
    expect(asked.may('y/b', 'x/host', 'TCP 80')).toBe('yes')
    expect(asked.may('x/host', 'x/a', 'TCP 80')).toBe('yes')
    expect(asked.answer('y/b', 'x/host', 'TCP 80').ingress.others[0]?.why).toBe('it leaves host-networked pods out')
  })

  test.each([
    ['nodes by their labels', { nodes: { matchLabels: { zone: 'b' } } }, 'node n2', 'no'],
    ['… no others', { nodes: { matchLabels: { zone: 'a' } } }, 'node n2', 'yes'],
    ['… and no addresses outside', { nodes: {} }, '8.8.8.8', 'yes'],
    ['networks', { networks: ['8.8.8.0/24'] }, '8.8.8.8', 'no'],
    ['networks match pods as well', { networks: ['10.244.0.0/16'] }, 'y/b', 'no'],
    ['networks match nodes as well', { networks: ['192.168.1.0/24'] }, 'node n2', 'no'],
    ['names are not known', { domainNames: ['*.example.com'] }, '8.8.8.8', 'unknown'],
    ['names lead out of the cluster', { domainNames: ['*.example.com'] }, 'y/b', 'yes'],
    ['names of the cluster itself may not', { domainNames: ['b.y.svc.cluster.local'] }, 'y/b', 'unknown'],
  ])('egress to %s', (_, peer, target, expected) => {
    expect(ask(adminPolicy('a', 5, { egress: [to('Deny', peer)] })).may('x/a', target, 'TCP 80')).toBe(expected)
  })

  test('what cannot be known matters only where it would decide', () => {
    const names = to('Allow', { domainNames: ['example.com'] })
    const open = adminPolicy('a', 5, { egress: [names] })
    expect(ask(open).may('x/a', '8.8.8.8', 'TCP 80')).toBe('yes')
    const closed = adminPolicy('a', 5, { egress: [names, to('Deny', { networks: ['0.0.0.0/0'] })] })
    expect(ask(closed).may('x/a', '8.8.8.8', 'TCP 80')).toBe('unknown')
    expect(ask(closed).may('x/a', 'y/b', 'TCP 80')).toBe('no')
    const { because, tiers } = ask(closed).answer('x/a', '8.8.8.8', 'TCP 80').egress
    expect(because[0]).toMatchObject({ code: 'policy.undecidable-peer', path: 'spec.egress[0]' })
    expect(tiers).toBe('[ANP] Undecided')
  })

  test('where whatever is open comes to the same, the answer is known', () => {
    const names = (action: string, name: string): Raw => to(action, { domainNames: [name] })
    const same = adminPolicy('a', 5, { egress: [names('Allow', 'example.com'), names('Deny', 'example.com')] })
    expect(ask(same).may('x/a', '8.8.8.8', 'TCP 80')).toBe('yes')
    expect(sentencesOf(ask(same).answer('x/a', '8.8.8.8', 'TCP 80').egress)).toContain('it comes to the same: allowed')
    const other = adminPolicy('a', 5, { egress: [names('Allow', 'example.com'), names('Deny', 'example.org')] })
    expect(ask(other).may('x/a', '8.8.8.8', 'TCP 80')).toBe('unknown')
  })

  test.each([
    ['no ports is every port and protocol', {}, 'ICMP 8', 'no'],
    ['a number has TCP when nothing is said', { ports: [{ portNumber: { port: 80 } }] }, 'TCP 80', 'no'],
    ['… and a port of another protocol is another', { ports: [port(80, 'UDP')] }, 'TCP 80', 'yes'],
    ['a range is inclusive', { ports: [{ portRange: { protocol: 'SCTP', start: 80, end: 90 } }] }, 'SCTP 90', 'no'],
    ['a named port is that of the destination', { ports: [{ namedPort: 'http' }] }, 'TCP 8080', 'no'],
    ['rules with ports are not for ICMP', { ports: [{ portRange: { start: 1, end: 65535 } }] }, 'ICMP 8', 'yes'],
    ['a protocol nobody knows matches nothing', { ports: [port(80, 'tcp')] }, 'TCP 80', 'yes'],
  ])('%s', (_, rest, connection, expected) => {
    expect(ask(adminPolicy('a', 5, { ingress: [from('Deny', rest)] })).may('y/b', 'x/a', connection)).toBe(expected)
  })

  test.each([
    [[{ tcp: { destinationPort: { number: 80 } } }], 'TCP 80', 'no'],
    [[{ udp: { destinationPort: { range: { start: 80, end: 82 } } } }], 'UDP 81', 'no'],
    [[{ udp: { destinationPort: { range: { start: 80, end: 82 } } } }], 'TCP 81', 'yes'],
    [[{ destinationNamedPort: 'http' }], 'TCP 8080', 'no'],
  ])('protocols of ClusterNetworkPolicy: %j', (protocols, connection, expected) => {
    const asked = ask(clusterPolicy('c', 'Admin', { ingress: [from('Deny', { protocols })] }))
    expect(asked.may('y/b', 'x/a', connection)).toBe(expected)
  })
})

describe('a peer of an unknown kind fails closed', () => {
  const unknown = (action: string): Raw => ({ action, from: [{ galaxies: {} }] })

  test.each([
    ['Allow matches nothing', 'Allow', 'no'],
    ['Deny denies all', 'Deny', 'no'],
    ['Pass denies all', 'Pass', 'no'],
  ])('%s', (_, action, expected) => {
    const asked = ask(adminPolicy('a', 5, { ingress: [unknown(action)] }), denyAll)
    expect(asked.may('y/b', 'x/a', 'TCP 80')).toBe(expected)
    expect(asked.findings.map(({ code }) => code)).toContain('policy.unknown-peer')
  })

  test('and the difference shows where nothing else denies', () => {
    expect(ask(adminPolicy('a', 5, { ingress: [unknown('Allow')] })).may('y/b', 'x/a', 'TCP 80')).toBe('yes')
    expect(ask(adminPolicy('a', 5, { ingress: [unknown('Pass')] })).may('y/b', 'x/a', 'TCP 80')).toBe('no')
  })
})

describe('kubelet and replies', () => {
  test('a node reaches its own pods past an admin policy too', () => {
    const asked = ask(adminPolicy('a', 5, { egress: [to('Deny', { nodes: {} })] }))
    expect(asked.may('x/a', 'node n1', 'TCP 80')).toBe('yes')
    expect(asked.may('x/a', 'node n2', 'TCP 80')).toBe('no')
  })
})

/** The integration story of the tiers, step by step: each step's policies, and what becomes of port 80 and 8080. */
test('tier integration, in order', () => {
  const ports = [port(80), port(8080)]
  const admin = (action: string): Raw => adminPolicy('admin', 50, { ingress: [from(action, { ports })] })
  const normal = networkPolicy('x/open', { podSelector: {}, ingress: [{ ports: [{ port: 80 }, { port: 8080 }] }] })
  const baseline = (action: string): Raw => baselinePolicy({ ingress: [from(action, { ports })] })
  const extra = (priority: number): Raw => adminPolicy('extra', priority, { ingress: [from('Pass', { ports })] })
  const both = (...policies: readonly Raw[]) => {
    const asked = ask(...policies)
    return ['TCP 80', 'TCP 8080'].map((one) => asked.may('y/b', 'x/a', one)).join()
  }
  expect(both(admin('Deny'), normal, baseline('Deny'))).toBe('no,no')
  expect(both(admin('Pass'), normal, baseline('Deny'))).toBe('yes,yes')
  expect(both(admin('Pass'), baseline('Deny'))).toBe('no,no')
  expect(both(admin('Deny'), extra(60), baseline('Deny'))).toBe('no,no')
  expect(both(admin('Deny'), extra(40), baseline('Deny'))).toBe('no,no')
  expect(both(admin('Deny'), extra(40), baseline('Allow'))).toBe('yes,yes')
})

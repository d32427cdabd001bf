/** NetworkPolicy as Kubernetes defines it, point by point of its edge semantics. */
import { describe, expect, test } from 'vitest'
import { askPolicies, sentencesOf } from '../../../test/policy/ask-policies'
import { namespace, networkPolicy, node, pod, type Raw } from '../../../test/policy/policy-objects'
import { evaluate } from './evaluate'

const web = { app: 'web' }
const world: readonly Raw[] = [
  node('n1', '192.168.1.1'),
  node('n2', '192.168.1.2'),
  namespace('x', { team: 'red' }),
  namespace('y', { team: 'blue' }),
  pod('x/web', web, {
    ip: '10.244.0.10',
    ports: [
      { name: 'http', containerPort: 8080 },
      { name: 'dns', containerPort: 53, protocol: 'UDP' },
    ],
  }),
  pod('x/other', { app: 'other' }, { ip: '10.244.0.11', ports: [{ name: 'http', containerPort: 9090 }] }),
  pod('y/client', { app: 'client' }, { ip: '10.244.1.10' }),
  pod('y/bare', {}, { ip: '10.244.1.11' }),
]

function ask(...policies: readonly Raw[]) {
  return askPolicies([...world, ...policies])
}

const forWeb = (spec: Raw): Raw => networkPolicy('x/p', { podSelector: { matchLabels: web }, ...spec })

describe('1–2: policyTypes and empty rules', () => {
  test('without policyTypes and egress a policy isolates for ingress alone', () => {
    const asked = ask(forWeb({}))
    expect(asked.may('y/client', 'x/web', 'TCP 80')).toBe('no')
    expect(asked.may('x/web', 'y/client', 'TCP 80')).toBe('yes')
  })

  test('an egress rule makes it isolate for egress as well, an empty list of them does not', () => {
    const isolated = ask(forWeb({ egress: [{ to: [{ podSelector: {} }] }] }))
    expect(isolated.may('x/web', 'y/client', 'TCP 80')).toBe('no')
    expect(isolated.may('x/web', 'x/other', 'TCP 80')).toBe('yes')
    expect(isolated.may('y/client', 'x/web', 'TCP 80')).toBe('no')
    expect(ask(forWeb({ egress: [] })).may('x/web', 'y/client', 'TCP 80')).toBe('yes')
  })

  test.each([
    ['an absent ingress isolates', {}, 'no'],
    ['an empty list of rules isolates', { ingress: [] }, 'no'],
    ['one empty rule allows all', { ingress: [{}] }, 'yes'],
    [
      'rules of a direction that policyTypes leave out have no effect',
      { ingress: [{}], policyTypes: ['Egress'] },
      'yes',
    ],
  ])('%s', (_, spec, expected) => {
    expect(ask(forWeb(spec)).may('y/client', 'x/web', 'TCP 80')).toBe(expected)
  })

  test('rules whose type is not listed allow nothing either', () => {
    const asked = ask(
      forWeb({ policyTypes: ['Ingress'], egress: [{}] }),
      networkPolicy('x/q', { podSelector: {}, policyTypes: ['Egress'] }),
    )
    expect(asked.may('x/web', 'y/client', 'TCP 80')).toBe('no')
  })
})

describe('3–6: peers and ports', () => {
  test.each([
    ['from: [] is any source', { ingress: [{ from: [], ports: [{ port: 80 }] }] }, 'y/client', 'TCP 80', 'yes'],
    ['also outside the cluster', { ingress: [{ from: [], ports: [{ port: 80 }] }] }, '8.8.8.8', 'TCP 80', 'yes'],
    ['ports: [] is any port', { ingress: [{ ports: [] }] }, 'y/client', 'SCTP 5', 'yes'],
    [
      'a podSelector alone is for the own namespace',
      { ingress: [{ from: [{ podSelector: {} }] }] },
      'y/client',
      'TCP 80',
      'no',
    ],
    ['… and there it matches', { ingress: [{ from: [{ podSelector: {} }] }] }, 'x/other', 'TCP 80', 'yes'],
    [
      'a namespaceSelector alone is for all its pods',
      { ingress: [{ from: [{ namespaceSelector: { matchLabels: { team: 'blue' } } }] }] },
      'y/bare',
      'TCP 80',
      'yes',
    ],
    [
      'namespaceSelector {} is every namespace, and pods alone',
      { ingress: [{ from: [{ namespaceSelector: {} }] }] },
      'y/bare',
      'TCP 80',
      'yes',
    ],
    ['… not addresses outside', { ingress: [{ from: [{ namespaceSelector: {} }] }] }, '8.8.8.8', 'TCP 80', 'no'],
    [
      'both in one entry are ANDed',
      {
        ingress: [
          {
            from: [
              { namespaceSelector: { matchLabels: { team: 'blue' } }, podSelector: { matchLabels: { app: 'client' } } },
            ],
          },
        ],
      },
      'y/bare',
      'TCP 80',
      'no',
    ],
    [
      '… and match together',
      {
        ingress: [
          {
            from: [
              { namespaceSelector: { matchLabels: { team: 'blue' } }, podSelector: { matchLabels: { app: 'client' } } },
            ],
          },
        ],
      },
      'y/client',
      'TCP 80',
      'yes',
    ],
    [
      'in two entries they are ORed',
      {
        ingress: [
          {
            from: [
              { namespaceSelector: { matchLabels: { team: 'blue' } } },
              { podSelector: { matchLabels: { app: 'client' } } },
            ],
          },
        ],
      },
      'y/bare',
      'TCP 80',
      'yes',
    ],
    ['the protocol is TCP when absent', { ingress: [{ ports: [{ port: 53 }] }] }, 'y/client', 'UDP 53', 'no'],
    [
      'a port without number is every port of the protocol',
      { ingress: [{ ports: [{ protocol: 'UDP' }] }] },
      'y/client',
      'UDP 53',
      'yes',
    ],
    ['… and of no other', { ingress: [{ ports: [{ protocol: 'UDP' }] }] }, 'y/client', 'TCP 53', 'no'],
    [
      'SCTP is a protocol of its own',
      { ingress: [{ ports: [{ protocol: 'SCTP', port: 80 }] }] },
      'y/client',
      'SCTP 80',
      'yes',
    ],
    ['endPort is inclusive', { ingress: [{ ports: [{ port: 80, endPort: 90 }] }] }, 'y/client', 'TCP 90', 'yes'],
    ['… and no more', { ingress: [{ ports: [{ port: 80, endPort: 90 }] }] }, 'y/client', 'TCP 91', 'no'],
    ['endPort may equal port', { ingress: [{ ports: [{ port: 80, endPort: 80 }] }] }, 'y/client', 'TCP 80', 'yes'],
  ])('%s', (_, spec, source, connection, expected) => {
    expect(ask(forWeb(spec)).may(source, 'x/web', connection)).toBe(expected)
  })

  test('16: NotIn and DoesNotExist match where the key is absent', () => {
    const from = (expression: Raw): Raw =>
      forWeb({ ingress: [{ from: [{ namespaceSelector: {}, podSelector: { matchExpressions: [expression] } }] }] })
    const notIn = ask(from({ key: 'app', operator: 'NotIn', values: ['client'] }))
    expect(notIn.may('y/bare', 'x/web', 'TCP 80')).toBe('yes')
    expect(notIn.may('y/client', 'x/web', 'TCP 80')).toBe('no')
    const absent = ask(from({ key: 'app', operator: 'DoesNotExist' }))
    expect(absent.may('y/bare', 'x/web', 'TCP 80')).toBe('yes')
    expect(absent.may('y/client', 'x/web', 'TCP 80')).toBe('no')
  })

  test('6: what NetworkPolicies do to ICMP is undefined upstream, and where none selects the pod it passes', () => {
    const asked = ask(forWeb({ ingress: [{}] }))
    expect(asked.may('y/client', 'x/web', 'ICMP 8')).toBe('unknown')
    expect(sentencesOf(asked.answer('y/client', 'x/web', 'ICMP 8').ingress)).toContain('upstream does not define')
    expect(asked.answer('y/client', 'x/web', 'ICMP').ingress.tiers).toBe('[NPv1] Undefined')
    expect(asked.may('y/client', 'x/other', 'ICMP 8')).toBe('yes')
  })
})

describe('8: named ports', () => {
  const named = (name: string, protocol = 'TCP'): Raw =>
    networkPolicy('x/p', { podSelector: {}, ingress: [{ ports: [{ port: name, protocol }] }] })

  test('a name is another number in another pod', () => {
    const asked = ask(named('http'))
    expect(asked.may('y/client', 'x/web', 'TCP 8080')).toBe('yes')
    expect(asked.may('y/client', 'x/web', 'TCP 9090')).toBe('no')
    expect(asked.may('y/client', 'x/other', 'TCP 9090')).toBe('yes')
  })

  test('the protocol must agree', () => {
    expect(ask(named('dns', 'UDP')).may('y/client', 'x/web', 'UDP 53')).toBe('yes')
    expect(ask(named('dns')).may('y/client', 'x/web', 'TCP 53')).toBe('no')
  })

  test('of egress the destination resolves the name, and an address outside has none', () => {
    const asked = ask(networkPolicy('y/p', { podSelector: {}, egress: [{ ports: [{ port: 'http' }] }] }))
    expect(asked.may('y/client', 'x/web', 'TCP 8080')).toBe('yes')
    expect(asked.may('y/client', 'x/other', 'TCP 9090')).toBe('yes')
    expect(asked.may('y/client', 'x/other', 'TCP 8080')).toBe('no')
    expect(asked.may('y/client', '8.8.8.8', 'TCP 8080')).toBe('no')
    const { others } = asked.answer('y/client', '8.8.8.8', 'TCP 8080').egress
    expect(others[0]?.why).toContain('the destination has no port of that name')
  })

  test('a sidecar has names, an init container that ends has none', () => {
    const init = (restartPolicy?: string): Raw =>
      pod('x/side', {}, { initContainers: [{ name: 'i', restartPolicy, ports: [{ name: 'http', containerPort: 7 }] }] })
    expect(ask(init('Always'), named('http')).may('y/client', 'x/side', 'TCP 7')).toBe('yes')
    expect(ask(init(), named('http')).may('y/client', 'x/side', 'TCP 7')).toBe('no')
  })
})

describe('9: ipBlock', () => {
  const from = (cidr: string, except: readonly string[] = []): Raw =>
    forWeb({ ingress: [{ from: [{ ipBlock: { cidr, except } }] }] })

  test.each([
    ['8.8.8.8', '8.8.8.0/24', [], 'yes'],
    ['8.8.9.8', '8.8.8.0/24', [], 'no'],
    ['8.8.8.8', '8.8.8.0/24', ['8.8.8.8/32'], 'no'],
    ['8.8.8.9', '8.8.8.0/24', ['8.8.8.8/32'], 'yes'],
  ])('%s of %s but %j: %s', (source, cidr, except, expected) => {
    expect(ask(from(cidr, except)).may(source, 'x/web', 'TCP 80')).toBe(expected)
  })

  test('a range matches pods by their address, which upstream does not define, and the reason says so', () => {
    const asked = ask(from('10.244.1.0/24', ['10.244.1.11/32']))
    expect(asked.may('y/client', 'x/web', 'TCP 80')).toBe('yes')
    expect(asked.may('y/bare', 'x/web', 'TCP 80')).toBe('no')
    expect(sentencesOf(asked.answer('y/client', 'x/web', 'TCP 80').ingress)).toContain('before or after translation')
    expect(asked.answer('y/bare', 'x/web', 'TCP 80').ingress.others[0]?.why).toContain(
      '10.244.1.11 is in the exception 10.244.1.11/32',
    )
  })

  test('a pod without address yet is in a range that holds all, and perhaps in another', () => {
    const pending = pod('y/new', {}, { ip: null, phase: 'Pending' })
    expect(askPolicies([...world, pending, from('0.0.0.0/0')]).may('y/new', 'x/web', 'TCP 80')).toBe('yes')
    expect(askPolicies([...world, pending, from('10.0.0.0/8')]).may('y/new', 'x/web', 'TCP 80')).toBe('unknown')
  })

  test('of two families each connection has its own', () => {
    const dual = (path: string, v4: string, v6: string): Raw => {
      const plain = pod(path, web, { ip: v4 })
      return { ...plain, status: { phase: 'Running', podIPs: [{ ip: v4 }, { ip: v6 }] } }
    }
    const asked = askPolicies([
      ...world,
      dual('y/dual', '10.244.5.1', 'fd00::1'),
      dual('x/dual', '10.244.5.2', 'fd00::2'),
      from('fd00::/64'),
    ])
    const ends = { source: asked.party('y/dual'), target: asked.party('x/dual'), protocol: 'TCP', port: 80 } as const
    expect(asked.may('y/dual', 'x/dual', 'TCP 80')).toBe('no')
    expect(evaluate(asked.world, { ...ends, family: 'ipv4' }).allowed).toBe(false)
    expect(evaluate(asked.world, { ...ends, family: 'ipv6' }).allowed).toBe(true)
    expect(asked.may('fd00::9', 'x/dual', 'TCP 80')).toBe('yes')
    expect(asked.may('fd01::9', 'x/dual', 'TCP 80')).toBe('no')
    expect(sentencesOf(asked.answer('fd00::9', 'x/other', 'TCP 80').ingress)).toContain('no addresses of one family')
  })
})

describe('10–18: what policies never do, and what surrounds them', () => {
  const closed = networkPolicy('x/deny', { podSelector: {}, policyTypes: ['Ingress', 'Egress'] })

  test('10: a node reaches its own pods and they it, whatever policies say; another node does not', () => {
    const asked = ask(closed)
    expect(asked.may('node n1', 'x/web', 'TCP 80')).toBe('yes')
    expect(asked.may('x/web', 'node n1', 'TCP 80')).toBe('yes')
    expect(asked.may('node n2', 'x/web', 'TCP 80')).toBe('no')
    expect(sentencesOf(asked.answer('node n1', 'x/web', 'TCP 80').ingress)).toContain('on one node')
  })

  test('10: of a pod without a node it is unknown', () => {
    const asked = askPolicies([
      ...world,
      pod('x/loose', {}, { nodeName: undefined, ip: null, phase: 'Pending' }),
      closed,
    ])
    expect(asked.may('node n1', 'x/loose', 'TCP 80')).toBe('unknown')
  })

  test('10: a pod cannot block itself', () => {
    const asked = ask(closed)
    expect(asked.may('x/web', 'x/web', 'TCP 80')).toBe('yes')
    expect(asked.may('x/web', 'x/other', 'TCP 80')).toBe('no')
  })

  test('11: replies are told to be allowed', () => {
    expect(ask(closed).answer('y/client', 'y/bare', 'TCP 80').notes.join()).toContain(
      'replies of an allowed connection',
    )
  })

  test('12: policies add up', () => {
    const one = networkPolicy('x/one', { podSelector: {}, ingress: [{ ports: [{ port: 81 }] }] })
    const two = networkPolicy('x/two', { podSelector: {}, ingress: [{ ports: [{ port: 80 }] }] })
    const asked = ask(one, two)
    expect(['TCP 80', 'TCP 81', 'TCP 82'].map((port) => asked.may('y/client', 'x/web', port))).toEqual([
      'yes',
      'yes',
      'no',
    ])
    expect(asked.answer('y/client', 'x/web', 'TCP 80').ingress.rules.map(({ object }) => object.name)).toEqual(['two'])
  })

  test('13: a host-networked pod counts as its node, and the answer says that this is undefined', () => {
    const host = pod('x/host', web, { hostNetwork: true, nodeName: 'n2', ip: '192.168.1.2' })
    const asked = askPolicies([...world, host, closed])
    expect(asked.may('y/client', 'x/host', 'TCP 80')).toBe('yes')
    expect(asked.may('x/host', 'x/web', 'TCP 80')).toBe('no')
    const { ingress, notes } = asked.answer('y/client', 'x/host', 'TCP 80')
    expect(sentencesOf(ingress)).toContain('undefined upstream')
    expect(notes.join()).toContain('host-networked pod x/host')
    expect(ingress.others[0]?.why).toContain('upstream does not define')
    const elsewhere = askPolicies([...world, host, networkPolicy('y/deny', { podSelector: {} })])
    expect(elsewhere.answer('y/client', 'x/host', 'TCP 80').ingress.others[0]?.why).toBe('it is for namespace y, not x')
  })

  test('13: as a source it is matched by the ranges of its node, not by its labels', () => {
    const host = pod('x/host', { app: 'client' }, { hostNetwork: true, nodeName: 'n2', ip: '192.168.1.2' })
    const byLabel = forWeb({ ingress: [{ from: [{ podSelector: {} }] }] })
    const byRange = forWeb({ ingress: [{ from: [{ ipBlock: { cidr: '192.168.1.0/24' } }] }] })
    expect(askPolicies([...world, host, byLabel]).may('x/host', 'x/web', 'TCP 80')).toBe('no')
    expect(askPolicies([...world, host, byRange]).may('x/host', 'x/web', 'TCP 80')).toBe('yes')
  })

  test('15: a pod that has ended holds no address', () => {
    const asked = askPolicies([...world, pod('x/done', {}, { phase: 'Succeeded' })])
    expect(asked.answer('y/client', 'x/done', 'TCP 80').allowed).toBe(false)
    expect(sentencesOf(asked.answer('x/done', 'x/web', 'TCP 80').egress)).toContain('holds no address')
  })

  test('17: both sides must allow', () => {
    const egress = networkPolicy('y/p', { podSelector: {}, egress: [{ ports: [{ port: 80 }] }] })
    const ingress = forWeb({ ingress: [{ ports: [{ port: 80 }, { port: 81 }] }] })
    const asked = ask(egress, ingress)
    expect(['TCP 80', 'TCP 81'].map((port) => asked.may('y/client', 'x/web', port))).toEqual(['yes', 'no'])
    const answer = asked.answer('y/client', 'x/web', 'TCP 81')
    expect([answer.ingress.decision, answer.egress.decision]).toEqual(['allowed', 'denied'])
  })

  test('a direction that is unknown does not hide that the other one denies', () => {
    const denied = forWeb({ policyTypes: ['Ingress'] })
    const open = networkPolicy('y/p', { podSelector: {}, policyTypes: ['Egress'] })
    expect(ask(denied, open).may('y/client', 'x/web', 'ICMP 8')).toBe('unknown')
    expect(ask(denied, open).may('y/client', 'x/web', 'TCP 8')).toBe('no')
  })
})

describe('reasons', () => {
  test('a denied connection names the policies that isolate, why each rule misses, and what to add', () => {
    const policy = forWeb({
      ingress: [
        { from: [{ podSelector: { matchLabels: { app: 'front' } } }] },
        { ports: [{ protocol: 'UDP', port: 53 }] },
      ],
    })
    const { ingress } = ask(policy).answer('x/other', 'x/web', 'TCP 80')
    expect(sentencesOf(ingress)).toBe(
      'NetworkPolicy x/p isolates pod x/web for ingress, and no rule of it allows TCP 80 from pod x/other',
    )
    expect(ingress.because[0]).toMatchObject({
      code: 'policy.isolated',
      object: { kind: 'NetworkPolicy', namespace: 'x', name: 'p' },
      path: 'spec',
    })
    expect(ingress.others.map(({ why }) => why)).toEqual([
      'it isolates for ingress, but no rule matches: spec.ingress[0]: of the pod, app=front is wanted, and it has app=other; spec.ingress[1]: it is for UDP 53, and this is TCP',
    ])
    expect(ingress.changes).toEqual([
      'add to NetworkPolicy x/p an ingress rule from pod x/other, TCP 80; a NetworkPolicy of its own that has the rule does as well',
    ])
    expect(ingress.tiers).toBe('[NPv1] Dropped')
  })

  test('policies that do not apply say why: namespace, label, direction', () => {
    const elsewhere = networkPolicy('y/else', { podSelector: {} })
    const other = networkPolicy('x/label', {
      podSelector: { matchExpressions: [{ key: 'app', operator: 'In', values: ['a', 'b'] }] },
    })
    const egress = networkPolicy('x/egress', { podSelector: {}, policyTypes: ['Egress'], egress: [{}] })
    const { ingress } = ask(elsewhere, other, egress).answer('x/other', 'x/web', 'TCP 80')
    expect(Object.fromEntries(ingress.others.map(({ object, why }) => [object.name, why]))).toEqual({
      else: 'it is for namespace y, not x',
      label: 'of the pod, app in (a, b) is wanted, and it has app=web',
      egress: 'its policyTypes leave ingress out',
    })
    expect(sentencesOf(ingress)).toBe('no policy selects pod x/web for ingress: then all is allowed')
  })
})

import { describe, expect, test } from 'vitest'
import { type Directory, emptyDirectory, type KnownPod } from '#flows/directory'
import { parseInstant } from '#flows/instant'
import type { ObservedFlow, ObservedPeer } from '#flows/observed-flow'
import { parseCluster } from '#manifests/parse-cluster'
import { ciliumSemantics } from '#trace/policy/cilium-semantics'
import { kubernetesSemantics } from '#trace/policy/k8s-semantics'
import { preparePolicies } from '#trace/policy/world'
import { type Audit, auditFlows, judgeFlow, reportAudit, startAudit } from './audit'

const at = (text: string): number => parseInstant(text) ?? Number.NaN

function start(yaml: string, known: Directory = emptyDirectory, semantics: 'k8s' | 'cilium' = 'k8s'): Audit {
  const { value: cluster } = parseCluster(yaml)
  const own = semantics === 'k8s' ? kubernetesSemantics : ciliumSemantics(cluster)
  return startAudit(preparePolicies(cluster, { semantics: own }), known)
}

const peerPod: ObservedPeer = {
  kind: 'pod',
  namespace: 'shop',
  name: 'frontend-1',
  uid: 'f-1',
  workload: { kind: 'Deployment', name: 'frontend' },
  labels: { app: 'frontend' },
}

function flow(words: Partial<ObservedFlow> = {}): ObservedFlow {
  return {
    firstSeen: at('2026-07-23T10:00:00'),
    lastSeen: at('2026-07-23T10:00:00'),
    hits: 1,
    pod: {
      namespace: 'shop',
      name: 'db-0',
      uid: 'db-0',
      address: '10.244.1.30',
      workload: { kind: 'StatefulSet', name: 'db' },
      labels: { app: 'db' },
    },
    direction: 'INGRESS',
    protocol: 'TCP',
    ownPort: 3306,
    peerAddress: '10.244.1.11',
    peerPort: 0,
    decision: 'ALLOW',
    peer: peerPod,
    outcome: { kind: 'resolved' },
    ...words,
  }
}

const policy = (rules: string): string => `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: { name: db, namespace: shop }
spec:
  podSelector: { matchLabels: { app: db } }
  policyTypes: [Ingress]
  ingress:
${rules}`
const fromFrontend = policy('  - from: [{ podSelector: { matchLabels: { app: frontend } } }]')
const kindOf = (audit: Audit, one: ObservedFlow): string => judgeFlow(audit.judge, one).kind
const nobody = {
  peer: null,
  outcome: { kind: 'rejected', reason: 'started-after', nearest: { kind: 'pod', namespace: 'shop', name: 'x' } },
} as const

describe('the stamped identity decides', () => {
  test('70: a policy that allows app=frontend allows the flow that was stamped with a frontend pod', () => {
    expect(kindOf(start(fromFrontend), flow())).toBe('allowed')
  })

  test('70: and whoever has the address today is of no matter', () => {
    const today = {
      namespace: 'shop',
      name: 'other',
      uid: 'o',
      labels: { app: 'other' },
      addresses: ['10.244.1.11'],
    } as unknown as KnownPod
    expect(kindOf(start(fromFrontend, { ...emptyDirectory, pods: [today] }), flow())).toBe('allowed')
  })

  test('an unattributed peer is judged as an address: a selector never matches it, a range does', () => {
    expect(kindOf(start(fromFrontend), flow(nobody))).toBe('denied')
    expect(kindOf(start(policy('  - from: [{ ipBlock: { cidr: 10.244.1.0/24 } }]')), flow(nobody))).toBe('allowed')
  })

  test('a pod whose labels were not kept is an address too', () => {
    expect(kindOf(start(fromFrontend), flow({ peer: { ...peerPod, labels: null } }))).toBe('denied')
  })

  test('Cilium: a pod is no address, and an unattributed one is', () => {
    const rule = (from: string): string => `
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: db, namespace: shop }
spec:
  endpointSelector: { matchLabels: { app: db } }
  ingress: [${from}]`
    const byRange = start(rule('{ fromCIDR: [10.244.1.0/24] }'), emptyDirectory, 'cilium')
    expect([kindOf(byRange, flow()), kindOf(byRange, flow(nobody))]).toEqual(['denied', 'allowed'])
    const byLabel = start(rule('{ fromEndpoints: [{ matchLabels: { app: frontend } }] }'), emptyDirectory, 'cilium')
    expect([kindOf(byLabel, flow()), kindOf(byLabel, flow(nobody))]).toEqual(['allowed', 'denied'])
  })

  test('the policies of either end count, whichever end recorded the flow', () => {
    const closed =
      'apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: { name: front, namespace: shop }\nspec: { podSelector: { matchLabels: { app: frontend } }, policyTypes: [Egress] }'
    const verdict = judgeFlow(start(closed).judge, flow())
    expect(verdict).toMatchObject({
      kind: 'denied',
      denials: [{ direction: 'egress', subject: 'shop/Deployment/frontend', other: 'shop/StatefulSet/db', port: 3306 }],
    })
  })

  test('a flow to a Service is judged at its backends’ port', () => {
    const known: Directory = {
      ...emptyDirectory,
      services: [
        {
          namespace: 'shop',
          name: 'db',
          uid: null,
          addresses: ['10.96.1.30'],
          selector: { app: 'db' },
          ports: [{ protocol: 'TCP', port: 80, targetPort: 3306, nodePort: 0 }],
          endpoints: [],
          createdAt: null,
          deletedAt: null,
        },
      ],
    }
    const own = {
      ...flow().pod,
      name: 'frontend-1',
      uid: 'f-1',
      workload: null,
      labels: { app: 'frontend' },
      address: '10.244.1.11',
    }
    const toService = flow({
      pod: own,
      direction: 'EGRESS',
      peerAddress: '10.96.1.30',
      peerPort: 80,
      peer: { ...peerPod, kind: 'service', name: 'db', uid: null, labels: null, workload: null },
    })
    const onPort = (port: number): string => policy(`  - ports: [{ port: ${port} }]`)
    expect(kindOf(start(onPort(3306), known), toService)).toBe('allowed')
    expect(kindOf(start(onPort(80), known), toService)).toBe('denied')
  })
})

describe('what nobody can tell is apart, with its reason', () => {
  const reasonOf = (audit: Audit, one: ObservedFlow): string => {
    const verdict = judgeFlow(audit.judge, one)
    return verdict.kind === 'unknown' ? `${verdict.reason}: ${verdict.sentence}` : verdict.kind
  }

  test('no port, no protocol with ports, no labels of the pod', () => {
    const audit = start(fromFrontend)
    expect(reasonOf(audit, flow({ ownPort: 0 }))).toBe('no-port: the port that was connected to is not told')
    expect(reasonOf(audit, flow({ protocol: 'ICMP' }))).toBe('protocol: of ICMP no port is known')
    expect(reasonOf(audit, flow({ pod: { ...flow().pod, uid: 'gone', labels: null } }))).toContain(
      'labels: the labels of shop/db-0 are not known',
    )
  })

  test('a pod whose namespace is not told', () => {
    const audit = start(fromFrontend)
    const nowhere = flow({ pod: { ...flow().pod, uid: null, namespace: null } })
    expect(reasonOf(audit, nowhere)).toBe(
      'namespace: the namespace of pod db-0 is not told, nor which policies hold for it; have pod.namespace recorded with the flow',
    )
    auditFlows(audit, [nowhere])
    expect(reportAudit(audit).unknowns).toMatchObject([{ examples: [{ pod: 'db-0 (namespace not told)' }] }])
  })

  test('a policy that selects by a label that flows do not keep', () => {
    const byHash = policy('  - from: [{ podSelector: { matchLabels: { pod-template-hash: abc } } }]')
    expect(reasonOf(start(byHash), flow())).toBe(
      'labels: NetworkPolicy shop/db selects by pod-template-hash, which flows do not keep',
    )
    const elsewhere = byHash.replace('namespace: shop', 'namespace: elsewhere')
    expect(reasonOf(start(elsewhere), flow())).toBe('allowed')
  })

  test('a port by name at a pod whose ports are not known', () => {
    const byName = policy('  - ports: [{ port: mysql }]')
    expect(reasonOf(start(byName), flow())).toContain('policy: a rule of NetworkPolicy shop/db names a port')
    const workload = { kind: 'StatefulSet', namespace: 'shop', name: 'db', labels: { app: 'db' }, isHostNetwork: false }
    const known = (port: number): Directory => ({
      ...emptyDirectory,
      workloads: [{ ...workload, ports: [{ name: 'mysql', protocol: 'TCP', port }] }],
    })
    expect(reasonOf(start(byName, known(3306)), flow())).toBe('allowed')
    expect(reasonOf(start(byName, known(3307)), flow())).toBe('denied')
  })

  test('namespaces by a label, where the Namespace is not there', () => {
    const byTeam = policy('  - from: [{ namespaceSelector: { matchLabels: { team: a } } }]')
    expect(reasonOf(start(byTeam), flow({ peer: { ...peerPod, namespace: 'front' } }))).toContain(
      'the labels of front are not known',
    )
    const there = `${byTeam}\n---\napiVersion: v1\nkind: Namespace\nmetadata: { name: front, labels: { team: a } }`
    expect(reasonOf(start(there), flow({ peer: { ...peerPod, namespace: 'front' } }))).toBe('allowed')
  })

  test('what a pod sends to itself meets no policy', () => {
    expect(reasonOf(start(policy('  []')), flow({ peerAddress: '10.244.1.30' }))).toBe('allowed')
  })
})

describe('the report', () => {
  const flows = [
    flow({ hits: 4 }),
    flow({ ...nobody, hits: 3, lastSeen: at('2026-07-23T11:00:00') }),
    flow({ ...nobody, hits: 1, ownPort: 33060 }),
    flow({ ...nobody, decision: 'DROP' }),
    flow({ ownPort: 0 }),
  ]

  test('counts flows and sightings, by workload and port, by policy and by peer', () => {
    const report = reportAudit(auditFlows(start(fromFrontend), flows))
    expect(report).toMatchObject({
      all: { flows: 5, hits: 10 },
      dropped: { flows: 1, hits: 1 },
      allowed: { flows: 1, hits: 4 },
      denied: { flows: 2, hits: 4 },
      unknown: { flows: 1, hits: 1 },
      policies: [{ object: { kind: 'NetworkPolicy', name: 'db' }, flows: 2, hits: 4 }],
      offenders: [{ peer: '10.244.1.11 (unattributed)', flows: 2, hits: 4 }],
    })
    expect(report.groups.map(({ subject, direction, port, hits }) => [subject, direction, port, hits])).toEqual([
      ['shop/StatefulSet/db', 'ingress', 3306, 3],
      ['shop/StatefulSet/db', 'ingress', 33060, 1],
    ])
    expect(report.groups[0]?.examples).toEqual([
      {
        time: at('2026-07-23T11:00:00'),
        pod: 'shop/db-0',
        peer: '10.244.1.11 (unattributed)',
        peerAddress: '10.244.1.11',
        direction: 'INGRESS',
        hits: 3,
      },
    ])
  })

  test('is the same for any order of the flows, and for any chunks', () => {
    const many = Array.from({ length: 30 }, (_, number) =>
      flow({ ...nobody, lastSeen: at('2026-07-23T10:00:00') + (number % 7), hits: number + 1 }),
    )
    const whole = reportAudit(auditFlows(start(fromFrontend), many))
    let audit = start(fromFrontend)
    for (const one of many.toReversed()) audit = auditFlows(audit, [one])
    expect(reportAudit(audit)).toEqual(whole)
    expect(whole.groups[0]?.examples).toHaveLength(3)
  })

  test('a policy that denies nothing is listed with nothing', () => {
    const report = reportAudit(auditFlows(start(fromFrontend), [flow()]))
    expect(report.policies).toEqual([
      { object: { kind: 'NetworkPolicy', namespace: 'shop', name: 'db' }, flows: 0, hits: 0 },
    ])
  })

  test('a rule that denies is told apart from the lack of one that allows', () => {
    const deny = `
apiVersion: policy.networking.k8s.io/v1alpha1
kind: AdminNetworkPolicy
metadata: { name: no-frontend }
spec:
  priority: 10
  subject: { namespaces: {} }
  ingress: [{ action: Deny, from: [{ pods: { namespaceSelector: {}, podSelector: { matchLabels: { app: frontend } } } }] }]`
    const { groups } = reportAudit(auditFlows(start(deny), [flow()]))
    expect(groups).toMatchObject([{ isByRule: true, policies: [{ kind: 'AdminNetworkPolicy', name: 'no-frontend' }] }])
  })
})

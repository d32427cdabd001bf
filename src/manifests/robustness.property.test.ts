import fc from 'fast-check'
import { dump } from 'js-yaml'
import { describe, expect, test } from 'vitest'
import type { Finding } from '#base/finding'
import type { Cluster } from '#model/cluster'
import { manifestFindings } from './findings'
import { parseCluster } from './parse-cluster'
import { parseManifestText } from './parse-text'
import { type Raw, rawNode, rawPod, rawRunningPod, rawService, rawWorkload } from './support/raw-objects'

/** One object of every kind that is read, with most of its fields. */
const objects: readonly Raw[] = [
  rawNode('node-a', '172.18.0.2', {
    podCIDRs: ['10.244.1.0/24'],
    taints: [{ key: 'a', effect: 'NoSchedule' }],
    labels: { zone: 'a' },
  }),
  rawService(
    'web',
    {
      type: 'LoadBalancer',
      selector: { app: 'web' },
      externalTrafficPolicy: 'Local',
      ipFamilies: ['IPv4'],
      ipFamilyPolicy: 'SingleStack',
      clusterIPs: ['10.96.0.20'],
      externalIPs: ['192.0.2.1'],
      loadBalancerSourceRanges: ['192.0.2.0/24'],
      sessionAffinity: 'ClientIP',
      sessionAffinityConfig: { clientIP: { timeoutSeconds: 5 } },
      ports: [
        { name: 'http', port: 80, targetPort: 'http', nodePort: 30080 },
        { name: 'dns', port: 53, protocol: 'UDP' },
      ],
    },
    { status: { loadBalancer: { ingress: [{ ip: '192.0.2.9' }] } } },
  ),
  rawRunningPod('web-0', '10.244.1.5', {
    nodeName: 'node-a',
    labels: { app: 'web' },
    owner: { kind: 'StatefulSet', name: 'web', controller: true },
    containers: [{ name: 'main', ports: [{ name: 'http', containerPort: 8080 }] }],
  }),
  rawPod('bare', {
    spec: {
      nodeSelector: { zone: 'a' },
      tolerations: [{ key: 'a', operator: 'Exists' }],
      hostNetwork: false,
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [{ matchExpressions: [{ key: 'zone', operator: 'In', values: ['a'] }] }],
          },
        },
      },
    },
  }),
  {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'web-x', namespace: 'shop' },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080 }],
    endpoints: [
      {
        addresses: ['10.244.1.5'],
        conditions: { ready: true },
        nodeName: 'node-a',
        targetRef: { kind: 'Pod', name: 'web-0' },
        hints: { forZones: [{ name: 'a' }] },
      },
    ],
  },
  {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: { name: 'ext', namespace: 'shop' },
    subsets: [{ addresses: [{ ip: '192.0.2.3' }], ports: [{ port: 80 }] }],
  },
  {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'c', namespace: 'shop', annotations: { a: 'b' } },
    data: { a: 'b' },
  },
  { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop', labels: { team: 'a' } } },
  {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: 'p', namespace: 'shop' },
    spec: {
      podSelector: { matchExpressions: [{ key: 'app', operator: 'In', values: ['web'] }] },
      policyTypes: ['Ingress', 'Egress'],
      ingress: [
        {
          from: [
            { namespaceSelector: { matchLabels: { team: 'a' } }, podSelector: {} },
            { ipBlock: { cidr: '10.0.0.0/8', except: ['10.1.0.0/16'] } },
          ],
          ports: [{ protocol: 'TCP', port: 80, endPort: 90 }, { port: 'http' }],
        },
      ],
    },
  },
  {
    apiVersion: 'policy.networking.k8s.io/v1alpha1',
    kind: 'AdminNetworkPolicy',
    metadata: { name: 'admin' },
    spec: {
      priority: 5,
      subject: { pods: { namespaceSelector: {}, podSelector: { matchLabels: { app: 'web' } } } },
      ingress: [{ name: 'r', action: 'Pass', from: [{ namespaces: {} }], ports: [{ portNumber: { port: 80 } }] }],
      egress: [
        { action: 'Deny', to: [{ networks: ['10.0.0.0/8'] }, { nodes: {} }] },
        { action: 'Allow', to: [{ domainNames: ['*.example.com'] }], ports: [{ portRange: { start: 1, end: 9 } }] },
      ],
    },
  },
  {
    apiVersion: 'policy.networking.k8s.io/v1alpha2',
    kind: 'ClusterNetworkPolicy',
    metadata: { name: 'cluster' },
    spec: {
      tier: 'Baseline',
      priority: 0,
      subject: { namespaces: {} },
      ingress: [
        {
          action: 'Accept',
          from: [{ pods: { podSelector: {} } }],
          protocols: [{ tcp: { destinationPort: { range: { start: 1, end: 9 } } } }, { destinationNamedPort: 'http' }],
        },
      ],
    },
  },
  {
    apiVersion: 'portolan.dev/v1alpha1',
    kind: 'TrafficPolicy',
    metadata: { name: 'web', namespace: 'shop', uid: 'u1', generation: 7 },
    spec: {
      stateful: true,
      rules: [
        {
          name: 'http',
          action: 'Allow',
          match: {
            paths: ['Private'],
            ipFamily: 'IPv4',
            sources: ['10.0.0.0/8'],
            protocols: ['TCP'],
            destinationPorts: [{ from: 80, to: 81 }],
          },
        },
        { name: 'ping', action: 'Deny', match: { protocols: ['ICMP'], icmp: [{ type: 8, code: 0 }] } },
      ],
    },
  },
  {
    apiVersion: 'portolan.dev/v1alpha1',
    kind: 'TrafficPolicyBinding',
    metadata: { name: 'web', namespace: 'shop' },
    spec: { vpcAttachmentRef: { name: 'web' }, ingressPolicyRef: { name: 'web' } },
    status: { nodes: [{ node: 'node-a', mode: 'Enforce', heartbeatTime: '2026-10-15T12:00:00Z' }] },
  },
  ...['Deployment', 'ReplicaSet', 'StatefulSet', 'DaemonSet', 'Job', 'CronJob'].map((kind) =>
    rawWorkload(kind, kind.toLowerCase(), { replicas: 2, parallelism: 2 }),
  ),
]

const strange = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    true,
    -1,
    0,
    1.5,
    1e300,
    70000,
    '',
    'x',
    '80',
    '010.0.0.1',
    '::ffff:10.0.0.1',
    '10.0.0.1/8',
    'fd00::1',
    'None',
    'n'.repeat(70),
    '__proto__',
    [],
    {},
    [[]],
    [null],
    [{}],
    { a: 1 },
    { items: [] },
  ),
  fc.jsonValue({ maxDepth: 2 }),
)

/** A path into a value: at each step one of what stands there. */
type Mutation = { readonly steps: readonly number[]; readonly value: unknown; readonly removes: boolean }

const mutation: fc.Arbitrary<Mutation> = fc.record({
  steps: fc.array(fc.nat(20), { minLength: 1, maxLength: 7 }),
  value: strange,
  removes: fc.boolean(),
})

function mutate(value: unknown, { steps, ...change }: Mutation): unknown {
  const [step, ...rest] = steps
  if (step === undefined || typeof value !== 'object' || value === null) return change.value
  const keys = Object.keys(value)
  const key = keys[step % Math.max(1, keys.length)]
  if (key === undefined) return change.value
  const entries = Object.entries(value).flatMap(([name, inner]) => {
    if (name !== key) return [[name, inner]]
    if (change.removes && rest.length === 0) return []
    return [[name, mutate(inner, { steps: rest, ...change })]]
  })
  return Array.isArray(value) ? entries.map(([, inner]) => inner) : Object.fromEntries(entries)
}

function expectSound(cluster: Cluster, findings: readonly Finding[]): void {
  for (const { code, severity, message } of findings) {
    expect(manifestFindings).toHaveProperty([code, 'severity'], severity)
    expect(message).toMatch(/^\S.*[^.;,\s]$/s)
    expect(message).not.toMatch(/undefined|NaN|\[object/)
  }
  for (const pod of cluster.pods.values()) {
    expect(pod.podIPs.every((ip) => typeof ip === 'string')).toBe(true)
    if (pod.isReady && pod.meta.assumed.length > 0) expect(pod.podIPs.length, pod.meta.name).toBeGreaterThan(0)
  }
  for (const { ports, meta } of cluster.services.values()) {
    for (const { port, protocol } of ports) {
      expect(Number.isInteger(port) && port > 0 && port < 65536, meta.name).toBe(true)
      expect(['TCP', 'UDP', 'SCTP']).toContain(protocol)
    }
  }
}

/** What was read, without where and in which order of fields. */
function essence({ value }: { readonly value: Cluster }): unknown {
  const withoutOrigin = (key: string, inner: unknown): unknown =>
    key === 'origin' ? undefined : inner instanceof Map ? [...inner] : inner
  return JSON.parse(JSON.stringify(value, withoutOrigin))
}

describe('whatever stands in the input', () => {
  test('objects changed anywhere are read without a throw, and every finding is sound', () => {
    fc.assert(
      fc.property(fc.array(mutation, { minLength: 1, maxLength: 4 }), (mutations) => {
        const changed = mutations.reduce<unknown>((value, change) => mutate(value, change), objects)
        const { value, findings } = parseCluster(JSON.stringify(changed), 'f.json')
        if (findings[0]?.code !== 'manifest.unreadable-text') expectSound(value, findings)
      }),
      { seed: 7, numRuns: 400, verbose: true },
    )
  })

  test('one changed object does not change how the others are read', () => {
    const services = ['a', 'b', 'c'].map((name, index) => rawService(name, { clusterIP: `10.96.0.${index + 1}` }))
    fc.assert(
      fc.property(mutation, (change) => {
        const changed = mutate(services[1], change)
        const { value } = parseCluster(JSON.stringify([services[0], changed, services[2]]), 'f.json')
        for (const name of ['a', 'c']) {
          const isHit = Object(changed).metadata?.name === name
          if (!isHit) expect(value.services.get(`shop/${name}`)?.ports).toMatchObject([{ port: 80 }])
        }
      }),
      { seed: 8, numRuns: 500, verbose: true },
    )
  })

  test('YAML and JSON of the same objects are the same cluster', () => {
    fc.assert(
      fc.property(mutation, fc.boolean(), (change, isList) => {
        const changed = mutate(objects, change)
        if (!Array.isArray(changed)) return
        const value = isList ? { apiVersion: 'v1', kind: 'List', items: changed } : changed
        const yaml = isList ? dump(value) : changed.map((item) => `---\n${dump(item, { indent: 4 })}`).join('')
        const fromJson = parseCluster(JSON.stringify(value), 'f')
        const fromYaml = parseCluster(yaml, 'f')
        expect(essence(fromYaml)).toEqual(essence(fromJson))
      }),
      { seed: 9, numRuns: 60, verbose: true },
    )
  })

  test('texts cut and garbled anywhere never throw', () => {
    const json = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }, null, 1)
    const yaml = objects.map((object) => dump(object)).join('---\n')
    const garble = fc.record({
      text: fc.constantFrom(json, yaml),
      at: fc.nat(),
      put: fc.constantFrom(
        '',
        '\t',
        '"',
        '}',
        ']',
        '{',
        '\n---\n',
        '\n',
        ': ',
        '- ',
        '&a ',
        '*a ',
        '\u0000',
        '%',
        '|\n',
      ),
      cuts: fc.nat(60),
    })
    fc.assert(
      fc.property(garble, ({ text, at, put, cuts }) => {
        const place = at % text.length
        const { refusal, findings } = parseManifestText(`${text.slice(0, place)}${put}${text.slice(place + cuts)}`, 'f')
        if (refusal !== undefined) expect(refusal.message).toMatch(/\S.*; \S|neither JSON nor YAML/)
        for (const { message } of findings) expect(message).not.toContain('undefined')
      }),
      { seed: 10, numRuns: 300, verbose: true },
    )
  })
})

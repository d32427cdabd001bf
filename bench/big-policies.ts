/** A cluster of a chosen number of pods in 300 workloads and 50 namespaces, with 500 policies, as `kubectl get … -o json` prints it. */

export type PolicySize = { readonly pods: number }

const workloadCount = 300
const namespaceCount = 50
const policyCount = 500

export function bigPolicies({ pods }: PolicySize): string {
  const items: object[] = Array.from({ length: namespaceCount }, (_, at) => ({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: {
      name: namespaceOf(at),
      labels: { team: `team-${at % 10}`, 'kubernetes.io/metadata.name': namespaceOf(at) },
    },
  }))
  for (let at = 0; at < workloadCount; at++) items.push(deployment(at))
  for (let at = 0; at < pods; at++) items.push(pod(at))
  for (let at = 0; at < policyCount; at++) items.push(policy(at))
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items })
}

const namespaceOf = (at: number): string => `space-${at % namespaceCount}`
const labelsOf = (workload: number): object => ({
  app: `app-${workload}`,
  tier: ['front', 'back', 'data'][workload % 3],
  zone: `zone-${workload % 7}`,
})

const ports = [
  { name: 'http', containerPort: 8080, protocol: 'TCP' },
  { name: 'dns', containerPort: 5353, protocol: 'UDP' },
  { name: 'sig', containerPort: 3868, protocol: 'SCTP' },
]

function deployment(at: number): object {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: `app-${at}`, namespace: namespaceOf(at) },
    spec: {
      replicas: 0,
      selector: { matchLabels: { app: `app-${at}` } },
      template: { metadata: { labels: labelsOf(at) }, spec: { containers: [{ name: 'main', ports }] } },
    },
  }
}

function pod(at: number): object {
  const workload = at % workloadCount
  const ip = `10.${16 + (at >> 16)}.${(at >> 8) & 255}.${at & 255}`
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `app-${workload}-7c5d8f6b94-${at.toString(36).padStart(5, '0')}`,
      namespace: namespaceOf(workload),
      labels: { ...labelsOf(workload), 'pod-template-hash': '7c5d8f6b94' },
      ownerReferences: [
        { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: `app-${workload}-7c5d8f6b94`, controller: true },
      ],
    },
    spec: { nodeName: `node-${at % 40}`, containers: [{ name: 'main', ports }] },
    status: {
      phase: 'Running',
      podIP: ip,
      podIPs: [{ ip }],
      conditions: [{ type: 'Ready', status: 'True' }],
    },
  }
}

/** Every tenth closes its namespace; the others open something, by labels, names, ranges of ports and addresses. */
function policy(at: number): object {
  const spec = at % 10 === 0 ? { podSelector: {}, policyTypes: ['Ingress', 'Egress'] } : opening(at)
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: `policy-${at}`, namespace: namespaceOf(at) },
    spec,
  }
}

function opening(at: number): object {
  const workload = at % workloadCount
  const podSelector =
    at % 3 === 0
      ? { matchLabels: { tier: ['front', 'back', 'data'][at % 3] } }
      : { matchLabels: { app: `app-${workload}` } }
  const peers = [
    { podSelector: { matchLabels: { tier: ['back', 'front'][at % 2] } } },
    { namespaceSelector: { matchLabels: { team: `team-${at % 10}` } } },
    {
      namespaceSelector: { matchExpressions: [{ key: 'team', operator: 'NotIn', values: [`team-${at % 4}`] }] },
      podSelector: {
        matchExpressions: [{ key: 'zone', operator: 'In', values: [`zone-${at % 7}`, `zone-${(at + 1) % 7}`] }],
      },
    },
    {
      ipBlock: {
        cidr: `${20 + (at % 100)}.${at % 250}.0.0/16`,
        except: [`${20 + (at % 100)}.${at % 250}.${at % 200}.0/24`],
      },
    },
  ]
  const some = [peers[at % 4], peers[(at + 1) % 4]]
  const own = [
    { protocol: 'TCP', port: 8000 + (at % 40), endPort: 8100 + (at % 60) },
    { protocol: 'TCP', port: 'http' },
    { protocol: 'UDP', port: 'dns' },
    { protocol: 'UDP', port: 5000 + (at % 500) },
    { protocol: 'SCTP', port: 3868 },
    { protocol: 'TCP', port: 443 },
  ]
  const list = [own[at % 6], own[(at + 1) % 6], own[(at + 3) % 6]]
  return {
    podSelector,
    policyTypes: at % 2 === 0 ? ['Ingress', 'Egress'] : ['Ingress'],
    ingress: [{ from: some, ports: list }, { from: [peers[(at + 2) % 4]] }],
    ...(at % 2 === 0 && { egress: [{ to: some, ports: list }, { ports: [{ protocol: 'UDP', port: 53 }] }] }),
  }
}

/** A cluster of 5,000 pods, 1,000 Services and 300 policies, as kubectl prints it, with what Cilium adds. */
import { bigCluster } from './big-cluster'

const policyCount = 300

export function bigCilium(): string {
  const { items } = JSON.parse(bigCluster({ services: 1000, podsPerService: 5 })) as {
    readonly items: readonly Item[]
  }
  const pods = items.filter(({ kind }) => kind === 'Pod')
  const nodes = items.filter(({ kind }) => kind === 'Node')
  const added = [
    ...pods.map(endpoint),
    ...nodes.map(ciliumNode),
    config,
    ...Array.from({ length: policyCount }, (_, index) => policy(index)),
    ...Array.from({ length: 20 }, (_, index) => gateway(index)),
  ]
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [...items, ...added] }, undefined, 4)
}

type Item = {
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly namespace: string
    readonly labels: Readonly<Record<string, string>>
  }
  readonly spec: { readonly podCIDRs: readonly string[] }
  readonly status: { readonly podIP: string; readonly addresses: readonly { readonly address: string }[] }
}

function endpoint({ metadata, status }: Item, index: number): object {
  const { name, namespace, labels } = metadata
  const own = Object.entries(labels).filter(([key]) => key !== 'pod-template-hash')
  const named = { policyEnabled: 'both', revision: 1, state: 'OK' }
  return {
    apiVersion: 'cilium.io/v2',
    kind: 'CiliumEndpoint',
    metadata: { name, namespace, labels },
    status: {
      encryption: {},
      'external-identifiers': {
        'cni-attachment-id': `${index}:eth0`,
        'k8s-namespace': namespace,
        'k8s-pod-name': name,
      },
      id: (index % 4000) + 1,
      identity: {
        id: 1000 + Math.floor(index / 5),
        labels: [
          ...own.map(([key, value]) => `k8s:${key}=${value}`),
          `k8s:io.cilium.k8s.namespace.labels.kubernetes.io/metadata.name=${namespace}`,
          'k8s:io.cilium.k8s.policy.cluster=default',
          'k8s:io.cilium.k8s.policy.serviceaccount=default',
          `k8s:io.kubernetes.pod.namespace=${namespace}`,
        ],
      },
      'named-ports': [{ name: 'http', port: 8080, protocol: 'TCP' }],
      networking: { addressing: [{ ipv4: status.podIP }], node: '192.168.0.1' },
      policy: { egress: named, ingress: named },
      state: 'ready',
    },
  }
}

function ciliumNode({ metadata, spec, status }: Item): object {
  return {
    apiVersion: 'cilium.io/v2',
    kind: 'CiliumNode',
    metadata: { name: metadata.name },
    spec: {
      addresses: status.addresses.map(({ address }) => ({ ip: address, type: 'InternalIP' })),
      ipam: { podCIDRs: spec.podCIDRs },
    },
  }
}

const config = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'cilium-config', namespace: 'kube-system' },
  data: {
    'kube-proxy-replacement': 'true',
    'routing-mode': 'tunnel',
    'bpf-lb-algorithm': 'maglev',
    'enable-egress-gateway': 'true',
  },
}

/** Each opens the pods of a few Services to a namespace and to ranges, with ports in ranges, and denies one range. */
function policy(index: number): object {
  const team = `team-${index % 50}`
  const selected = [index, index + 50, index + 100].map((number) => `app-${number % 1000}`)
  return {
    apiVersion: 'cilium.io/v2',
    kind: 'CiliumNetworkPolicy',
    metadata: { name: `policy-${index}`, namespace: team },
    spec: {
      endpointSelector: { matchExpressions: [{ key: 'app', operator: 'In', values: selected }] },
      ingress: [
        {
          fromEndpoints: [{ matchLabels: { 'k8s:io.kubernetes.pod.namespace': `team-${(index * 7) % 50}` } }],
          toPorts: [{ ports: [{ port: '8080', endPort: 8090, protocol: 'TCP' }] }],
        },
        { fromEntities: ['kube-apiserver'] },
      ],
      egress: [
        { toEndpoints: [{}] },
        {
          toCIDRSet: [{ cidr: `203.0.${index % 250}.0/24`, except: [`203.0.${index % 250}.8/29`] }],
          toPorts: [{ ports: [{ port: '443', protocol: 'TCP' }] }],
        },
      ],
      egressDeny: [{ toCIDR: [`198.18.${index % 250}.0/24`] }],
    },
  }
}

function gateway(index: number): object {
  return {
    apiVersion: 'cilium.io/v2',
    kind: 'CiliumEgressGatewayPolicy',
    metadata: { name: `egress-${index}` },
    spec: {
      selectors: [{ podSelector: { matchLabels: { app: `app-${index * 50}` } } }],
      destinationCIDRs: ['0.0.0.0/0'],
      excludedCIDRs: ['10.0.0.0/8'],
      egressGateway: { nodeSelector: { matchLabels: { 'topology.kubernetes.io/zone': `zone-${index % 3}` } } },
    },
  }
}

/** A cluster of a chosen size as `kubectl get … -o json` prints it: Services with ten pods each, on a hundred nodes. */

export type Size = { readonly services: number; readonly podsPerService: number }

const nodeCount = 100

export function bigCluster({ services, podsPerService }: Size): string {
  const items: object[] = Array.from({ length: nodeCount }, (_, index) => node(index))
  for (let index = 0; index < services; index++) {
    items.push(service(index))
    for (let replica = 0; replica < podsPerService; replica++) items.push(pod(index, replica, podsPerService))
  }
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items }, undefined, 4)
}

function node(index: number): object {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: `node-${index}`, labels: { 'topology.kubernetes.io/zone': `zone-${index % 3}` } },
    spec: {
      podCIDR: `10.${128 + (index >> 5)}.${(index & 31) * 8}.0/21`,
      podCIDRs: [`10.${128 + (index >> 5)}.${(index & 31) * 8}.0/21`],
    },
    status: {
      addresses: [{ type: 'InternalIP', address: `192.168.${index >> 7}.${(index & 127) + 1}` }],
      allocatable: { cpu: '8' },
    },
  }
}

const namespaceOf = (index: number): string => `team-${index % 50}`

function service(index: number): object {
  const ip = `10.96.${index >> 8}.${index & 255}`
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: `app-${index}`, namespace: namespaceOf(index), labels: { app: `app-${index}` } },
    spec: {
      type: index % 20 === 0 ? 'NodePort' : 'ClusterIP',
      clusterIP: ip,
      clusterIPs: [ip],
      ipFamilies: ['IPv4'],
      selector: { app: `app-${index}` },
      ports: [
        {
          name: 'http',
          port: 80,
          protocol: 'TCP',
          targetPort: 'http',
          ...(index % 20 === 0 ? { nodePort: 30000 + index / 20 } : {}),
        },
      ],
    },
    status: { loadBalancer: {} },
  }
}

function pod(index: number, replica: number, perService: number): object {
  const number = index * perService + replica
  const ip = `10.${16 + (number >> 16)}.${(number >> 8) & 255}.${number & 255}`
  const name = `app-${index}-7c5d8f6b94-${number.toString(36).padStart(5, '0')}`
  const time = '2026-01-01T00:00:00Z'
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: namespaceOf(index),
      uid: `00000000-0000-4000-8000-${number.toString(16).padStart(12, '0')}`,
      creationTimestamp: time,
      labels: { app: `app-${index}`, 'pod-template-hash': '7c5d8f6b94' },
      ownerReferences: [
        { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: `app-${index}-7c5d8f6b94`, uid: 'x', controller: true },
      ],
    },
    spec: {
      nodeName: `node-${number % nodeCount}`,
      containers: [
        {
          name: 'app',
          image: 'registry.example/app:1.0',
          ports: [{ name: 'http', containerPort: 8080, protocol: 'TCP' }],
          resources: { requests: { cpu: '100m', memory: '128Mi' } },
          env: [{ name: 'POD_IP', valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: 'status.podIP' } } }],
        },
      ],
      restartPolicy: 'Always',
      serviceAccountName: 'default',
    },
    status: {
      phase: 'Running',
      hostIP: '192.168.0.1',
      podIP: ip,
      podIPs: [{ ip }],
      startTime: time,
      conditions: ['Initialized', 'Ready', 'ContainersReady', 'PodScheduled'].map((type) => ({
        type,
        status: 'True',
        lastTransitionTime: time,
      })),
    },
  }
}

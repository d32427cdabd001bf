/** The pods of the demo's recorded day: those of the sample cluster, and those that come and go while it is recorded. */
import type { Cluster } from '#model/cluster'
import type { OwnerReference } from '#model/meta'

/** A pod as an agent reports it. */
export type DemoPod = {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly address: string
  readonly node: string
  readonly labels: Readonly<Record<string, string>>
  readonly owner: OwnerReference | undefined
  readonly isHostNetwork: boolean
  /** RFC 3339. */
  readonly startedAt: string
}

/** When the sample cluster's objects say that its pods started. */
const clusterStart = '2026-10-05T08:12:31Z'

const nodeAddresses: Readonly<Record<string, string>> = { 'node-a': '172.18.0.2', 'node-b': '172.18.0.3' }

export function podsOfSample({ pods }: Cluster): readonly DemoPod[] {
  return [...pods.values()].flatMap(({ meta, podIPs, nodeName, hostNetwork }) => {
    const [address] = podIPs
    if (address === undefined || nodeName === undefined) return []
    const { namespace, name, labels, uid = name, ownerReferences } = meta
    const pod = { namespace, name, uid, address, node: nodeName, labels, owner: ownerReferences[0] }
    return [{ ...pod, isHostNetwork: hostNetwork, startedAt: clusterStart }]
  })
}

type PodWords = {
  readonly namespace: string
  readonly owner: readonly [kind: string, name: string]
  /** What the name has after the owner's. */
  readonly ending: string
  readonly address: string
  readonly node: string
  readonly labels: Readonly<Record<string, string>>
  readonly startedAt: string
}

function podOf({ namespace, owner: [kind, ownerName], ending, ...rest }: PodWords): DemoPod {
  const name = `${ownerName}-${ending}`
  return {
    ...rest,
    namespace,
    name,
    uid: `demo-${namespace}-${name}`,
    owner: { kind, name: ownerName, controller: true },
    isHostNetwork: nodeAddresses[rest.node] === rest.address,
  }
}

/** A host-network DaemonSet: its pods have the addresses of their nodes. */
export function probes(startedAt: string): readonly DemoPod[] {
  return Object.entries(nodeAddresses).map(([node, address], index) =>
    podOf({
      namespace: 'monitoring',
      owner: ['DaemonSet', 'node-probe'],
      ending: ['7hx2c', 'vq9md'][index] ?? '',
      address,
      node,
      labels: { app: 'node-probe', 'controller-revision-hash': '5b7c9d8f46', 'pod-template-generation': '1' },
      startedAt,
    }),
  )
}

/** A CronJob's Job is named by the minutes since the epoch at which it was due; addresses are used again in turn. */
export function backup(hour: number, startedAt: string): DemoPod {
  const minutes = Math.floor(Date.parse(startedAt) / 60_000)
  const job = `db-backup-${minutes}`
  const addresses = ['10.244.1.30', '10.244.1.31', '10.244.1.32']
  return podOf({
    namespace: 'shop',
    owner: ['Job', job],
    ending: endings[hour % endings.length] ?? '',
    // From 16:00 on another workload has the middle one.
    address: (hour >= 15 ? addresses[(hour % 2) * 2] : addresses[hour % 3]) ?? '',
    node: 'node-a',
    labels: { app: 'db-backup', 'batch.kubernetes.io/job-name': job, 'job-name': job },
    startedAt,
  })
}

const endings = ['4kzq8', 'b7w2n', 'x9f5t', 'm3c6r', 'h8v4d', 'q2p7s', 'z5t9k']

/** Gets an address that hourly backups had before. */
export function report(startedAt: string): DemoPod {
  return podOf({
    namespace: 'analytics',
    owner: ['ReplicaSet', 'report-7d9f5c8b64'],
    ending: 'j6n3x',
    address: '10.244.1.31',
    node: 'node-a',
    labels: { app: 'report', 'pod-template-hash': '7d9f5c8b64' },
    startedAt,
  })
}

/** A third checkout, which connects before anybody has reported it. */
export function lateCheckout(startedAt: string): DemoPod {
  return podOf({
    namespace: 'shop',
    owner: ['ReplicaSet', 'checkout-84b6cd5f79'],
    ending: 't2w9k',
    address: '10.244.2.33',
    node: 'node-b',
    labels: { app: 'checkout', 'pod-template-hash': '84b6cd5f79' },
    startedAt,
  })
}

/** A second client, with the address of a pod that nobody ever reported. */
export function secondClient(startedAt: string): DemoPod {
  return podOf({
    namespace: 'shop',
    owner: ['ReplicaSet', 'client-79b8c6d5f4'],
    ending: 'm4v8s',
    address: '10.244.2.31',
    node: 'node-b',
    labels: { app: 'client', 'pod-template-hash': '79b8c6d5f4' },
    startedAt,
  })
}

/** `POST /pod/spec`. */
export function podPost(pod: DemoPod, seenAt: string): object {
  const hostAddress = nodeAddresses[pod.node] ?? ''
  return {
    pod_name: pod.name,
    pod_namespace: pod.namespace,
    pod_ip: pod.address,
    pod_obj: {
      metadata: {
        name: pod.name,
        namespace: pod.namespace,
        uid: pod.uid,
        labels: pod.labels,
        ownerReferences: pod.owner === undefined ? [] : [{ ...pod.owner, controller: true }],
      },
      spec: { hostNetwork: pod.isHostNetwork, nodeName: pod.node },
      status: { startTime: pod.startedAt, hostIP: hostAddress, hostIPs: [{ ip: hostAddress }] },
    },
    node_name: pod.node,
    time_stamp: seenAt,
  }
}

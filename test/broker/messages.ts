/** What agents post: pods with a manifest, Services, flows, with only what a test cares about to be said. */

export type PodWords = {
  readonly name: string
  readonly namespace?: string
  readonly ip: string
  readonly ips?: readonly string[]
  readonly uid?: string
  /** status.startTime of the manifest; absent: the manifest does not tell. */
  readonly start?: string
  readonly seen: string
  readonly hostNetwork?: boolean
  readonly workload?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly node?: string
}

export function podPost(pod: PodWords): object {
  const [kind, name] = pod.workload?.split('/') ?? [null, null]
  return {
    pod_name: pod.name,
    pod_namespace: pod.namespace ?? 'shop',
    pod_ip: pod.ip,
    ...(pod.ips !== undefined && { pod_ips: pod.ips }),
    pod_obj: {
      metadata: {
        name: pod.name,
        namespace: pod.namespace ?? 'shop',
        uid: pod.uid ?? `uid-of-${pod.namespace ?? 'shop'}-${pod.name}-${pod.start ?? 'unknown'}`,
        labels: { app: pod.name, 'pod-template-hash': '6d4cf56db6', ...pod.labels },
        managedFields: [{ manager: 'kubelet' }],
      },
      spec: { hostNetwork: pod.hostNetwork ?? false, containers: [{ name: 'main' }] },
      status: { ...(pod.start !== undefined && { startTime: pod.start }), phase: 'Running' },
    },
    time_stamp: pod.seen,
    node_name: pod.node ?? 'node-a',
    is_dead: false,
    pod_identity: pod.name,
    workload_selector_labels: null,
    workload_kind: kind,
    workload_name: name,
    // Fields of other versions are let through.
    capture_level: 'full',
  }
}

export type FlowWords = {
  readonly pod?: string
  readonly namespace?: string
  readonly ip?: string
  readonly port?: string
  readonly protocol?: string
  readonly type?: 'INGRESS' | 'EGRESS'
  readonly peer: string
  readonly peerPort?: string
  readonly decision?: string
  readonly time: string
  readonly uuid?: string
}

export function flowPost(flow: FlowWords): object {
  const isEgress = (flow.type ?? 'INGRESS') === 'EGRESS'
  return {
    uuid: flow.uuid ?? crypto.randomUUID(),
    pod_name: flow.pod ?? 'mysql-0',
    pod_namespace: flow.namespace ?? 'db',
    pod_ip: flow.ip ?? '10.244.9.9',
    pod_port: flow.port ?? (isEgress ? '0' : '3306'),
    ip_protocol: flow.protocol ?? 'TCP',
    traffic_type: flow.type ?? 'INGRESS',
    traffic_in_out_ip: flow.peer,
    traffic_in_out_port: flow.peerPort ?? (isEgress ? '443' : '0'),
    decision: flow.decision ?? 'ALLOW',
    time_stamp: flow.time,
  }
}

export function servicePost(service: {
  readonly name: string
  readonly namespace?: string
  readonly ip: string
  readonly uid?: string
  readonly seen?: string
  readonly spec?: object
  readonly status?: object
}): object {
  return {
    svc_ip: service.ip,
    svc_name: service.name,
    svc_namespace: service.namespace ?? 'shop',
    service_spec: {
      metadata: {
        name: service.name,
        namespace: service.namespace ?? 'shop',
        uid: service.uid ?? `uid-of-${service.name}`,
        managedFields: [],
      },
      spec: { clusterIP: service.ip, selector: { app: service.name }, ports: [{ port: 80 }], ...service.spec },
      status: service.status ?? { loadBalancer: {} },
    },
    time_stamp: service.seen ?? '2026-07-01T00:00:00',
  }
}

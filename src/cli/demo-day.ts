/** The demo's recorded day: what agents told the broker of a shop's cluster on 6 October 2026, message by message. */
import type { Cluster } from '#model/cluster'
import { isHeadless, type Service } from '#model/service'
import { backup, type DemoPod, lateCheckout, podPost, podsOfSample, probes, report, secondClient } from './demo-pods'

export type DayMessage = {
  /** RFC 3339: when the broker received it. */
  readonly at: string
  readonly told: 'pod' | 'service' | 'death' | 'flows' | 'late-pass'
  readonly path: string
  readonly body: unknown
}

export const day = '2026-10-06'
/** A pod that nobody reported connects to the database; its address has another holder 88 s later. */
export const unattributedAt = `${day}T09:14:02Z`
export const unattributedAddress = '10.244.2.31'

const hours = Array.from({ length: 24 }, (_, hour) => hour)

/** In the order in which they were received. */
export function recordedDay(cluster: Cluster): readonly DayMessage[] {
  const pods = podsOfSample(cluster)
  const messages = [
    ...[...pods, ...probes(at(0, 0, 10))].map((pod) => podMessage(pod, at(0, 0, 20))),
    ...[...cluster.services.values()].flatMap((service) => serviceMessage(service)),
    ...hours.flatMap((hour) => hourOf(pods, hour)),
    ...morning(pods),
    ...rollout(pods),
    ...afternoon(pods),
  ]
  return messages.toSorted((one, other) => (one.at < other.at ? -1 : one.at > other.at ? 1 : 0))
}

/** `2026-10-06T09:14:02Z`. */
function at(hour: number, minute: number, second = 0): string {
  return `${day}T${[hour, minute, second].map((part) => String(part).padStart(2, '0')).join(':')}Z`
}

type Talk = {
  readonly pod: DemoPod
  readonly direction: 'INGRESS' | 'EGRESS'
  readonly peer: string
  readonly port: number
  readonly protocol?: 'TCP' | 'UDP'
  readonly decision?: 'ALLOW' | 'DROP'
  readonly hits: number
  readonly time: string
}

const ephemeral = 0

function flowPost({ pod, direction, peer, port, protocol = 'TCP', decision = 'ALLOW', hits, time }: Talk): object {
  const isEgress = direction === 'EGRESS'
  return {
    pod_name: pod.name,
    pod_namespace: pod.namespace,
    pod_uid: pod.uid,
    pod_ip: pod.address,
    pod_port: String(isEgress ? ephemeral : port),
    ip_protocol: protocol,
    traffic_type: direction,
    traffic_in_out_ip: peer,
    traffic_in_out_port: String(isEgress ? port : ephemeral),
    decision,
    time_stamp: time,
    hits,
  }
}

function podMessage(pod: DemoPod, seenAt: string): DayMessage {
  return { at: seenAt, told: 'pod', path: '/pod/spec', body: podPost(pod, seenAt) }
}

function deathMessage({ namespace, name, address }: DemoPod, diedAt: string): DayMessage {
  const body = { pod_name: name, pod_namespace: namespace, pod_ip: address }
  return { at: diedAt, told: 'death', path: '/pod/mark_dead', body }
}

function flowMessage(receivedAt: string, talks: readonly Talk[]): DayMessage {
  return { at: receivedAt, told: 'flows', path: '/pod/traffic/batch', body: talks.map(flowPost) }
}

/** A headless Service has no address of its own. */
function serviceMessage(service: Service): readonly DayMessage[] {
  const { meta, clusterIPs, selector, ports, type } = service
  const [address] = clusterIPs
  if (isHeadless(service) || address === undefined) return []
  const { namespace, name, uid, labels } = meta
  const body = {
    svc_ip: address,
    svc_name: name,
    svc_namespace: namespace,
    service_spec: {
      metadata: { namespace, name, uid, labels },
      spec: { type, clusterIP: address, clusterIPs, selector, ports },
    },
    time_stamp: at(0, 0, 20),
  }
  return [{ at: at(0, 0, 20), told: 'service', path: '/svc/spec', body }]
}

/** The cluster's pods of an app. */
function podsOf(pods: readonly DemoPod[], app: string): readonly DemoPod[] {
  return pods.filter(({ labels }) => labels.app === app)
}

/** More by day than by night, and the same on every run. */
function busyness(hour: number): number {
  return 2 + Math.round(10 * Math.sin((Math.PI * hour) / 24))
}

const dns = '10.96.0.10'
const services = { checkout: '10.96.0.30', catalog: '10.96.0.50' } as const
const objectStore = '198.51.100.20'
const database = 5432

function hourOf(pods: readonly DemoPod[], hour: number): readonly DayMessage[] {
  const pod = backup(hour, at(hour, 5))
  const [, replica] = podsOf(pods, 'db')
  return [
    flowMessage(at(hour, 58), usualTalk(pods, hour)),
    podMessage(pod, at(hour, 5, 3)),
    ...(replica === undefined
      ? []
      : [flowMessage(at(hour, 5, 30), between(pod, replica, { port: database, hits: 2, time: at(hour, 5, 8) }))]),
    deathMessage(pod, at(hour, 7)),
  ]
}

/** Both ends are watched. */
function between(from: DemoPod, to: DemoPod, talk: Pick<Talk, 'port' | 'hits' | 'time'>): readonly Talk[] {
  return [
    { ...talk, pod: from, direction: 'EGRESS', peer: to.address },
    { ...talk, pod: to, direction: 'INGRESS', peer: from.address },
  ]
}

function usualTalk(pods: readonly DemoPod[], hour: number): readonly Talk[] {
  const hits = busyness(hour)
  const time = at(hour, 20, hour)
  const talk = { hits, time, port: database }
  const [web, checkout, catalog] = [podsOf(pods, 'web'), podsOf(pods, 'checkout'), podsOf(pods, 'catalog')]
  const [primary, replica] = podsOf(pods, 'db')
  const resolvers = pods.filter(({ labels }) => labels['k8s-app'] === 'kube-dns')
  if (primary === undefined || replica === undefined) return []
  return [
    ...checkout.map((pod): Talk => ({ pod, direction: 'INGRESS', peer: '203.0.113.40', port: 8080, hits, time })),
    ...web
      .slice(0, 3)
      .flatMap((pod) => [
        ...behind(pod, checkout, { service: services.checkout, port: 8080, hits, time }),
        ...behind(pod, catalog, { service: services.catalog, port: 8080, hits, time }),
      ]),
    ...[...checkout, ...catalog].flatMap((pod) => between(pod, primary, talk)),
    ...between(replica, primary, talk),
    ...[...web, ...checkout, ...catalog, primary, replica].flatMap((pod) => lookUps(pod, resolvers, { hits, time })),
    ...(hour % 6 === 3 ? [archive(primary, time)] : []),
    ...fromNodes([primary, replica], { hits: 4, time }),
  ]
}

type ServiceTalk = {
  readonly service: string
  readonly port: number
  readonly hits: number
  readonly time: string
}

/** The client sees the Service's address, each backend sees the client. */
function behind(
  client: DemoPod,
  backends: readonly DemoPod[],
  { service, port, hits, time }: ServiceTalk,
): readonly Talk[] {
  return [
    { pod: client, direction: 'EGRESS', peer: service, port: 80, hits, time },
    ...backends.map((pod): Talk => {
      const isSecondVersion = pod.labels.version === 'v2'
      return { pod, direction: 'INGRESS', peer: client.address, port: isSecondVersion ? 9090 : port, hits, time }
    }),
  ]
}

function lookUps(
  pod: DemoPod,
  [resolver]: readonly DemoPod[],
  { hits, time }: Pick<Talk, 'hits' | 'time'>,
): readonly Talk[] {
  const talk = { hits, time, port: 53, protocol: 'UDP' } as const
  const asked: Talk = { ...talk, pod, direction: 'EGRESS', peer: dns }
  return resolver === undefined ? [asked] : [asked, { ...talk, pod: resolver, direction: 'INGRESS', peer: pod.address }]
}

/** Write-ahead logs go to an object store outside. */
function archive(pod: DemoPod, time: string): Talk {
  return { pod, direction: 'EGRESS', peer: objectStore, port: 443, hits: 1, time }
}

function fromNodes(targets: readonly DemoPod[], { hits, time }: Pick<Talk, 'hits' | 'time'>): readonly Talk[] {
  const addresses = probes('').map(({ address }) => address)
  return targets.flatMap((pod) =>
    addresses.map((peer): Talk => ({ pod, direction: 'INGRESS', peer, port: database, hits, time })),
  )
}

/** A migration ran for eight seconds. Its agent's batch comes late, when a new client has the address. */
function morning(pods: readonly DemoPod[]): readonly DayMessage[] {
  const client = secondClient(at(9, 15, 30))
  const [primary] = podsOf(pods, 'db')
  const talk = { port: database, hits: 3, time: unattributedAt }
  return [
    podMessage(client, at(9, 15, 40)),
    ...(primary === undefined
      ? []
      : [
          flowMessage(at(9, 20), [{ ...talk, pod: primary, direction: 'INGRESS', peer: unattributedAddress } as const]),
        ]),
  ]
}

/** A third checkout connects before its pod is reported; the late pass finds out who it was. */
function rollout(pods: readonly DemoPod[]): readonly DayMessage[] {
  const pod = lateCheckout(at(11, 4, 58))
  const [primary] = podsOf(pods, 'db')
  const talk = { port: database, hits: 5, time: at(11, 5, 1) }
  return [
    ...(primary === undefined
      ? []
      : [flowMessage(at(11, 5, 10), [{ ...talk, pod: primary, direction: 'INGRESS', peer: pod.address } as const])]),
    podMessage(pod, at(11, 5, 40)),
    { at: at(11, 6), told: 'late-pass', path: '', body: undefined },
  ]
}

/** A report has an address that backups had; a client tries the database and is dropped. */
function afternoon(pods: readonly DemoPod[]): readonly DayMessage[] {
  const pod = report(at(16, 0))
  const [client] = podsOf(pods, 'client')
  const [primary, replica] = podsOf(pods, 'db')
  if (client === undefined || primary === undefined || replica === undefined) return []
  const dropped = { port: database, decision: 'DROP', hits: 3, time: at(15, 30) } as const
  return [
    flowMessage(at(15, 31), [{ ...dropped, pod: primary, direction: 'INGRESS', peer: client.address }]),
    podMessage(pod, at(16, 0, 9)),
    ...[16, 19, 22].map((hour) =>
      flowMessage(at(hour, 31), between(pod, replica, { port: database, hits: 12, time: at(hour, 30) })),
    ),
  ]
}

/** The pods and Services that the store knows, as the directory that audits look identities up in. */
import type { Directory, KnownPod, KnownService } from '#flows/directory'
import type { Store, StoredPod, StoredService } from '#store/store'
import { servicePortsOf } from '#wire/owner-record'
import { labelsOf, objectIn } from '#wire/pod-record'
import { isJsonObject } from '#wire/schema-parts'
import type { Clock } from './clock'

/** Living pods: of those that are gone the flows themselves keep labels. Deleted Services tell which ports there were. */
export async function readStoreDirectory(store: Store): Promise<Directory> {
  const pods: KnownPod[] = []
  for await (const page of store.streamPods({ isDead: false })) for (const pod of page) pods.push(knownPod(pod))
  const services: KnownService[] = []
  for await (const page of store.streamServices({ withDeleted: true })) {
    for (const service of page) services.push(knownService(service))
  }
  return { pods, services, nodes: [], workloads: [] }
}

const microsFresh = 60_000_000

/** Read at most once a minute: what a flow was stamped with counts, and the directory only adds to it. */
export function rememberedDirectory(store: Store, clock: Clock): () => Promise<Directory> {
  let last: { readonly at: number; readonly directory: Directory } | undefined
  return async () => {
    const now = clock.now()
    if (last !== undefined && Math.abs(now - last.at) < microsFresh) return last.directory
    const directory = await readStoreDirectory(store)
    last = { at: now, directory }
    return directory
  }
}

function knownPod(pod: StoredPod): KnownPod {
  const all = isJsonObject(pod.record) ? labelsOf(objectIn(pod.record, 'metadata')?.labels) : null
  return {
    namespace: pod.namespace,
    name: pod.name,
    uid: pod.uid,
    labels: all ?? pod.stableLabels ?? {},
    hasAllLabels: all !== null,
    addresses: pod.addresses,
    isHostNetwork: pod.isHostNetwork === true,
    nodeName: pod.nodeName,
    workload: pod.workload,
    startedAt: pod.startedAt,
    lastSeen: pod.lastSeen,
    isDead: pod.isDead,
    diedAt: pod.diedAt,
    deathReason: pod.deathReason,
    ports: null,
  }
}

function knownService(service: StoredService): KnownService {
  return {
    namespace: service.namespace,
    name: service.name,
    uid: service.uid,
    addresses: service.addresses.map(({ address }) => address),
    selector: service.selector,
    ports: servicePortsOf(service.record),
    endpoints: [],
    createdAt: service.createdAt,
    deletedAt: service.deletedAt,
  }
}

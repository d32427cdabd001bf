/** A directory: the pods, Services, nodes and workloads that are known beside the flows, and how they are looked up. */
import type { LabelSelector } from '#model/selector'
import { canonicalAddress } from './address'
import { chooseHolder } from './choose-holder'
import type { DeathReason, Holder, Labels, PodHolder, ServiceHolder, Workload } from './holder'
import type { Instant } from './instant'

export type KnownPort = { readonly name?: string; readonly protocol: string; readonly port: number }

export type KnownPod = {
  readonly namespace: string
  readonly name: string
  readonly uid: string | null
  readonly labels: Labels
  /** False where only labels that outlive a roll-out are known. */
  readonly hasAllLabels: boolean
  readonly addresses: readonly string[]
  readonly isHostNetwork: boolean
  readonly nodeName: string | null
  readonly serviceAccount?: string
  readonly workload: Workload | null
  /** Null: not known, and then it is nobody's peer by its address alone. */
  readonly startedAt: Instant | null
  readonly lastSeen: Instant | null
  readonly isDead: boolean
  readonly diedAt: Instant | null
  readonly deathReason: DeathReason | null
  /** Ports of its containers; null where these are not known. */
  readonly ports: readonly KnownPort[] | null
}

export type KnownServicePort = {
  readonly protocol: string
  readonly port: number
  readonly targetPort: number | string
  /** 0 when there is none. */
  readonly nodePort: number
}

export type KnownService = {
  readonly namespace: string
  readonly name: string
  readonly uid: string | null
  readonly addresses: readonly string[]
  /** Null or without any label: nobody is selected. */
  readonly selector: Labels | null
  readonly ports: readonly KnownServicePort[]
  /** Addresses and ports behind a Service without selector; empty where they are not known. */
  readonly endpoints: readonly { readonly address: string; readonly ports: readonly KnownPort[] }[]
  readonly createdAt: Instant | null
  readonly deletedAt: Instant | null
}

export type KnownNode = { readonly name: string; readonly addresses: readonly string[] }

export type KnownWorkload = Workload & {
  readonly namespace: string
  readonly selector?: LabelSelector
  /** Of its pods. */
  readonly labels: Labels
  readonly isHostNetwork: boolean
  readonly ports: readonly KnownPort[]
}

export type Directory = {
  readonly pods: readonly KnownPod[]
  readonly services: readonly KnownService[]
  readonly nodes: readonly KnownNode[]
  readonly workloads: readonly KnownWorkload[]
}

export const emptyDirectory: Directory = { pods: [], services: [], nodes: [], workloads: [] }

/** Of what both know, the first counts. */
export function joinDirectories(first: Directory, second: Directory): Directory {
  const key = ({ namespace, name, uid }: Named): string => `${namespace}/${name} ${uid ?? ''}`
  const isNew = (known: readonly Named[]): ((one: Named) => boolean) => {
    const keys = new Set(known.map(key))
    return (one) => !keys.has(key(one))
  }
  const nodes = new Set(first.nodes.map(({ name }) => name))
  return {
    pods: [...first.pods, ...second.pods.filter(isNew(first.pods))],
    services: [...first.services, ...second.services.filter(isNew(first.services))],
    nodes: [...first.nodes, ...second.nodes.filter(({ name }) => !nodes.has(name))],
    workloads: [...first.workloads, ...second.workloads],
  }
}

type Named = { readonly namespace: string; readonly name: string; readonly uid: string | null }

export type DirectoryIndex = Directory & {
  readonly podsByUid: ReadonlyMap<string, KnownPod>
  /** By `namespace/name`: several incarnations. */
  readonly podsByName: ReadonlyMap<string, readonly KnownPod[]>
  readonly podsByNamespace: ReadonlyMap<string, readonly KnownPod[]>
  readonly servicesByName: ReadonlyMap<string, readonly KnownService[]>
  readonly nodesByAddress: ReadonlyMap<string, KnownNode>
  readonly holdersByAddress: ReadonlyMap<string, readonly Holder[]>
  /** By `kind namespace/name`. */
  readonly workloadsByName: ReadonlyMap<string, KnownWorkload>
  /** Endpoints of default/kubernetes. */
  readonly apiServers: ReadonlyMap<string, readonly KnownPort[]>
}

export function indexDirectory(directory: Directory): DirectoryIndex {
  const { pods, services, nodes, workloads } = directory
  const named = (one: { readonly namespace: string; readonly name: string }): string => `${one.namespace}/${one.name}`
  const apiServer = services.filter((one) => named(one) === apiServerName)
  return {
    ...directory,
    podsByUid: new Map(pods.flatMap((pod) => (pod.uid === null ? [] : [[pod.uid, pod]]))),
    podsByName: groupBy(pods, named),
    podsByNamespace: groupBy(pods, ({ namespace }) => namespace),
    servicesByName: groupBy(services, named),
    nodesByAddress: new Map(
      nodes.flatMap((node) => node.addresses.map((address) => [canonicalAddress(address), node])),
    ),
    holdersByAddress: groupHolders(directory),
    workloadsByName: new Map(workloads.map((one) => [`${one.kind} ${named(one)}`, one])),
    apiServers: new Map(
      apiServer.flatMap(({ endpoints }) =>
        endpoints.map(({ address, ports }) => [canonicalAddress(address), ports] as const),
      ),
    ),
  }
}

export const apiServerName = 'default/kubernetes'

function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): ReadonlyMap<string, readonly T[]> {
  const groups = new Map<string, T[]>()
  for (const item of items) {
    const key = keyOf(item)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [item])
    else group.push(item)
  }
  return groups
}

function groupHolders({ pods, services }: Directory): ReadonlyMap<string, readonly Holder[]> {
  const held = [
    ...pods.flatMap((pod) => pod.addresses.map((address) => ({ address, holder: podHolder(pod) as Holder }))),
    ...services.flatMap((one) => one.addresses.map((address) => ({ address, holder: serviceHolder(one) as Holder }))),
  ]
  const groups = groupBy(held, ({ address }) => canonicalAddress(address))
  return new Map([...groups].map(([address, list]) => [address, list.map(({ holder }) => holder)]))
}

function podHolder(pod: KnownPod): PodHolder {
  const { namespace, name, uid, workload, isHostNetwork, startedAt, lastSeen, isDead, diedAt, deathReason } = pod
  return {
    kind: 'pod',
    namespace,
    name,
    uid,
    workload,
    isHostNetwork,
    startedAt,
    lastSeen,
    isDead,
    diedAt,
    deathReason,
  }
}

function serviceHolder({ namespace, name, uid, createdAt, deletedAt }: KnownService): ServiceHolder {
  return {
    kind: 'service',
    namespace,
    name,
    uid,
    addressKind: 'cluster',
    createdAt,
    lastSeen: null,
    isDead: deletedAt !== null,
    diedAt: deletedAt,
  }
}

type MeantPod = { readonly namespace: string | null; readonly name: string; readonly uid: string | null }

/**
 * The pod that was meant: by its uid, or by its name where one side does not tell a uid; never another one of that name, and of
 * several incarnations the one that was there at the moment.
 */
export function findPod(index: DirectoryIndex, pod: MeantPod, at: Instant): KnownPod | undefined {
  if (pod.uid !== null) {
    const found = index.podsByUid.get(pod.uid)
    if (found !== undefined) return found
  }
  const named = (index.podsByName.get(nameKey(pod)) ?? []).filter((one) => one.uid === null || pod.uid === null)
  if (named.length < 2) return named[0]
  const holders = named.map(podHolder)
  const answer = chooseHolder(holders, at)
  return answer.kind === 'resolved' ? named.find((_, place) => holders[place] === answer.holder) : undefined
}

/** Whether who was meant depends on the moment. */
export function hasSeveral(index: DirectoryIndex, pod: MeantPod): boolean {
  return pod.uid === null && (index.podsByName.get(nameKey(pod))?.length ?? 0) > 1
}

function nameKey({ namespace, name }: MeantPod): string {
  return `${namespace ?? ''}/${name}`
}

/** The store: what the broker keeps and asks, the same of the embedded database and of PostgreSQL. */
import type { Failure } from '#base/failure'
import type { FlowFilter } from '#flows/filter'
import type { BadRow, IncomingFlow, StoredFlow } from '#flows/flow'
import type {
  DeathReason,
  HolderAnswer,
  Labels,
  Ownership,
  PeerKind,
  ServiceAddressKind,
  Workload,
} from '#flows/holder'
import type { Instant } from '#flows/instant'
import type { AuditPassDone, AuditPassSettings, AuditStore, StoredVerdict } from './audit-store'

export type { StoredVerdict } from './audit-store'

export type Store = {
  readonly engine: 'embedded' | 'postgres'
  /** Sentences that the operator should read at start: durability, a directory that was moved aside. */
  readonly notices: readonly string[]
  readonly ingest: (batch: FlowBatch) => Promise<IngestAnswer>
  /** Undefined when nothing was written: a blank name, or nothing that could hold an address. */
  readonly putPod: (post: PodPost, now: Instant) => Promise<StoredPod | undefined>
  /** How many pods became dead. */
  readonly markDead: (mark: DeadMark, now: Instant) => Promise<number>
  readonly putService: (post: ServicePost, now: Instant) => Promise<StoredService | undefined>
  /** How many Services were deleted. */
  readonly deleteService: (target: ServiceTarget, now: Instant) => Promise<number>
  /** Newest first: by first seen, then id. */
  readonly flows: (filter: FlowFilter, page: PageRequest) => Promise<Page<StoredFlow>>
  /** Every row that fits, page by page in the order of `flows`. */
  readonly streamFlows: (filter: FlowFilter) => AsyncIterable<readonly StoredFlow[]>
  /** Flows added up where policies tell neither end of them apart, each as one of its rows; in any order. */
  readonly streamConnections: (filter: FlowFilter) => AsyncIterable<readonly StoredFlow[]>
  /** By namespace and name, the newest record first. */
  readonly pods: (query: PodQuery, page: PageRequest) => Promise<Page<StoredPod>>
  readonly streamPods: (query: PodQuery) => AsyncIterable<readonly StoredPod[]>
  /** The newest incarnation: the living first, then by last seen. Without a namespace, of any. */
  readonly podByName: (name: string, namespace?: string) => Promise<StoredPod | undefined>
  /** How many nodes living pods are on, and the families of their addresses. */
  readonly extent: () => Promise<ClusterExtent>
  readonly podByUid: (uid: string) => Promise<StoredPod | undefined>
  /** With a time: the pod that the guard lets through. Without: the living first, then by last seen. */
  readonly podAt: (address: string, at?: Instant) => Promise<StoredPod | undefined>
  /** The explained answer, pods and Services alike. */
  readonly holderAt: (address: string, at: Instant, target?: PortTarget) => Promise<HolderAnswer>
  /** Who held an address, newest first. */
  readonly ownershipHistory: (address: string, page: PageRequest) => Promise<Page<Ownership>>
  /** By namespace, name. Living ones only, unless the query says otherwise. */
  readonly services: (query: ServiceQuery, page: PageRequest) => Promise<Page<StoredService>>
  readonly streamServices: (query: ServiceQuery) => AsyncIterable<readonly StoredService[]>
  readonly serviceByAddress: (address: string) => Promise<StoredService | undefined>
  readonly serviceByName: (namespace: string, name: string) => Promise<StoredService | undefined>
  /** From the hourly rollup, which `passes.foldEdges` brings up to date. */
  readonly edges: (query: EdgeQuery, page: PageRequest) => Promise<Page<Edge>>
  /** Newest first. */
  readonly verdicts: (query: VerdictQuery, limit: number) => Promise<readonly StoredVerdict[]>
  readonly audit: AuditStore
  readonly passes: StorePasses
  /** Live events, of this broker and of others on the same database, one after the other; the answer ends it. */
  readonly listen: (onEvent: (event: StoreEvent) => void | Promise<void>) => Promise<() => Promise<void>>
  /** Never throws; `waitMillis` bounds how long it may take (500 when absent). */
  readonly health: (waitMillis?: number) => Promise<StoreHealth>
  readonly poolGauges: () => { readonly idle: number; readonly waiting: number; readonly max: number }
  /** Resolves when the database has ended for good: nothing more can be kept by this process. */
  readonly lost: Promise<Failure>
  readonly close: () => Promise<void>
}

export type FlowBatch = {
  readonly rows: readonly IncomingFlow[]
  /** The same key with the same rows answers what the first answered, and stores nothing; with others it is refused. */
  readonly idempotencyKey?: string
  readonly now: Instant
  readonly limits?: Partial<IngestLimits>
}

export type IngestLimits = {
  /** Rows further ahead of `now` are refused: 300. */
  readonly futureSeconds: number
  /** Rows older than this are refused: 14 days. */
  readonly pastSeconds: number
}

export type IngestAnswer = {
  /** Rows that are new. */
  readonly stored: number
  /** Sightings that were added to a row of this batch or an earlier one. */
  readonly merged: number
  readonly bad: readonly BadRow[]
  readonly isReplay: boolean
}

export type PodPost = {
  readonly namespace: string
  readonly name: string
  readonly uid?: string | null
  /** The primary one first; blanks and repetitions are dropped, addresses made canonical. */
  readonly addresses: readonly string[]
  /** Addresses of the node it runs on (status.hostIPs): they tell node ports from other ports. */
  readonly hostAddresses?: readonly string[]
  readonly nodeName?: string | null
  /** status.startTime; absent never erases what an earlier post said. */
  readonly startedAt?: Instant | null
  /** Absent: not known, and what an earlier post said stays. */
  readonly isHostNetwork?: boolean | null
  /** metadata.labels, all of them; the store keeps the stable ones apart. */
  readonly labels?: Labels | null
  readonly workload?: Workload | null
  readonly identity?: string | null
  readonly selectorLabels?: Labels | null
  /** The compacted object, kept and answered as it is. */
  readonly record?: unknown
  /** When the sender saw it; the time of arrival when absent or ahead of it. */
  readonly seenAt?: Instant
}

export type StoredPod = {
  readonly namespace: string
  readonly name: string
  readonly uid: string | null
  readonly addresses: readonly string[]
  readonly nodeName: string | null
  readonly startedAt: Instant | null
  readonly isHostNetwork: boolean | null
  readonly workload: Workload | null
  readonly identity: string | null
  readonly selectorLabels: Labels | null
  readonly stableLabels: Labels | null
  readonly record: unknown
  readonly firstSeen: Instant
  readonly lastSeen: Instant
  readonly isDead: boolean
  readonly diedAt: Instant | null
  readonly deathReason: DeathReason | null
}

/** A blank name marks nothing; an address, when given, must be one that the pod holds. */
export type DeadMark = {
  readonly name: string
  readonly namespace?: string
  readonly uid?: string
  readonly address?: string
}

export type NodePort = { readonly protocol: string; readonly port: number }

export type ServicePost = {
  readonly namespace: string
  readonly name: string
  readonly uid?: string | null
  /** `None`, blanks and repetitions are dropped; without any address or node port nothing is written. */
  readonly addresses: readonly { readonly address: string; readonly kind: Exclude<ServiceAddressKind, 'node-port'> }[]
  /**
   * Whether `addresses` and `nodePorts` are all there are, so that those of earlier posts that are missing end. False for posts of one address
   * each, as older controllers send them for a dual-stack Service.
   */
  readonly isComplete: boolean
  readonly nodePorts?: readonly NodePort[]
  readonly labels?: Labels | null
  /** spec.selector. */
  readonly selector?: Labels | null
  readonly createdAt?: Instant | null
  readonly record?: unknown
  readonly seenAt?: Instant
}

export type StoredService = {
  readonly namespace: string
  readonly name: string
  readonly uid: string | null
  readonly addresses: readonly { readonly address: string; readonly kind: ServiceAddressKind }[]
  readonly nodePorts: readonly NodePort[]
  readonly selector: Labels | null
  readonly stableLabels: Labels | null
  readonly record: unknown
  readonly createdAt: Instant | null
  readonly firstSeen: Instant
  readonly lastSeen: Instant
  readonly deletedAt: Instant | null
}

export type ServiceTarget = { readonly namespace: string; readonly name: string; readonly uid?: string }

/** The port that was connected to, where the direction tells; only then can a node port be told. */
export type PortTarget = { readonly protocol: string; readonly port: number }

export type PodQuery = {
  readonly namespace?: string
  readonly name?: string
  readonly nodeName?: string
  /** Absent: the living and the dead. */
  readonly isDead?: boolean
  readonly workload?: Workload
}

export type ClusterExtent = { readonly nodes: number; readonly families: readonly ('ipv4' | 'ipv6')[] }

export type ServiceQuery = { readonly namespace?: string; readonly name?: string; readonly withDeleted?: boolean }

/** An end of an edge: a workload, a bare pod, a Service, or what stands for everything that is none. */
export type EdgeEnd = {
  readonly kind: PeerKind | 'internet' | 'private-network' | 'unattributed'
  readonly namespace: string | null
  readonly workload: Workload | null
  /** Of a Service or a pod without a workload. */
  readonly name: string | null
}

export type EdgeQuery = {
  readonly since: Instant
  readonly until: Instant
  /** Edges with an end in one of these. */
  readonly namespaces?: readonly string[]
  readonly decision?: string
}

export type Edge = {
  readonly from: EdgeEnd
  readonly to: EdgeEnd
  readonly protocol: string
  readonly port: number
  readonly decision: string
  /** Which end it was observed at; a connection between two watched pods is seen at both. */
  readonly observedAt: 'from' | 'to'
  readonly hits: number
  readonly firstSeen: Instant
  readonly lastSeen: Instant
}

export type VerdictQuery = {
  readonly policyName?: string
  /** Empty: of cluster-scoped policies. */
  readonly policyNamespace?: string
  readonly verdict?: 'Allow' | 'WouldDeny'
  readonly direction?: 'Ingress' | 'Egress'
}

/** Opaque: the place in the order where the next page begins. */
export type Cursor = string

export type PageRequest = { readonly limit: number; readonly cursor?: Cursor }

export type Page<Row> = { readonly rows: readonly Row[]; readonly next?: Cursor }

/** New rows and rows seen again; `missed` counts those left out because there were too many at once. */
export type StoreEvent = { readonly kind: 'flows'; readonly flows: readonly StoredFlow[]; readonly missed: number }

export type StoreHealth = { readonly reachable: boolean; readonly schemaReady: boolean }

/** What a pass did, or that another broker is doing it now. */
export type PassAnswer<Done> = { readonly kind: 'done'; readonly done: Done } | { readonly kind: 'held-elsewhere' }

export type StorePasses = {
  readonly lateResolve: (
    now: Instant,
    settings: { readonly windowSeconds: number; readonly chunkRows?: number },
  ) => Promise<PassAnswer<{ readonly examined: number; readonly resolved: number; readonly merged: number }>>
  readonly sweepStale: (
    now: Instant,
    settings: { readonly staleSeconds: number },
  ) => Promise<PassAnswer<{ readonly died: number }>>
  readonly retain: (
    now: Instant,
    settings: RetentionSettings,
  ) => Promise<
    PassAnswer<{ readonly droppedDays: readonly string[]; readonly carriedFlows: number; readonly deletedPods: number }>
  >
  readonly foldEdges: (now: Instant) => Promise<PassAnswer<{ readonly folded: number }>>
  /** Makes the partitions of today and of the days to come. */
  readonly ensurePartitions: (now: Instant) => Promise<PassAnswer<{ readonly made: number }>>
  /** Only the embedded database needs it: it has no autovacuum. */
  readonly vacuum: () => Promise<PassAnswer<{ readonly vacuumed: boolean }>>
  /** Judges the flows that wait for policies in audit mode, each once. */
  readonly audit: (now: Instant, settings: AuditPassSettings) => Promise<PassAnswer<AuditPassDone>>
}

export type RetentionSettings = {
  /** 0: flows are kept. */
  readonly flowDays: number
  /** Dead pods whose last sign of life is older; 0: they are kept. */
  readonly podDays: number
  /** Audit verdicts; 0 or absent: they are kept. */
  readonly verdictDays?: number
  readonly batchRows?: number
}

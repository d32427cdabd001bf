/** A pod as the compatible paths write it, and what is kept of its manifest. */
import Type, { type Static } from 'typebox'
import type { Labels, Workload } from '#flows/holder'
import { type Instant, parseInstant, printNaive } from '#flows/instant'
import { ownerOf } from '#flows/owner'
import { isJsonObject, type JsonObject, nullableFlag, nullableObject, nullableText } from './schema-parts'
import { blankAsNull } from './traffic-row'

export const PostedPod = Type.Object(
  {
    pod_name: Type.String({ description: 'blank: nothing is stored' }),
    pod_namespace: Type.Optional(nullableText('the manifest’s when absent')),
    pod_ip: Type.Optional(nullableText('the primary address')),
    pod_ips: Type.Optional(
      Type.Unsafe<readonly unknown[] | null>({ type: ['array', 'null'], description: 'every address, both families' }),
    ),
    pod_obj: Type.Optional(nullableObject('the manifest; metadata and spec.hostNetwork are kept of it')),
    time_stamp: Type.Optional(nullableText('when the sender saw the pod, UTC')),
    node_name: Type.Optional(nullableText('the node it runs on')),
    is_dead: Type.Optional(nullableFlag('true marks it dead as /pod/mark_dead does')),
    pod_identity: Type.Optional(nullableText('the name that a map shows')),
    workload_selector_labels: Type.Optional(nullableObject('labels that its workload selects it by')),
    workload_kind: Type.Optional(nullableText('Deployment rather than its ReplicaSet')),
    workload_name: Type.Optional(nullableText('its name')),
    host_network: Type.Optional(nullableFlag('whether it has its node’s address; the manifest’s when absent')),
    started_at: Type.Optional(nullableText('status.startTime; the manifest’s when absent')),
  },
  { description: 'A pod that is alive, posted again and again.' },
)

export const PodRecord = Type.Object(
  {
    pod_name: Type.String(),
    pod_ip: Type.String(),
    pod_ips: Type.Array(Type.String()),
    pod_namespace: nullableText('its namespace'),
    pod_obj: nullableObject('what is kept of its manifest'),
    time_stamp: Type.String({ description: 'when it was last reported, UTC' }),
    node_name: Type.String(),
    is_dead: Type.Boolean(),
    pod_identity: nullableText('the name that a map shows'),
    workload_selector_labels: nullableObject('labels that its workload selects it by'),
    workload_kind: nullableText('Deployment, StatefulSet, …; null of a bare pod'),
    workload_name: nullableText('its name'),
    host_network: nullableFlag('null: not known'),
    started_at: nullableText('UTC; null: not known'),
  },
  { description: 'A pod, dead or alive.' },
)

export const PostedDeath = Type.Object(
  {
    pod_name: Type.String({ description: 'blank: nothing is marked' }),
    pod_ip: Type.Optional(nullableText('must be the pod’s; blank: the name alone decides')),
    pod_namespace: Type.Optional(nullableText('of any namespace when absent')),
    pod_uid: Type.Optional(nullableText('of this incarnation alone')),
  },
  { description: 'A pod that is no more.' },
)

export type PostedPod = Static<typeof PostedPod>
export type PodRecord = Static<typeof PodRecord>
export type PostedDeath = Static<typeof PostedDeath>

/** A posted pod in the words of the store; times that are not times are told, everything else is taken as it is. */
export type ReadPod = {
  readonly namespace: string
  readonly name: string
  readonly uid: string | null
  readonly addresses: readonly string[]
  readonly hostAddresses: readonly string[]
  readonly nodeName: string | null
  readonly startedAt: Instant | null
  readonly isHostNetwork: boolean | null
  readonly labels: Labels | null
  readonly workload: Workload | null
  readonly identity: string | null
  readonly selectorLabels: Labels | null
  readonly record: JsonObject | null
  readonly seenAt?: Instant
}

/** `started_at` of the post, or of the manifest before it is cut down. */
export function readPostedPod(post: PostedPod): ReadPod {
  const manifest = post.pod_obj ?? null
  const metadata = objectIn(manifest, 'metadata')
  const status = objectIn(manifest, 'status')
  const seenAt = parseInstant(post.time_stamp?.trim() ?? '')
  const listed = (post.pod_ips ?? []).filter((address) => typeof address === 'string')
  return {
    namespace: blankAsNull(post.pod_namespace) ?? textIn(metadata, 'namespace') ?? '',
    name: post.pod_name,
    uid: textIn(metadata, 'uid'),
    addresses: [post.pod_ip ?? '', ...listed],
    hostAddresses: hostAddressesOf(status),
    nodeName: blankAsNull(post.node_name) ?? textIn(objectIn(manifest, 'spec'), 'nodeName'),
    startedAt: parseInstant(post.started_at?.trim() ?? '') ?? parseInstant(textIn(status, 'startTime') ?? '') ?? null,
    isHostNetwork: post.host_network ?? hostNetworkOf(manifest),
    labels: labelsOf(metadata?.labels),
    workload: workloadOf(post) ?? ownerIn(metadata),
    identity: blankAsNull(post.pod_identity),
    selectorLabels: labelsOf(post.workload_selector_labels),
    record: compactPod(manifest),
    ...(seenAt !== undefined && { seenAt }),
  }
}

/** What `StoredPod` has of these, without knowing the store. */
export type PrintablePod = {
  readonly namespace: string
  readonly name: string
  readonly addresses: readonly string[]
  readonly nodeName: string | null
  readonly startedAt: Instant | null
  readonly isHostNetwork: boolean | null
  readonly workload: Workload | null
  readonly identity: string | null
  readonly selectorLabels: Labels | null
  readonly record: unknown
  readonly lastSeen: Instant
  readonly isDead: boolean
}

export function printPodRecord(pod: PrintablePod): PodRecord {
  return {
    pod_name: pod.name,
    pod_ip: pod.addresses[0] ?? '',
    pod_ips: [...pod.addresses],
    pod_namespace: blankAsNull(pod.namespace),
    pod_obj: isJsonObject(pod.record) ? pod.record : null,
    time_stamp: printNaive(pod.lastSeen),
    node_name: pod.nodeName ?? '',
    is_dead: pod.isDead,
    pod_identity: pod.identity,
    workload_selector_labels: pod.selectorLabels,
    workload_kind: pod.workload?.kind ?? null,
    workload_name: pod.workload?.name ?? null,
    host_network: pod.isHostNetwork,
    started_at: pod.startedAt === null ? null : printNaive(pod.startedAt),
  }
}

/** metadata without managedFields, and spec.hostNetwork: status changes every minute and the rest is never read. */
function compactPod(manifest: JsonObject | null): JsonObject | null {
  if (manifest === null) return null
  const { hostNetwork } = objectIn(manifest, 'spec') ?? {}
  return {
    ...(isJsonObject(manifest.metadata) && { metadata: withoutManagedFields(manifest.metadata) }),
    ...(hostNetwork !== undefined && { spec: { hostNetwork } }),
  }
}

export function withoutManagedFields(metadata: JsonObject): JsonObject {
  const { managedFields: _managedFields, ...kept } = metadata
  return kept
}

/** An absent field is false, an absent manifest is not known. */
function hostNetworkOf(manifest: JsonObject | null): boolean | null {
  return manifest === null ? null : objectIn(manifest, 'spec')?.hostNetwork === true
}

function hostAddressesOf(status: JsonObject | undefined): readonly string[] {
  const listed = Array.isArray(status?.hostIPs) ? status.hostIPs : []
  const addresses = [status?.hostIP, ...listed.map((entry) => (isJsonObject(entry) ? entry.ip : entry))]
  return addresses.filter((address) => typeof address === 'string')
}

function workloadOf({ workload_kind, workload_name }: PostedPod): Workload | null {
  const [kind, name] = [blankAsNull(workload_kind), blankAsNull(workload_name)]
  return kind === null || name === null ? null : { kind, name }
}

function ownerIn(metadata: JsonObject | undefined): Workload | null {
  const references = Array.isArray(metadata?.ownerReferences) ? metadata.ownerReferences.filter(isJsonObject) : []
  const owners = references.map((owner) => ({
    kind: textIn(owner, 'kind') ?? '',
    name: textIn(owner, 'name') ?? '',
    isController: owner.controller === true,
  }))
  return ownerOf({ owners, labels: labelsOf(metadata?.labels) ?? {} })
}

export function objectIn(object: JsonObject | null | undefined, field: string): JsonObject | undefined {
  const value = object?.[field]
  return isJsonObject(value) ? value : undefined
}

export function textIn(object: JsonObject | null | undefined, field: string): string | null {
  const value = object?.[field]
  return typeof value === 'string' ? blankAsNull(value) : null
}

/** Values that are not texts are no labels. */
export function labelsOf(value: unknown): Labels | null {
  if (!isJsonObject(value)) return null
  return Object.fromEntries(
    Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  )
}

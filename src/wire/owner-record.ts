/** Pods, Services and who held an address, under /api/v1. */
import Type, { type Static } from 'typebox'
import type { Holder, HolderAnswer, Labels, Ownership, RejectionReason, ServiceAddressKind } from '#flows/holder'
import { type Instant, printInstant } from '#flows/instant'
import { WorkloadRecord } from './flow-record'
import type { PrintablePod } from './pod-record'
import { isJsonObject, isPort, nullableFlag, nullableObject, nullableText, word } from './schema-parts'

const kindOfPeer = word(['pod', 'node', 'service'], 'a node is a host-network pod, which has its node’s address')

export const PodAnswer = Type.Object(
  {
    namespace: Type.String(),
    name: Type.String(),
    uid: nullableText('null: the sender did not tell'),
    addresses: Type.Array(Type.String()),
    node: nullableText('the node it runs on'),
    workload: WorkloadRecord,
    hostNetwork: nullableFlag('null: not known'),
    labels: nullableObject('labels that outlive a roll-out'),
    startedAt: nullableText('null: not known, and then it is never taken for a peer'),
    firstSeen: Type.String(),
    lastSeen: Type.String({ description: 'the last time it was posted' }),
    dead: Type.Boolean(),
    diedAt: nullableText('when it was marked dead, or taken for dead'),
    deathReason: nullableText('marked, stale, replaced or address-left'),
  },
  { description: 'One incarnation of a pod.' },
)

const ServicePortRecord = Type.Object({
  protocol: Type.String(),
  port: Type.Integer(),
  targetPort: Type.Unsafe<number | string>({
    type: ['integer', 'string'],
    description: 'the number or name at the pod',
  }),
  nodePort: Type.Integer({ description: '0: none' }),
})

export const ServiceAnswer = Type.Object(
  {
    namespace: Type.String(),
    name: Type.String(),
    uid: nullableText('null: the sender did not tell'),
    addresses: Type.Array(
      Type.Object({
        address: Type.String(),
        kind: word(['cluster', 'external', 'load-balancer', 'node-port'], 'how it came by it'),
      }),
    ),
    nodePorts: Type.Array(Type.Object({ protocol: Type.String(), port: Type.Integer() })),
    ports: Type.Array(ServicePortRecord, { description: 'spec.ports; empty where the sender did not tell' }),
    selector: nullableObject('spec.selector'),
    labels: nullableObject('labels that outlive a roll-out'),
    createdAt: nullableText('null: not known'),
    firstSeen: Type.String(),
    lastSeen: Type.String(),
    deletedAt: nullableText('null: it is there'),
  },
  { description: 'A Service.' },
)

const HolderRecord = Type.Object(
  {
    kind: kindOfPeer,
    namespace: Type.String(),
    name: Type.String(),
    uid: nullableText('its uid'),
    workload: WorkloadRecord,
    addressKind: Type.Union([Type.String(), Type.Null()], { description: 'of a Service: how it came by the address' }),
    since: nullableText('when it started, or was created; null: not known'),
    until: nullableText('when it died or was deleted; null: it is alive'),
    lastSeen: nullableText('the last time it was posted'),
    dead: Type.Boolean(),
  },
  { description: 'Somebody who held an address.' },
)

export const AddressAnswer = Type.Object(
  {
    address: Type.String(),
    at: Type.String(),
    answer: word(['resolved', 'rejected', 'never-held'], 'whether somebody held it then'),
    because: Type.String({ description: 'one sentence' }),
    reason: nullableText('started-after, start-unknown, ended-before or end-unknown'),
    holder: Type.Union([HolderRecord, Type.Null()], {
      description: 'who held it; of a rejected answer the nearest one',
    }),
  },
  { description: 'Who held an address at a time, and why.' },
)

export const OwnershipRecord = Type.Object(
  {
    address: Type.String(),
    kind: kindOfPeer,
    namespace: Type.String(),
    name: Type.String(),
    uid: nullableText('its uid'),
    workload: WorkloadRecord,
    addressKind: nullableText('of a Service: cluster, external, load-balancer or node-port'),
    heldFrom: nullableText('null: not known'),
    heldUntil: nullableText('null: it still holds it'),
    lastSeen: Type.String(),
    dead: Type.Boolean(),
    deathReason: nullableText('marked, stale, replaced, address-left or deleted'),
  },
  { description: 'A time in which somebody held an address.' },
)

export type PodAnswer = Static<typeof PodAnswer>
export type ServiceAnswer = Static<typeof ServiceAnswer>
export type AddressAnswer = Static<typeof AddressAnswer>
export type OwnershipRecord = Static<typeof OwnershipRecord>

/** What the store’s pods, Services and times of holding have, without knowing the store. */
type AnswerablePod = Omit<PrintablePod, 'record' | 'identity' | 'selectorLabels'> & {
  readonly uid: string | null
  readonly stableLabels: Labels | null
  readonly firstSeen: Instant
  readonly diedAt: Instant | null
  readonly deathReason: string | null
}

type AnswerableService = {
  readonly namespace: string
  readonly name: string
  readonly uid: string | null
  readonly addresses: readonly { readonly address: string; readonly kind: ServiceAddressKind }[]
  readonly nodePorts: readonly { readonly protocol: string; readonly port: number }[]
  readonly selector: Labels | null
  readonly stableLabels: Labels | null
  readonly record: unknown
  readonly createdAt: Instant | null
  readonly firstSeen: Instant
  readonly lastSeen: Instant
  readonly deletedAt: Instant | null
}

export function printPodAnswer(pod: AnswerablePod): PodAnswer {
  return {
    namespace: pod.namespace,
    name: pod.name,
    uid: pod.uid,
    addresses: [...pod.addresses],
    node: pod.nodeName,
    workload: pod.workload,
    hostNetwork: pod.isHostNetwork,
    labels: pod.stableLabels,
    startedAt: printOptional(pod.startedAt),
    firstSeen: printInstant(pod.firstSeen),
    lastSeen: printInstant(pod.lastSeen),
    dead: pod.isDead,
    diedAt: printOptional(pod.diedAt),
    deathReason: pod.deathReason,
  }
}

export function printServiceAnswer(service: AnswerableService): ServiceAnswer {
  return {
    namespace: service.namespace,
    name: service.name,
    uid: service.uid,
    addresses: service.addresses.map(({ address, kind }) => ({ address, kind })),
    nodePorts: service.nodePorts.map(({ protocol, port }) => ({ protocol, port })),
    ports: servicePortsOf(service.record),
    selector: service.selector,
    labels: service.stableLabels,
    createdAt: printOptional(service.createdAt),
    firstSeen: printInstant(service.firstSeen),
    lastSeen: printInstant(service.lastSeen),
    deletedAt: printOptional(service.deletedAt),
  }
}

/** Of the manifest that is kept; the API's defaults are filled in. */
export function servicePortsOf(record: unknown): Static<typeof ServicePortRecord>[] {
  const spec = isJsonObject(record) ? record.spec : undefined
  const listed = isJsonObject(spec) && Array.isArray(spec.ports) ? spec.ports.filter(isJsonObject) : []
  return listed.flatMap(({ protocol, port, targetPort, nodePort }) => {
    if (!isPort(port)) return []
    const isTarget = isPort(targetPort) || (typeof targetPort === 'string' && targetPort !== '')
    return [
      {
        protocol: typeof protocol === 'string' ? protocol : 'TCP',
        port,
        targetPort: isTarget && targetPort !== 0 ? targetPort : port,
        nodePort: isPort(nodePort) ? nodePort : 0,
      },
    ]
  })
}

export function printOwnership(ownership: Ownership): OwnershipRecord {
  const { holder } = ownership
  return {
    address: ownership.address,
    ...holder,
    workload: ownership.workload,
    addressKind: ownership.addressKind,
    heldFrom: printOptional(ownership.heldFrom),
    heldUntil: printOptional(ownership.heldUntil),
    lastSeen: printInstant(ownership.lastSeen),
    dead: ownership.isDead,
    deathReason: ownership.deathReason,
  }
}

export function printAddressAnswer(address: string, at: Instant, answer: HolderAnswer): AddressAnswer {
  const holder = answer.kind === 'resolved' ? answer.holder : answer.kind === 'rejected' ? answer.nearest : undefined
  return {
    address,
    at: printInstant(at),
    answer: answer.kind,
    because: explainHolder(address, at, answer),
    reason: answer.kind === 'rejected' ? answer.reason : null,
    holder: holder === undefined ? null : printHolder(holder),
  }
}

function printHolder(holder: Holder): Static<typeof HolderRecord> {
  const isPod = holder.kind === 'pod'
  return {
    kind: isPod ? (holder.isHostNetwork ? 'node' : 'pod') : 'service',
    namespace: holder.namespace,
    name: holder.name,
    uid: holder.uid,
    workload: isPod ? holder.workload : null,
    addressKind: isPod ? null : holder.addressKind,
    since: printOptional(isPod ? holder.startedAt : holder.createdAt),
    until: printOptional(holder.diedAt),
    lastSeen: printOptional(holder.lastSeen),
    dead: holder.isDead,
  }
}

const rejections: Readonly<Record<RejectionReason, string>> = {
  'started-after': 'started only after that',
  'start-unknown': 'has no known start, so it cannot be told whether it was there',
  'ended-before': 'was dead by then',
  'end-unknown': 'is dead, and it is not known since when',
}

/** One sentence: who, and why it is known. */
function explainHolder(address: string, at: Instant, answer: HolderAnswer): string {
  const when = printInstant(at)
  if (answer.kind === 'never-held') return `nobody is known to have held ${address} by ${when}`
  const holder = answer.kind === 'resolved' ? answer.holder : answer.nearest
  const name = `${holder.namespace}/${holder.name}`
  if (answer.kind === 'rejected')
    return `${name} is the nearest holder of ${address}, but it ${rejections[answer.reason]}`
  if (holder.kind === 'service') return `${address} is the ${addressWords[holder.addressKind]} of Service ${name}`
  const since = holder.startedAt === null ? '' : ` since ${printInstant(holder.startedAt)}`
  const end = holder.isDead ? `, which was still known at ${when}` : ' and is alive'
  return `${answer.peerKind === 'node' ? 'host-network pod' : 'pod'} ${name} has it${since}${end}`
}

const addressWords: Readonly<Record<ServiceAddressKind, string>> = {
  cluster: 'cluster address',
  external: 'external address',
  'load-balancer': 'load-balancer address',
  'node-port': 'node port',
}

function printOptional(instant: Instant | null): string | null {
  return instant === null ? null : printInstant(instant)
}

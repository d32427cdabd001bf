/** The guard and the order by which one holder of an address is chosen for a moment, and why the others are not. */
import type { Holder, HolderAnswer, PeerKind, PodHolder, RejectionReason, ServiceHolder } from './holder'
import type { Instant } from './instant'

/**
 * Pods before Services: the living first, then the newest start, then the last one seen, then `namespace/name`. A host-network
 * pod stands for its node, and gives way to a Service whose node port it is, when one is among the holders. A holder that cannot
 * have been there blocks nobody; when there are no others, the nearest one is named.
 */
export function chooseHolder(holders: readonly Holder[], at: Instant): HolderAnswer {
  const allowed = holders.filter((holder) => rejection(holder, at) === undefined).sort(compareHolders)
  const pod = allowed.find((holder) => holder.kind === 'pod')
  const nodePort = allowed.find((holder) => holder.kind === 'service' && holder.addressKind === 'node-port')
  if (pod !== undefined && !pod.isHostNetwork) return resolved(pod)
  const chosen = nodePort ?? pod ?? allowed[0]
  if (chosen !== undefined) return resolved(chosen)
  return nearestRejected(holders, at)
}

/** Why a holder cannot have been the one at that moment; undefined when it can. */
export function rejection(holder: Holder, at: Instant): RejectionReason | undefined {
  return holder.kind === 'pod' ? podRejection(holder, at) : serviceRejection(holder, at)
}

/**
 * The last moment that a dead pod is known to have held its address: the later of the last report and of its death, when
 * that was told. A sweep or a missing address only says that reports ended, so there the last report counts alone.
 */
export function allowedUntil(pod: PodHolder): Instant | null {
  const told = pod.deathReason === 'marked' || pod.deathReason === 'replaced' ? pod.diedAt : null
  if (told === null) return pod.lastSeen
  return pod.lastSeen === null ? told : Math.max(told, pod.lastSeen)
}

export function peerKindOf(holder: Holder): PeerKind {
  if (holder.kind === 'service') return 'service'
  return holder.isHostNetwork ? 'node' : 'pod'
}

function podRejection(pod: PodHolder, at: Instant): RejectionReason | undefined {
  if (pod.startedAt === null) return 'start-unknown'
  if (pod.startedAt > at) return 'started-after'
  if (!pod.isDead) return undefined
  const until = allowedUntil(pod)
  if (until === null) return 'end-unknown'
  return until < at ? 'ended-before' : undefined
}

/** A Service whose creation is not known is taken to have been there already. */
function serviceRejection(service: ServiceHolder, at: Instant): RejectionReason | undefined {
  if (service.createdAt !== null && service.createdAt > at) return 'started-after'
  if (!service.isDead) return undefined
  if (service.diedAt === null) return 'end-unknown'
  return service.diedAt < at ? 'ended-before' : undefined
}

function resolved(holder: Holder): HolderAnswer {
  return { kind: 'resolved', peerKind: peerKindOf(holder), holder }
}

function compareHolders(left: Holder, right: Holder): number {
  return (
    Number(left.kind === 'service') - Number(right.kind === 'service') ||
    Number(left.isDead) - Number(right.isDead) ||
    descending(startOf(left), startOf(right)) ||
    descending(left.lastSeen, right.lastSeen) ||
    compareText(pathOf(left), pathOf(right)) ||
    compareText(left.uid ?? '', right.uid ?? '')
  )
}

function nearestRejected(holders: readonly Holder[], at: Instant): HolderAnswer {
  const [first] = holders
    // Of another port nothing is known, so a node port that ended says nothing of the address.
    .filter((holder) => holder.kind === 'pod' || holder.addressKind !== 'node-port')
    .flatMap((nearest) => {
      const reason = rejection(nearest, at)
      return reason === undefined ? [] : [{ nearest, reason, distance: distanceOf(nearest, reason, at) }]
    })
    .sort(
      (left, right) =>
        left.distance - right.distance ||
        compareText(pathOf(left.nearest), pathOf(right.nearest)) ||
        compareText(left.nearest.uid ?? '', right.nearest.uid ?? ''),
    )
  return first === undefined
    ? { kind: 'never-held' }
    : { kind: 'rejected', nearest: first.nearest, reason: first.reason }
}

/** How far from the moment the holder was; what is not known is farthest. */
function distanceOf(holder: Holder, reason: RejectionReason, at: Instant): number {
  if (reason === 'started-after') return (startOf(holder) ?? at) - at
  if (reason !== 'ended-before') return Number.MAX_SAFE_INTEGER
  return at - ((holder.kind === 'pod' ? allowedUntil(holder) : holder.diedAt) ?? at)
}

function startOf(holder: Holder): Instant | null {
  return holder.kind === 'pod' ? holder.startedAt : holder.createdAt
}

function pathOf(holder: Holder): string {
  return `${holder.namespace}/${holder.name}`
}

/** The greater first, what is not known last. */
function descending(left: number | null, right: number | null): number {
  return (right ?? Number.NEGATIVE_INFINITY) === (left ?? Number.NEGATIVE_INFINITY)
    ? 0
    : (right ?? Number.NEGATIVE_INFINITY) - (left ?? Number.NEGATIVE_INFINITY)
}

function compareText(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0
}

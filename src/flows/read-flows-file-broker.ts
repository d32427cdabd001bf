/** Rows of the broker: as `/api/v1/flows` prints them, and as the compatible paths do. */
import type { Direction, PeerOutcome } from './flow'
import type { PeerKind, RejectionReason } from './holder'
import type { ObservedFlow, ObservedPeer } from './observed-flow'
import {
  instantIn,
  labelsIn,
  portIn,
  protocolOf,
  type Row,
  type RowReading,
  rowIn,
  tellMissingPort,
  textIn,
  workloadOf,
} from './read-flows-file-row'

export function isBrokerRow(row: Row): boolean {
  return isRecord(row) || 'traffic_type' in row
}

function isRecord(row: Row): boolean {
  return rowIn(row, 'pod') !== undefined && rowIn(row, 'peer') !== undefined
}

/** Undefined, and told, when the row lacks what a flow must have. */
export function readBrokerRow(row: Row, reading: RowReading): ObservedFlow | undefined {
  return isRecord(row) ? readRecord(row, reading) : readTrafficRow(row, reading)
}

function readRecord(row: Row, reading: RowReading): ObservedFlow | undefined {
  const [pod, peer] = [rowIn(row, 'pod') ?? {}, rowIn(row, 'peer') ?? {}]
  const lastSeen = instantIn(row, 'lastSeen')
  const firstSeen = instantIn(row, 'firstSeen') ?? lastSeen
  const name = textIn(pod, 'name')
  const direction = directionOf(textIn(row, 'direction'))
  if (name === null) return lacks('the name of its pod', reading)
  if (direction === undefined) return lacks('its direction', reading)
  if (firstSeen === undefined || lastSeen === undefined) return lacks('its time', reading)
  const [ownWorkload, peerWorkload] = [rowIn(pod, 'workload'), rowIn(peer, 'workload')]
  return complete(
    {
      firstSeen,
      lastSeen,
      hits: hitsIn(row),
      pod: {
        namespace: textIn(pod, 'namespace'),
        name,
        uid: textIn(pod, 'uid'),
        address: textIn(pod, 'address'),
        workload: workloadOf(textIn(ownWorkload, 'kind'), textIn(ownWorkload, 'name')),
        labels: labelsIn(pod, 'labels'),
      },
      direction,
      protocol: protocolOf(textIn(row, 'protocol') ?? '', reading),
      ownPort: portIn(pod, 'port', reading),
      peerAddress: textIn(peer, 'address'),
      peerPort: portIn(peer, 'port', reading),
      decision: decisionIn(row, reading),
      peer: peerOf({
        kind: textIn(peer, 'kind'),
        namespace: textIn(peer, 'namespace'),
        name: textIn(peer, 'name'),
        uid: textIn(peer, 'uid'),
        workload: workloadOf(textIn(peerWorkload, 'kind'), textIn(peerWorkload, 'name')),
        labels: labelsIn(peer, 'labels'),
      }),
      outcome: outcomeOf(rowIn(peer, 'outcome')),
    },
    reading,
  )
}

/** A count that no sum would still be exact with is none. */
function hitsIn({ hits }: Row): number {
  return Number.isSafeInteger(hits) && Number(hits) >= 1 ? Math.min(Number(hits), mostHits) : 1
}

const mostHits = 1_000_000_000_000

function readTrafficRow(row: Row, reading: RowReading): ObservedFlow | undefined {
  const time = instantIn(row, 'time_stamp')
  const name = textIn(row, 'pod_name')
  const direction = directionOf(textIn(row, 'traffic_type'))
  if (name === null) return lacks('pod_name', reading)
  if (direction === undefined) return lacks('a traffic_type of INGRESS or EGRESS', reading)
  if (time === undefined) return lacks('a time_stamp that is a time', reading)
  const peer = peerOf({
    kind: textIn(row, 'peer_kind'),
    namespace: textIn(row, 'peer_namespace'),
    name: textIn(row, 'peer_name'),
    uid: textIn(row, 'peer_uid'),
    workload: workloadOf(textIn(row, 'peer_workload_kind'), textIn(row, 'peer_workload_name')),
    labels: null,
  })
  return complete(
    {
      firstSeen: time,
      lastSeen: time,
      hits: 1,
      pod: {
        namespace: textIn(row, 'pod_namespace'),
        name,
        uid: textIn(row, 'pod_uid'),
        address: textIn(row, 'pod_ip'),
        workload: null,
        labels: null,
      },
      direction,
      protocol: protocolOf(textIn(row, 'ip_protocol') ?? '', reading),
      ownPort: portIn(row, 'pod_port', reading),
      peerAddress: textIn(row, 'traffic_in_out_ip'),
      peerPort: portIn(row, 'traffic_in_out_port', reading),
      decision: decisionIn(row, reading),
      peer,
      outcome: peer === null ? null : { kind: 'resolved' },
    },
    reading,
  )
}

const decisions: readonly string[] = ['ALLOW', 'DROP', 'AUDIT']

/** One that nobody knows is told, and kept: it is no reason for a rule. */
function decisionIn(row: Row, reading: RowReading): string {
  const decision = textIn(row, 'decision')?.trim().toUpperCase() ?? 'ALLOW'
  if (decisions.includes(decision)) return decision
  reading.tell('flows.unknown-decision', `the decision ${JSON.stringify(row.decision)} is neither ALLOW nor DROP`)
  return decision
}

function complete(flow: ObservedFlow, reading: RowReading): ObservedFlow {
  tellMissingPort(flow.direction === 'INGRESS' ? flow.ownPort : flow.peerPort, flow.protocol, reading)
  return flow
}

function lacks(what: string, reading: RowReading): undefined {
  reading.tell('flows.not-a-flow', `the row lacks ${what}; it is left out`)
  return undefined
}

function directionOf(text: string | null): Direction | undefined {
  const direction = text?.trim().toUpperCase()
  return direction === 'INGRESS' || direction === 'EGRESS' ? direction : undefined
}

const kinds: readonly string[] = ['pod', 'node', 'service'] satisfies readonly PeerKind[]

type PeerTexts = Omit<ObservedPeer, 'kind' | 'namespace' | 'name'> & {
  readonly kind: string | null
  readonly namespace: string | null
  readonly name: string | null
}

/** All of it is there or none; a kind that is not known yet is nobody. */
function peerOf({ kind, namespace, name, ...rest }: PeerTexts): ObservedPeer | null {
  if (kind === null || !kinds.includes(kind)) return null
  return { kind: kind as PeerKind, namespace: namespace ?? '', name: name ?? '', ...rest }
}

const reasons: readonly string[] = ['started-after', 'start-unknown', 'ended-before', 'end-unknown']

function outcomeOf(row: Row | undefined): PeerOutcome | null {
  const kind = textIn(row, 'kind')
  if (kind === 'resolved' || kind === 'never-held') return { kind }
  if (kind !== 'rejected') return null
  const [reason, nearest] = [textIn(row, 'reason') ?? '', rowIn(row, 'nearest')]
  const nearestKind = textIn(nearest, 'kind') ?? 'pod'
  return {
    kind,
    reason: (reasons.includes(reason) ? reason : 'start-unknown') as RejectionReason,
    nearest: {
      kind: (kinds.includes(nearestKind) ? nearestKind : 'pod') as PeerKind,
      namespace: textIn(nearest, 'namespace') ?? '',
      name: textIn(nearest, 'name') ?? '',
    },
  }
}

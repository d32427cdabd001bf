/** A flow as the compatible paths write it: ports as texts, times in UTC without saying so, the peer in seven fields. */
import Type, { type Static } from 'typebox'
import { Compile } from 'typebox/compile'
import type { Direction, IncomingFlow, StoredFlow } from '#flows/flow'
import { parseInstant, printNaive } from '#flows/instant'
import { fieldErrors } from './field-errors'
import type { FieldError } from './problem'
import { nullableText, nullableWord, portText } from './schema-parts'

/** What a client may send; fields that are not named here are let through and left alone. */
export const PostedTrafficRow = Type.Object(
  {
    uuid: Type.Optional(nullableText('made by the broker when absent')),
    pod_name: Type.String({ minLength: 1, description: 'the pod that the flow was observed at' }),
    pod_namespace: Type.Optional(nullableText('its namespace')),
    pod_uid: Type.Optional(nullableText('its uid, when the client knows it')),
    pod_ip: Type.Optional(nullableText('its address')),
    pod_port: Type.Optional(portText('its port; 0 when it is the client’s')),
    ip_protocol: Type.String({ minLength: 1, description: 'TCP, UDP, SCTP, …' }),
    traffic_type: Type.String({ description: 'INGRESS or EGRESS, in any case' }),
    traffic_in_out_ip: Type.Optional(nullableText('the peer’s address')),
    traffic_in_out_port: Type.Optional(portText('the peer’s port; 0 when the peer is the client')),
    decision: Type.Optional(nullableText('ALLOW or DROP; ALLOW when absent')),
    time_stamp: Type.String({ description: 'RFC 3339 with any offset; without one it is UTC' }),
    hits: Type.Optional(Type.Integer({ minimum: 1, description: 'how often the flow was seen; 1 when absent' })),
  },
  { description: 'One flow. Any peer_* field is ignored: the broker alone says who the peer was.' },
)

const peerFields = {
  peer_kind: nullableWord(['pod', 'node', 'service'], 'null: nobody is known to have held the address then'),
  peer_namespace: nullableText('the peer’s namespace'),
  peer_name: nullableText('the pod’s or Service’s name; of a node the host-network pod’s'),
  peer_uid: nullableText('its uid'),
  peer_workload_kind: nullableText('Deployment, StatefulSet, CronJob, …; null of a bare pod and of a Service'),
  peer_workload_name: nullableText('its name'),
  peer_resolved_at: nullableText('when the broker decided this'),
}

export const TrafficRow = Type.Object(
  {
    uuid: Type.String(),
    pod_name: nullableText('the pod that the flow was observed at'),
    pod_namespace: nullableText('its namespace'),
    pod_ip: nullableText('its address'),
    pod_port: nullableText('its port, as text'),
    ip_protocol: nullableText('TCP, UDP, SCTP, …'),
    traffic_type: nullableText('INGRESS or EGRESS'),
    traffic_in_out_ip: nullableText('the peer’s address'),
    traffic_in_out_port: nullableText('the peer’s port, as text'),
    decision: nullableText('ALLOW or DROP'),
    time_stamp: Type.String({ description: 'when it was first seen, UTC' }),
    ...peerFields,
  },
  { description: 'One flow with its peer.' },
)

export type PostedTrafficRow = Static<typeof PostedTrafficRow>
export type TrafficRow = Static<typeof TrafficRow>

const posted = Compile(PostedTrafficRow)

export type ParsedRow =
  | { readonly kind: 'flow'; readonly flow: IncomingFlow }
  | { readonly kind: 'bad'; readonly error: FieldError }

export function parseTrafficRow(row: unknown): ParsedRow {
  if (!posted.Check(row)) {
    const [first] = fieldErrors(posted.Errors(row))
    return bad(first?.field ?? '', first?.message ?? 'is not a flow')
  }
  const direction = directions[row.traffic_type.trim().toUpperCase()]
  if (direction === undefined) return bad('traffic_type', 'must be INGRESS or EGRESS')
  const time = parseInstant(row.time_stamp.trim())
  if (time === undefined) return bad('time_stamp', 'must be a time such as 2026-07-23T09:14:02.118377')
  const ownPort = parsePortText(row.pod_port)
  if (ownPort === 'bad') return bad('pod_port', 'must be a port from 0 to 65535')
  const peerPort = parsePortText(row.traffic_in_out_port)
  if (peerPort === 'bad') return bad('traffic_in_out_port', 'must be a port from 0 to 65535')
  return { kind: 'flow', flow: flowOf(row, { direction, time, ownPort, peerPort }) }
}

type Parsed = Pick<IncomingFlow, 'direction' | 'time' | 'ownPort' | 'peerPort'>

/** One shape for every row and no spreads: a batch has thousands. */
function flowOf(row: PostedTrafficRow, { direction, time, ownPort, peerPort }: Parsed): IncomingFlow {
  return {
    id: row.uuid ?? '',
    pod: {
      namespace: blankAsNull(row.pod_namespace),
      name: row.pod_name,
      uid: blankAsNull(row.pod_uid),
      address: blankAsNull(row.pod_ip),
    },
    direction,
    protocol: row.ip_protocol.trim(),
    ownPort,
    peerAddress: blankAsNull(row.traffic_in_out_ip),
    peerPort,
    // Older senders report what went through and nothing else.
    decision: blankAsNull(row.decision) ?? 'ALLOW',
    time,
    hits: row.hits ?? 1,
  }
}

function bad(field: string, message: string): ParsedRow {
  return { kind: 'bad', error: { field, message } }
}

const directions: Readonly<Record<string, Direction>> = { INGRESS: 'INGRESS', EGRESS: 'EGRESS' }

function parsePortText(port: string | number | null | undefined): number | null | 'bad' {
  if (port == null) return null
  const text = String(port).trim()
  if (text === '') return null
  const value = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN
  return value <= 65_535 ? value : 'bad'
}

export function blankAsNull(text: string | null | undefined): string | null {
  return text == null || text.trim() === '' ? null : text
}

export function printTrafficRow(flow: StoredFlow): TrafficRow {
  const { pod, peer } = flow
  return {
    uuid: flow.id,
    pod_name: pod.name,
    pod_namespace: pod.namespace,
    pod_ip: pod.address,
    pod_port: printPort(flow.ownPort),
    ip_protocol: flow.protocol,
    traffic_type: flow.direction,
    traffic_in_out_ip: flow.peerAddress,
    traffic_in_out_port: printPort(flow.peerPort),
    decision: flow.decision,
    time_stamp: printNaive(flow.firstSeen),
    peer_kind: peer?.kind ?? null,
    peer_namespace: peer?.namespace ?? null,
    peer_name: peer?.name ?? null,
    peer_uid: peer?.uid ?? null,
    peer_workload_kind: peer?.workload?.kind ?? null,
    peer_workload_name: peer?.workload?.name ?? null,
    peer_resolved_at: peer === null ? null : printNaive(peer.resolvedAt),
  }
}

function printPort(port: number | null): string | null {
  return port === null ? null : String(port)
}

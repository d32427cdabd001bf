/** One flow of Hubble's as the packet that it tells of (flow/flow.proto of Cilium 1.18): where it was seen, and what became of it there. */
import { canonicalIp } from '#base/ip'
import type { WalkProtocol } from '#model/walk'
import { lacks, passOver, type Row, type RowReading, rowIn, textIn } from './read-flows-file-row'

export const hubbleVerdicts = ['FORWARDED', 'DROPPED', 'ERROR', 'AUDIT', 'REDIRECTED', 'TRACED', 'TRANSLATED'] as const
export type HubbleVerdict = (typeof hubbleVerdicts)[number]

export type RecordedEnd = {
  readonly address: string
  readonly identity?: number
  readonly namespace?: string
  readonly pod?: string
  readonly labels: readonly string[]
}

export type RecordedFlow = {
  readonly line: number
  readonly verdict: HubbleVerdict
  /** As flow.proto names it: `POLICY_DENIED`. */
  readonly dropReason?: string
  readonly protocol: WalkProtocol
  readonly source: RecordedEnd
  readonly destination: RecordedEnd
  readonly sourcePort: number
  /** Of ICMP the type. */
  readonly port: number
  readonly icmpCode?: number
  readonly direction?: 'INGRESS' | 'EGRESS'
  /** Absent where Hubble does not know: of drops, and before connection tracking is asked. */
  readonly isReply?: boolean
  /** `TO_ENDPOINT`; absent for verdicts of policy and for drops. */
  readonly point?: string
  /** 1 a drop, 4 a trace, 5 a verdict of policy. */
  readonly eventType?: number
  readonly node?: string
}

/** Undefined for what is no packet of layers 3 and 4: requests of layer 7, lost events, events of the agent. */
export function readRecordedFlow(entry: Row, line: number, reading: RowReading): RecordedFlow | undefined {
  const flow = rowIn(entry, 'flow') ?? entry
  const verdict = hubbleVerdicts.find((one) => one === textIn(flow, 'verdict'))
  if (verdict === undefined || flow.Type === 'L7' || flow.l7 !== undefined) return passOver(reading)
  const [source, destination] = (['source', 'destination'] as const).map((side) => endOf(flow, side))
  if (source === undefined || destination === undefined) return lacks('its two addresses', reading)
  const layer = layer4(flow)
  if (layer === undefined) return lacks('a protocol that can be walked (TCP, UDP, SCTP, ICMP)', reading)
  const direction = textIn(flow, 'traffic_direction')
  const point = textIn(flow, 'trace_observation_point')
  const node = textIn(flow, 'node_name') ?? textIn(entry, 'node_name')
  const dropReason = dropReasonOf(flow)
  const eventType = numberIn(rowIn(flow, 'event_type'), 'type')
  return {
    line,
    verdict,
    ...layer,
    source,
    destination,
    ...replyOf(flow),
    ...(dropReason !== undefined && { dropReason }),
    ...((direction === 'INGRESS' || direction === 'EGRESS') && { direction }),
    ...(point !== null && point !== 'UNKNOWN_POINT' && { point }),
    ...(eventType !== undefined && { eventType }),
    ...(node !== null && { node: node.slice(node.lastIndexOf('/') + 1) }),
  }
}

/** A first packet of TCP and its answer tell it by their flags. */
function replyOf(flow: Row): Pick<RecordedFlow, 'isReply'> {
  if (typeof flow.is_reply === 'boolean') return { isReply: flow.is_reply }
  if (flow.reply === true) return { isReply: true }
  const flags = rowIn(rowIn(rowIn(flow, 'l4'), 'TCP'), 'flags')
  return flags?.SYN === true ? { isReply: flags.ACK === true } : {}
}

/** What is not told of a flow follows from others of its connection: the other way round of a request is its answer. */
export function settleReplies(flows: readonly RecordedFlow[]): readonly RecordedFlow[] {
  const requests = new Set<string>()
  for (const flow of flows) if (flow.isReply === false) requests.add(tupleOf(flow))
  return flows.map((flow) =>
    flow.isReply === undefined && requests.has(turnedTuple(flow)) ? { ...flow, isReply: true } : flow,
  )
}

function tupleOf({ protocol, source, sourcePort, destination, port }: RecordedFlow): string {
  return `${protocol} ${source.address} ${sourcePort} ${destination.address} ${port}`
}

function turnedTuple({ protocol, source, sourcePort, destination, port }: RecordedFlow): string {
  return `${protocol} ${destination.address} ${port} ${source.address} ${sourcePort}`
}

/** Flows of before 1.13 tell the number alone. */
function dropReasonOf(flow: Row): string | undefined {
  const told = textIn(flow, 'drop_reason_desc')
  if (told !== null && told !== 'DROP_REASON_UNKNOWN') return told
  const number = numberIn(flow, 'drop_reason') ?? numberIn(rowIn(flow, 'event_type'), 'sub_type')
  return textIn(flow, 'verdict') === 'DROPPED' && number !== undefined ? hubbleDropName(number) : undefined
}

function endOf(flow: Row, side: 'source' | 'destination'): RecordedEnd | undefined {
  const address = canonicalIp(textIn(rowIn(flow, 'IP'), side) ?? '')
  if (address === undefined) return undefined
  const row = rowIn(flow, side)
  const [namespace, pod] = [textIn(row, 'namespace'), textIn(row, 'pod_name')]
  const identity = numberIn(row, 'identity')
  const listed = Array.isArray(row?.labels) ? row.labels : []
  return {
    address,
    ...(identity !== undefined && { identity }),
    ...(namespace !== null && { namespace }),
    ...(pod !== null && { pod }),
    labels: listed.filter((label): label is string => typeof label === 'string'),
  }
}

function layer4(flow: Row): Pick<RecordedFlow, 'protocol' | 'sourcePort' | 'port' | 'icmpCode'> | undefined {
  const l4 = rowIn(flow, 'l4') ?? {}
  for (const protocol of ['TCP', 'UDP', 'SCTP'] as const) {
    const ports = rowIn(l4, protocol)
    const port = numberIn(ports, 'destination_port')
    if (port !== undefined) return { protocol, sourcePort: numberIn(ports, 'source_port') ?? 0, port }
  }
  // Zero is left out where it is the value: an echo reply has no type, and most have no code.
  const [icmp4, icmp6] = [rowIn(l4, 'ICMPv4'), rowIn(l4, 'ICMPv6')]
  const icmp = icmp4 ?? icmp6
  if (icmp === undefined) return undefined
  const [port, icmpCode] = [numberIn(icmp, 'type') ?? 0, numberIn(icmp, 'code') ?? 0]
  return { protocol: icmp4 === undefined ? 'ICMPv6' : 'ICMP', sourcePort: 0, port, icmpCode }
}

function numberIn(row: Row | undefined, key: string): number | undefined {
  const value = row?.[key]
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : undefined
}

/** The names that flow.proto gives to the numbers of bpf/lib/drop_reasons.h. */
const dropNames: Readonly<Record<number, string>> = {
  132: 'INVALID_SOURCE_IP',
  133: 'POLICY_DENIED',
  134: 'INVALID_PACKET_DROPPED',
  136: 'CT_MISSING_TCP_ACK_FLAG',
  137: 'CT_UNKNOWN_L4_PROTOCOL',
  139: 'UNSUPPORTED_L3_PROTOCOL',
  140: 'MISSED_TAIL_CALL',
  142: 'UNKNOWN_L4_PROTOCOL',
  147: 'ERROR_RETRIEVING_TUNNEL_KEY',
  150: 'UNKNOWN_L3_TARGET_ADDRESS',
  151: 'STALE_OR_UNROUTABLE_IP',
  153: 'ERROR_WHILE_CORRECTING_L3_CHECKSUM',
  154: 'ERROR_WHILE_CORRECTING_L4_CHECKSUM',
  155: 'CT_MAP_INSERTION_FAILED',
  157: 'IP_FRAGMENTATION_NOT_SUPPORTED',
  158: 'SERVICE_BACKEND_NOT_FOUND',
  160: 'NO_TUNNEL_OR_ENCAPSULATION_ENDPOINT',
  164: 'LOCAL_HOST_IS_UNREACHABLE',
  167: 'NO_MAPPING_FOR_NAT_MASQUERADE',
  168: 'UNSUPPORTED_PROTOCOL_FOR_NAT_MASQUERADE',
  169: 'FIB_LOOKUP_FAILED',
  170: 'ENCAPSULATION_TRAFFIC_IS_PROHIBITED',
  171: 'INVALID_IDENTITY',
  174: 'IS_A_CLUSTERIP',
  177: 'DENIED_BY_LB_SRC_RANGE_CHECK',
  181: 'POLICY_DENY',
  182: 'VLAN_FILTERED',
  189: 'AUTH_REQUIRED',
  193: 'UNSUPPORTED_PROTOCOL_FOR_DSR_ENCAP',
  194: 'NO_EGRESS_GATEWAY',
  195: 'UNENCRYPTED_TRAFFIC',
  196: 'TTL_EXCEEDED',
  197: 'NO_NODE_ID',
  202: 'DROP_HOST_NOT_READY',
  203: 'DROP_EP_NOT_READY',
  204: 'DROP_NO_EGRESS_IP',
}

export function hubbleDropName(number: number): string {
  return dropNames[number] ?? 'DROP_REASON_UNKNOWN'
}

/** Flows as `hubble observe -o json` prints them (flow/flow.proto of Cilium 1.18), with or without the wrapping `{"flow": …}`. */
import type { PeerOutcome } from './flow'
import type { Labels, Workload } from './holder'
import type { ObservedFlow, ObservedPeer, PeerEntity } from './observed-flow'
import {
  instantIn,
  lacks,
  passOver,
  portIn,
  protocolOf,
  type Row,
  type RowReading,
  rowIn,
  tellMissingPort,
  textIn,
} from './read-flows-file-row'

const otherEntries = ['lost_events', 'node_status', 'agent_event', 'debug_event']

export function isHubbleRow(row: Row): boolean {
  if (rowIn(row, 'flow') !== undefined || otherEntries.some((name) => name in row)) return true
  return 'verdict' in row && (rowIn(row, 'source') !== undefined || rowIn(row, 'IP') !== undefined)
}

type End = {
  readonly row: Row | undefined
  readonly address: string | null
  readonly port: number | null
  readonly namespace: string | null
  readonly name: string | null
  readonly labels: readonly string[]
}

/** Only what a pod sent or received first tells of a connection: replies and parts of requests are passed over. */
export function readHubbleRow(entry: Row, reading: RowReading): ObservedFlow | undefined {
  const flow = rowIn(entry, 'flow') ?? entry
  const time = instantIn(flow, 'time') ?? instantIn(entry, 'time')
  const decision = decisions[textIn(flow, 'verdict') ?? '']
  const direction = directionOf(textIn(flow, 'traffic_direction'))
  if (flow === entry && !('verdict' in flow)) return passOver(reading)
  if (flow.is_reply === true || flow.Type === 'L7' || decision === undefined) return passOver(reading)
  if (time === undefined) return lacks('its time', reading)
  if (direction === undefined) return passOver(reading)
  const [protocol, ports] = layer4(flow)
  const source = endOf(flow, { side: 'source', port: portIn(ports, 'source_port', reading) })
  const target = endOf(flow, { side: 'destination', port: portIn(ports, 'destination_port', reading) })
  const [own, peer] = direction === 'EGRESS' ? [source, target] : [target, source]
  // Policies hold for pods, and so does what is generated of flows.
  if (own.name === null) return passOver(reading)
  const observed: ObservedFlow = {
    firstSeen: time,
    lastSeen: time,
    hits: 1,
    pod: {
      namespace: own.namespace,
      name: own.name,
      uid: textIn(own.row, 'pod_uid'),
      address: own.address,
      workload: workloadIn(own.row),
      labels: podLabels(own),
    },
    direction,
    protocol: protocolOf(protocol, reading),
    ownPort: own.port,
    peerAddress: peer.address,
    peerPort: peer.port,
    decision,
    ...peerOf(peer),
  }
  tellMissingPort(direction === 'INGRESS' ? own.port : peer.port, observed.protocol, reading)
  return observed
}

/** Verdicts of the datapath. What only traces a packet decides nothing. */
const decisions: Readonly<Record<string, string>> = {
  FORWARDED: 'ALLOW',
  REDIRECTED: 'ALLOW',
  AUDIT: 'AUDIT',
  DROPPED: 'DROP',
  ERROR: 'DROP',
}

function directionOf(text: string | null): 'INGRESS' | 'EGRESS' | undefined {
  return text === 'INGRESS' || text === 'EGRESS' ? text : undefined
}

function layer4(flow: Row): readonly [string, Row] {
  const l4 = rowIn(flow, 'l4') ?? {}
  const [name = 'none'] = Object.keys(l4)
  return [name.toUpperCase() === 'ICMPV4' ? 'ICMP' : name, rowIn(l4, name) ?? {}]
}

type Side = { readonly side: 'source' | 'destination'; readonly port: number | null }

function endOf(flow: Row, { side, port }: Side): End {
  const row = rowIn(flow, side)
  const listed = Array.isArray(row?.labels) ? row.labels : []
  return {
    row,
    address: textIn(rowIn(flow, 'IP'), side),
    port,
    namespace: textIn(row, 'namespace'),
    name: textIn(row, 'pod_name'),
    labels: listed.filter((label): label is string => typeof label === 'string'),
  }
}

function workloadIn(row: Row | undefined): Workload | null {
  const [first] = Array.isArray(row?.workloads) ? row.workloads : []
  const workload = typeof first === 'object' && first !== null ? (first as Row) : undefined
  const [kind, name] = [textIn(workload, 'kind'), textIn(workload, 'name')]
  return kind === null || name === null ? null : { kind, name }
}

/** The pod's own among the labels of its identity: Cilium adds the namespace, its labels and the service account. */
function podLabels({ labels }: End): Labels | null {
  const own = labels
    .filter((label) => label.startsWith('k8s:') && !/^k8s:io\.(cilium|kubernetes)\./.test(label))
    .map((label) => label.slice('k8s:'.length))
    .map((label): [string, string] => {
      const at = label.indexOf('=')
      return at < 0 ? [label, ''] : [label.slice(0, at), label.slice(at + 1)]
    })
  return own.length === 0 ? null : Object.fromEntries(own)
}

const neverHeld: PeerOutcome = { kind: 'never-held' }
const resolved: PeerOutcome = { kind: 'resolved' }

/** Only what Cilium calls the world is known to be nobody's here. */
function peerOf(end: End): { readonly peer: ObservedPeer | null; readonly outcome: PeerOutcome | null } {
  const entity = entityOf(end.labels)
  const uid = textIn(end.row, 'pod_uid')
  const workload = workloadIn(end.row)
  const [namespace, name] = [end.namespace ?? '', end.name ?? '']
  if (entity !== undefined) {
    return { peer: { kind: 'node', namespace, name, uid, workload, labels: null, entity }, outcome: resolved }
  }
  if (end.name === null) {
    const isWorld = end.labels.some((label) => label.startsWith('reserved:world'))
    return { peer: null, outcome: isWorld ? neverHeld : null }
  }
  return { peer: { kind: 'pod', namespace, name, uid, workload, labels: podLabels(end) }, outcome: resolved }
}

function entityOf(labels: readonly string[]): PeerEntity | undefined {
  const names: readonly PeerEntity[] = ['kube-apiserver', 'host', 'remote-node']
  return names.find((name) => labels.includes(`reserved:${name}`))
}

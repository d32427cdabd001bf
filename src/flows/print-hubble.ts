/** A walk as the flows that Hubble would print of it: one for each verdict of policy, each point that traces it, and its drop. */
import { parseEndpoint, printIp } from '#base/ip'
import type { Leg, Walk, WalkStep } from '#model/walk'
import { icmpSummary } from './icmp-summary'
import { hubbleDropName } from './recorded-flow-hubble'

/** Whom an address belongs to, as flow.proto's Endpoint tells it. */
export type HubbleEnd = {
  readonly ID?: number
  readonly identity?: number
  readonly cluster_name?: string
  readonly namespace?: string
  readonly labels?: readonly string[]
  readonly pod_name?: string
  readonly workloads?: readonly { readonly name: string; readonly kind: string }[]
}

export type HubbleNaming = {
  /** `node` is whose view it is; absent for what is outside. */
  readonly describe: (address: string, node: string | undefined) => HubbleEnd
  /** RFC 3339. */
  readonly time: string
}

export type HubbleRow = {
  readonly flow: Readonly<Record<string, unknown>>
  readonly node_name?: string
  readonly time: string
}

/** In the order of the walk, the answer's after the request's; zero values are left out, as protobuf's JSON does. */
export function hubbleRows({ request, reply }: Walk, naming: HubbleNaming): readonly HubbleRow[] {
  return [
    ...legRows(request, { naming, isReply: false }),
    ...(reply === undefined ? [] : legRows(reply, { naming, isReply: true })),
  ]
}

export function printHubbleRows(rows: readonly HubbleRow[]): string {
  return rows.map((row) => `${JSON.stringify(row)}\n`).join('')
}

type Setting = { readonly naming: HubbleNaming; readonly isReply: boolean }

type Seen = {
  readonly verdict: string
  readonly event: { readonly type: number; readonly sub_type?: number }
  readonly direction: 'INGRESS' | 'EGRESS' | 'TRAFFIC_DIRECTION_UNKNOWN'
  readonly point?: string
  readonly type?: 'SOCK'
  readonly more?: Readonly<Record<string, unknown>>
}

function legRows(leg: Leg, setting: Setting): readonly HubbleRow[] {
  return leg.steps.flatMap((step, at) => {
    const isLast = at === leg.steps.length - 1
    const seen = [
      ...policySeen(leg, step, leg.steps[at + 1]),
      ...traceSeen(step, setting.isReply),
      ...(isLast ? dropSeen(leg, step) : []),
    ]
    return seen.map((one) => rowOf(step, one, setting))
  })
}

/** Numbers of pkg/monitor/api: what an event of a trace has as its sub-type. */
const points: Readonly<Record<string, number>> = {
  TO_ENDPOINT: 0,
  TO_PROXY: 1,
  TO_HOST: 2,
  TO_STACK: 3,
  TO_OVERLAY: 4,
  FROM_ENDPOINT: 5,
  FROM_PROXY: 6,
  FROM_HOST: 7,
  FROM_STACK: 8,
  FROM_OVERLAY: 9,
  FROM_NETWORK: 10,
  TO_NETWORK: 11,
}

function traceSeen(step: WalkStep, isReply: boolean): readonly Seen[] {
  const isSocket = step.at.hook.startsWith('cgroup/')
  if (isSocket && (step.changes ?? []).length > 0) {
    const more = { sock_xlate_point: 'SOCK_XLATE_POINT_POST_DIRECTION_FWD' }
    return [{ verdict: 'TRANSLATED', event: { type: 7 }, direction: 'EGRESS', type: 'SOCK', more }]
  }
  const point = pointOf(step)
  if (point === undefined) return []
  const sub = points[point] ?? 0
  return [
    {
      verdict: point === 'TO_PROXY' ? 'REDIRECTED' : 'FORWARDED',
      event: { type: 4, ...(sub !== 0 && { sub_type: sub }) },
      direction: directionAt(step, point, isReply),
      point,
      ...(point === 'TO_PROXY' && { more: proxyPort(step) }),
    },
  ]
}

/** Steps say where Hubble sees them: `(to-endpoint)`. Between kube-proxy nodes, pods alone are seen. */
function pointOf({ at, did, because }: WalkStep): string | undefined {
  const told = /\(((?:to|from)-(?:endpoint|proxy|host|stack|overlay|network))\)/.exec(`${did} ${because}`)?.[1]
  if (told !== undefined) return told.replace('-', '_').toUpperCase()
  if (at.hook !== 'pod') return undefined
  return did === 'delivered' ? 'TO_ENDPOINT' : 'FROM_ENDPOINT'
}

/**
 * Mirrors decodeTrafficDirection of pkg/hubble/parser/threefour: where the datapath tells the endpoint and what connection
 * tracking said, which it does on the way out of a program; answers are of the other direction.
 */
function directionAt({ at }: WalkStep, point: string, isReply: boolean): Seen['direction'] {
  if (!isReasonKnown(point)) return 'TRAFFIC_DIRECTION_UNKNOWN'
  const isReceiver = point === 'TO_ENDPOINT' || at.program === 'cil_lxc_policy'
  if (!isReceiver && at.program !== undefined && at.program !== 'cil_from_container') return 'TRAFFIC_DIRECTION_UNKNOWN'
  return isReceiver !== isReply ? 'INGRESS' : 'EGRESS'
}

function isReasonKnown(point: string | undefined): boolean {
  return point?.startsWith('TO_') === true
}

/** A connection's first packet gets a verdict at each end that a policy is asked at. */
function policySeen(leg: Leg, step: WalkStep, next: WalkStep | undefined): readonly Seen[] {
  const direction = policyDirection(step)
  if (direction === undefined) return []
  const isRefused = leg.verdict.kind !== 'allowed' && (next === undefined || /^dropped|^cannot/.test(next.did))
  const drop = isRefused ? leg.drop : undefined
  const isDenied = drop !== undefined || (isRefused && leg.verdict.kind === 'denied')
  if (isRefused && !isDenied) return []
  const isRedirected = next !== undefined && pointOf(next) === 'TO_PROXY'
  const verdict = isDenied ? 'DROPPED' : isRedirected ? 'REDIRECTED' : /: audit$/.test(step.did) ? 'AUDIT' : 'FORWARDED'
  const number = drop?.number ?? 133
  return [
    {
      verdict,
      event: { type: 5 },
      direction,
      more: {
        policy_match_type: isDenied && number === 133 ? undefined : matchType(step),
        ...(isDenied && { drop_reason: number, drop_reason_desc: hubbleDropName(number) }),
        ...(isRedirected && proxyPort(next)),
      },
    },
  ]
}

function policyDirection({ at, did }: WalkStep): 'INGRESS' | 'EGRESS' | undefined {
  const told = /^asked (ingress|egress) policy/.exec(did)?.[1] ?? /^policy (ingress|egress)$/.exec(at.hook)?.[1]
  return told === undefined ? undefined : told === 'ingress' ? 'INGRESS' : 'EGRESS'
}

/** Of the row that decided, as bpf/lib/policy.h numbers it: of two that were found the longer one, then the identity's own. */
function matchType({ lookups = [] }: WalkStep): number | undefined {
  const rows = lookups.flatMap(({ map, value }) => {
    const [, identity, port] = (/_policy_/.test(map) && /^(?:Ingress|Egress): (\d+) (\S+) /.exec(value ?? '')) || []
    if (identity === undefined || port === undefined) return []
    return [{ hasIdentity: identity !== '0', length: /^\d/.test(port) ? 2 : port === 'ANY' ? 0 : 1 }]
  })
  const [first, second] = rows
  const row = first !== undefined && second !== undefined && second.length > first.length ? second : first
  if (row === undefined) return undefined
  const [any = 0, protocol = 0, exact = 0] = row.hasIdentity ? [1, 5, 2] : [4, 6, 3]
  return row.length === 2 ? exact : row.length === 1 ? protocol : any
}

function proxyPort({ because }: WalkStep): Readonly<Record<string, unknown>> {
  const port = Number(/proxy at port (\d+)/.exec(because)?.[1] ?? Number.NaN)
  return Number.isNaN(port) ? {} : { proxy_port: port }
}

/** Hubble calls a rejection a drop as well; a policy of kube-proxy’s nodes has no number of its own. */
function dropSeen({ verdict, drop, steps }: Leg, step: WalkStep): readonly Seen[] {
  if (verdict.kind === 'allowed' || verdict.kind === 'unknown') return []
  const number = drop?.number ?? (verdict.kind === 'denied' ? 133 : undefined)
  const asked = steps.findLast((one) => policyDirection(one) !== undefined)
  const direction =
    (asked === undefined ? undefined : policyDirection(asked)) ??
    (step.at.program === 'cil_from_container' ? 'EGRESS' : 'TRAFFIC_DIRECTION_UNKNOWN')
  return [
    {
      verdict: 'DROPPED',
      event: { type: 1, ...(number !== undefined && { sub_type: number }) },
      direction,
      more: number === undefined ? {} : { drop_reason: number, drop_reason_desc: hubbleDropName(number) },
    },
  ]
}

function rowOf(step: WalkStep, seen: Seen, { naming, isReply }: Setting): HubbleRow {
  const { packet, at } = step
  const [source, destination] = [packet.source, packet.destination].map(endOf)
  const { describe, time } = naming
  const flow = {
    time,
    verdict: seen.verdict,
    IP: {
      source: source?.ip,
      destination: destination?.ip,
      ipVersion: packet.source.includes('[') || /^[^.]*:[^.]*$/.test(source?.ip ?? '') ? 'IPv6' : 'IPv4',
    },
    l4: layer4(step, isReply),
    source: describe(source?.ip ?? '', at.node),
    destination: describe(destination?.ip ?? '', at.node),
    Type: seen.type ?? 'L3_L4',
    node_name: at.node,
    event_type: seen.event,
    traffic_direction: seen.direction,
    trace_observation_point: seen.point,
    // Of drops, and where connection tracking was not asked yet, it is not known.
    ...((seen.event.type === 5 || isReasonKnown(seen.point)) && { is_reply: isReply }),
    ...seen.more,
    Summary: summaryOf(packet.protocol, isReply),
  }
  return { flow: withoutAbsent(flow), ...(at.node !== undefined && { node_name: at.node }), time }
}

function withoutAbsent(flow: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(flow).filter(([, value]) => value !== undefined))
}

function endOf(text: string): { readonly ip: string; readonly port?: number } | undefined {
  const end = parseEndpoint(text)
  return end === undefined ? undefined : { ip: printIp(end.ip), ...(end.port !== undefined && { port: end.port }) }
}

type Icmp = { readonly name: 'ICMPv4' | 'ICMPv6'; readonly type: number; readonly code: number }

/** Of `ICMP type 3 code 3`; without a code type 3 says that fragmentation is needed. */
function icmpOf(text: string, isReply: boolean): Icmp {
  const [protocol = ''] = text.split(' ')
  const type = Number(/type (\d+)/.exec(text)?.[1] ?? echoType(protocol, isReply))
  const code = Number(/ code (\d+)/.exec(text)?.[1] ?? (protocol === 'ICMP' && type === 3 ? 4 : 0))
  return { name: protocol === 'ICMP' ? 'ICMPv4' : 'ICMPv6', type, code }
}

function layer4({ packet }: WalkStep, isReply: boolean): Readonly<Record<string, unknown>> {
  const [protocol = ''] = packet.protocol.split(' ')
  if (protocol.startsWith('ICMP')) {
    const { name, type, code } = icmpOf(packet.protocol, isReply)
    return { [name]: { ...(type !== 0 && { type }), ...(code !== 0 && { code }) } }
  }
  const ports = {
    source_port: endOf(packet.source)?.port,
    destination_port: endOf(packet.destination)?.port,
  }
  if (protocol !== 'TCP') return { [protocol]: ports }
  return { TCP: { ...ports, flags: isReply ? { SYN: true, ACK: true } : { SYN: true } } }
}

function echoType(protocol: string, isReply: boolean): number {
  if (protocol === 'ICMP') return isReply ? 0 : 8
  return isReply ? 129 : 128
}

function summaryOf(protocol: string, isReply: boolean): string {
  if (protocol === 'TCP') return isReply ? 'TCP Flags: SYN, ACK' : 'TCP Flags: SYN'
  if (!protocol.startsWith('ICMP')) return protocol
  const { name, ...kind } = icmpOf(protocol, isReply)
  return icmpSummary(name, kind)
}

/** A recorded flow against the walk of its packet: the same verdict, for the same reason, between the same parties? */
import type { Finding } from '#base/finding'
import { printEndpoint } from '#base/ip'
import { listOf } from '#base/text'
import type { HubbleRow } from '#flows/print-hubble'
import type { RecordedEnd, RecordedFlow } from '#flows/recorded-flow-hubble'
import type { Walk } from '#model/walk'
import { isError } from './ask-of-flow'
import { type FlowCheckCode, flowCheckFinding } from './findings'

export type FlowCheck = {
  readonly agrees: boolean
  /** `DROPPED POLICY_DENIED`, `FORWARDED`, or `FORWARDED, later DROPPED POLICY_DENIED`. */
  readonly computed: string
  readonly findings: readonly Finding[]
}

/** `rows` are those that Hubble would print of the walk. */
export function checkFlow(
  flow: RecordedFlow,
  { walk, rows, file }: { readonly walk: Walk; readonly rows: readonly HubbleRow[]; readonly file: string },
): FlowCheck {
  const leg = flow.isReply === true && walk.reply !== undefined ? walk.reply : walk.request
  const own = rows
    .map(({ flow: row }) => row)
    .filter((row) => row.is_reply === undefined || row.is_reply === (flow.isReply === true))
  const drop = own.find((row) => row.verdict === 'DROPPED')
  const computed =
    leg.verdict.kind === 'unknown'
      ? 'unknown'
      : drop === undefined
        ? 'FORWARDED'
        : `DROPPED ${textOf(drop.drop_reason_desc)}`.trim()
  const tell: Tell = (code, message, hint) => [
    flowCheckFinding(code, { message, origin: { file, line: flow.line }, ...(hint !== undefined && { hint }) }),
  ]
  const found = verdictFindings(flow, { own, drop, leg, computed }, tell)
  const ends = endFindings(flow, own, tell)
  if (found.length > 0 && computed !== 'unknown' && isError(flow)) {
    const sentence = `an error of ICMP is judged by the connection that it is about, which the record does not tell; as one about none it is ${computed} here`
    return {
      agrees: false,
      computed: 'unknown',
      findings: [...tell('flow-check.open', `${packetText(flow)}: ${sentence}`), ...ends],
    }
  }
  const agrees = found.length === 0
  const isOnItsWay = agrees && drop !== undefined && flow.verdict !== 'DROPPED' && flow.verdict !== 'ERROR'
  return { agrees, computed: isOnItsWay ? `FORWARDED, later ${computed}` : computed, findings: [...found, ...ends] }
}

type Tell = (code: FlowCheckCode, message: string, hint?: string) => readonly Finding[]
type Row = HubbleRow['flow']

type Computed = {
  readonly own: readonly Row[]
  readonly drop: Row | undefined
  readonly leg: Walk['request']
  readonly computed: string
}

function verdictFindings(flow: RecordedFlow, { own, drop, leg, computed }: Computed, tell: Tell): readonly Finding[] {
  const [{ sentence }] = leg.verdict.because
  if (leg.verdict.kind === 'unknown') return tell('flow-check.open', `${packetText(flow)}: ${sentence}`)
  const isDropped = flow.verdict === 'DROPPED' || flow.verdict === 'ERROR'
  if (isDropped && drop === undefined) {
    const hint = 'what the node held then differs from these objects: compare its maps with portolan maps diff'
    return tell(
      'flow-check.let-through',
      `${packetText(flow)} was dropped (${flow.dropReason ?? 'no reason told'}), and is let through here: ${sentence}`,
      hint,
    )
  }
  if (isDropped) {
    if (flow.dropReason === undefined || flow.dropReason === drop?.drop_reason_desc) return []
    return tell(
      'flow-check.other-reason',
      `${packetText(flow)} was dropped for ${flow.dropReason}, and is here for ${computed.replace('DROPPED ', '')}: ${sentence}`,
    )
  }
  if (drop === undefined || isBeforeDrop(flow, own)) return []
  return tell(
    'flow-check.dropped',
    `${packetText(flow)} was seen ${flow.verdict}${flow.point === undefined ? '' : ` at ${flow.point}`}, and is dropped here: ${sentence}`,
  )
}

/** What is dropped at its end was let through on its way there. */
function isBeforeDrop({ point, direction, verdict }: RecordedFlow, own: readonly Row[]): boolean {
  const passed = own.filter((row) => row.verdict !== 'DROPPED')
  if (point !== undefined) return passed.some((row) => row.trace_observation_point === point)
  if (verdict === 'TRACED' || verdict === 'TRANSLATED') return true
  return passed.some((row) => eventOf(row) === 5 && row.traffic_direction === direction)
}

function eventOf(row: Row): number | undefined {
  const { event_type: event } = row
  return typeof event === 'object' && event !== null && 'type' in event ? Number(event.type) : undefined
}

function packetText({ protocol, source, destination, sourcePort, port, isReply }: RecordedFlow): string {
  const isIcmp = protocol === 'ICMP' || protocol === 'ICMPv6'
  const [from, to] = isIcmp
    ? [source.address, destination.address]
    : [printEndpoint(source.address, sourcePort), printEndpoint(destination.address, port)]
  return `${protocol} ${from} → ${to}${isReply === true ? ' (answer)' : ''}`
}

/** Each end is compared with the row of the walk that has its address. */
function endFindings(flow: RecordedFlow, own: readonly Row[], tell: Tell): readonly Finding[] {
  return (['source', 'destination'] as const).flatMap((side) => {
    const recorded = flow[side]
    const row = own.find((one) => addressOf(one, side) === recorded.address)
    const end = row?.[side]
    return typeof end === 'object' && end !== null ? endFinding(recorded, end as Row, { flow, side, tell }) : []
  })
}

function addressOf({ IP: ip }: Row, side: 'source' | 'destination'): string | undefined {
  return typeof ip === 'object' && ip !== null ? textOf((ip as Row)[side]) : undefined
}

type Side = { readonly flow: RecordedFlow; readonly side: string; readonly tell: Tell }

function endFinding(recorded: RecordedEnd, end: Row, { flow, side, tell }: Side): readonly Finding[] {
  const [was, is] = [recorded.pod, textOf(end.pod_name)].map((name) => (name === '' ? undefined : name))
  if (was !== undefined && was !== is) {
    const holder = is === undefined ? 'no pod of the input' : `${textOf(end.namespace)}/${is}`
    return tell(
      'flow-check.other-holder',
      `${packetText(flow)}: the ${side} was ${recorded.namespace}/${was}, and its address is that of ${holder} here`,
    )
  }
  const labels = labelsOf(end)
  const differing = recorded.labels.length === 0 || labels.length === 0 ? [] : difference(recorded.labels, labels)
  if (differing.length > 0) {
    return tell(
      'flow-check.other-identity',
      `${packetText(flow)}: the ${side} had other labels than the objects imply: ${listOf(differing, 4)}`,
    )
  }
  const { identity } = end
  const isNumbered = recorded.identity !== undefined && recorded.identity < firstOfPods && recorded.labels.length === 0
  if (typeof identity !== 'number' || !isNumbered || identity === recorded.identity) return []
  return tell(
    'flow-check.other-identity',
    `${packetText(flow)}: the ${side} had identity ${recorded.identity}, where the objects imply ${identity}`,
  )
}

/** Numbers from here on are drawn by each cluster, and from 2²⁴ on by each node. */
const firstOfPods = 256

function labelsOf({ labels }: Row): readonly string[] {
  return Array.isArray(labels) ? labels.filter((label): label is string => typeof label === 'string') : []
}

/** Names that DNS gave, and where the node drew the world’s line, are not the objects’. */
function difference(recorded: readonly string[], own: readonly string[]): readonly string[] {
  const isTold = (label: string): boolean => !/^(?:fqdn:|cidr:|reserved:world)/.test(label)
  const [a, b] = [new Set(recorded.filter(isTold)), new Set(own.filter(isTold))]
  return [
    ...[...a].filter((label) => !b.has(label)).map((label) => `${label} then`),
    ...[...b].filter((label) => !a.has(label)).map((label) => `${label} now`),
  ]
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

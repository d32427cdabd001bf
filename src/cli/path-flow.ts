/** `portolan path --flow`: recorded packets of Hubble's walked anew, each verdict held to the one that was recorded. */
import { Failure } from '#base/failure'
import type { Finding } from '#base/finding'
import { printEndpoint, printIp } from '#base/ip'
import { countOf, plainText } from '#base/text'
import { type HubbleRow, hubbleRows, printHubbleRows } from '#flows/print-hubble'
import { readHubbleFile } from '#flows/read-flows-file'
import type { RecordedEnd, RecordedFlow } from '#flows/recorded-flow-hubble'
import type { Cluster } from '#model/cluster'
import type { Walk, WalkQuestion } from '#model/walk'
import { readText } from '#sources/read-text'
import { drawWalk } from '#trace/draw-walk'
import { printWalk, walkJson } from '#trace/print-walk'
import { askOfFlow } from '#verify/flows/ask-of-flow'
import { checkFlow, type FlowCheck } from '#verify/flows/check-flow'
import type { ExitCode } from './command'
import type { Io } from './io'
import type { PathAsked } from './path-asked'
import { type PreparedWalker, prepareWalker } from './path-walkers'
import { printFindings } from './print-findings'

export type FlowPathOptions = {
  readonly flow: string
  readonly output: 'text' | 'wide' | 'json' | 'mermaid' | 'hubble'
  readonly time: string
}

type Checked = {
  readonly flow: RecordedFlow
  readonly walk: Walk
  readonly rows: readonly HubbleRow[]
  readonly check: FlowCheck
}

export async function runPathFlows(
  io: Io,
  asked: Omit<PathAsked, 'question'>,
  { findings, ...options }: FlowPathOptions & { readonly findings: readonly Finding[] },
): Promise<ExitCode> {
  const file = options.flow === '-' ? 'standard input' : options.flow
  const text = await readText(options.flow, { stdin: io.stdin, say: (sentence) => io.err(`${sentence}\n`) })
  const read = readHubbleFile(text, file)
  if (read.value.length === 0) {
    throw new Failure(
      'input.unreadable',
      `${file} holds no packet that Hubble saw; it should be the output of hubble observe -o json`,
    )
  }
  const walker = await prepareWalker(asked)
  const checked = checkAll(asked.cluster, read.value, { walker, file, time: options.time })
  if (options.output === 'mermaid' && new Set(checked.map(({ walk }) => walk)).size > 1) {
    throw new Failure(
      'usage.bad-argument',
      `${file} holds several packets, and one is drawn; leave one, or use -o text`,
    )
  }
  printFindings(io, [
    ...findings,
    ...walker.findings,
    ...read.findings,
    ...checked.flatMap(({ check }) => check.findings),
  ])
  print(io, checked, options.output)
  return codeOf(checked)
}

/** Packets between the same ends to the same port are one walk. */
function checkAll(
  cluster: Cluster,
  flows: readonly RecordedFlow[],
  { walker, file, time }: { readonly walker: PreparedWalker; readonly file: string; readonly time: string },
): readonly Checked[] {
  const walks = new Map<string, Pick<Checked, 'walk' | 'rows'>>()
  return flows.flatMap((flow) => {
    const question = askOfFlow(cluster, flow)
    if (question === undefined) return []
    const key = keyOf(question)
    const known = walks.get(key) ?? walkOnce(walker, question, time)
    walks.set(key, known)
    return [{ flow, ...known, check: checkFlow(flow, { ...known, file }) }]
  })
}

function keyOf({ source, destination, protocol, port, entryNode, isReplyWanted }: WalkQuestion): string {
  const ends = [source, destination].map(({ ip, pod }) => `${printIp(ip)} ${pod?.meta.namespace}/${pod?.meta.name}`)
  return [...ends, protocol, port, entryNode, isReplyWanted].join(' ')
}

function walkOnce(
  { walk, describe }: PreparedWalker,
  question: WalkQuestion,
  time: string,
): Pick<Checked, 'walk' | 'rows'> {
  const walked = walk(question)
  return { walk: walked, rows: hubbleRows(walked, { describe, time }) }
}

function print(io: Io, checked: readonly Checked[], output: FlowPathOptions['output']): void {
  const walks = [...new Map(checked.map((one) => [one.walk, one])).values()]
  if (output === 'json') io.out(`${JSON.stringify(checked.map(jsonOf), undefined, 2)}\n`)
  else if (output === 'hubble') io.out(walks.map(({ rows }) => printHubbleRows(rows)).join(''))
  else if (output === 'mermaid') io.out(walks.map(({ walk }) => drawWalk(walk)).join(''))
  else io.out(textOf(checked, { walks, isWide: output === 'wide', hasColour: io.isTerminal }))
}

function jsonOf({ flow, walk, check }: Checked): unknown {
  const { line, verdict, dropReason, direction, point, isReply } = flow
  const recorded = {
    verdict,
    ...(dropReason !== undefined && { dropReason }),
    ...(direction !== undefined && { direction }),
    ...(point !== undefined && { point }),
    ...(isReply !== undefined && { isReply }),
  }
  const { agrees, computed, findings } = check
  return { line, packet: packetText(flow), recorded, computed, agrees, findings, walk: walkJson(walk) }
}

/** Of events that have no point. */
const eventNames: Readonly<Record<number, string>> = { 5: 'by policy' }

type Printing = { readonly walks: readonly Checked[]; readonly isWide: boolean; readonly hasColour: boolean }

/** A line for each flow; a single packet is walked in full below. */
function textOf(checked: readonly Checked[], { walks, ...style }: Printing): string {
  const differing = checked.filter(({ check }) => !check.agrees && check.computed !== 'unknown').length
  const lines = checked.map(({ flow, walk, check }, at) => {
    const leg = flow.isReply === true && walk.reply !== undefined ? walk.reply : walk.request
    const sign = check.agrees ? '=' : check.computed === 'unknown' ? '?' : '≠'
    const seen = [
      flow.verdict,
      flow.dropReason,
      flow.point ?? eventNames[flow.eventType ?? 0],
      flow.direction?.toLowerCase(),
    ]
    const recorded = seen.filter((part) => part !== undefined).join(' ')
    const before = checked[at - 1]?.flow
    const head = before !== undefined && packetText(before) === packetText(flow) ? '' : `${packetText(flow)}\n`
    const why = check.agrees && leg.verdict.kind === 'allowed' ? '' : `: ${leg.verdict.because[0].sentence}`
    return `${head}${String(flow.line).padStart(6)}  ${recorded} ${sign} ${check.computed}${why}\n`
  })
  const [only, second] = walks
  const whole =
    only === undefined || second !== undefined
      ? ''
      : `\n${printWalk(only.walk, { title: packetText(only.flow), notes: [], ...style })}`
  const summary = `${countOf(checked.length, 'recorded packet')}: ${differing === 0 ? 'none differs from what the objects imply' : `${differing} ${differing === 1 ? 'differs' : 'differ'} from what the objects imply`}\n`
  return `${plainLines(lines)}${summary}${whole}`
}

function plainLines(lines: readonly string[]): string {
  return lines.map((text) => text.split('\n').map(plainText).join('\n')).join('')
}

function packetText({ protocol, source, destination, sourcePort, port, isReply }: RecordedFlow): string {
  const isIcmp = protocol === 'ICMP' || protocol === 'ICMPv6'
  const from = isIcmp ? source.address : printEndpoint(source.address, sourcePort)
  const to = isIcmp ? destination.address : printEndpoint(destination.address, port)
  return `${protocol} ${nameOf(source, from)} → ${nameOf(destination, to)}${isReply === true ? ', an answer' : ''}`
}

function nameOf({ namespace, pod }: RecordedEnd, address: string): string {
  return pod === undefined ? address : `${namespace}/${pod} (${address})`
}

/** Bad news is a packet that is stopped, or one of which record and objects disagree. */
function codeOf(checked: readonly Checked[]): ExitCode {
  const isBad = checked.some(
    ({ walk, check }) =>
      (!check.agrees && check.computed !== 'unknown') ||
      [walk.request, walk.reply].some((leg) => leg !== undefined && !['allowed', 'unknown'].includes(leg.verdict.kind)),
  )
  if (isBad) return 1
  return checked.some(({ check }) => check.computed === 'unknown') ? 3 : 0
}

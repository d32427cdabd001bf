/** What the rules of one node do with packets to a Service: one answer for each destination and class of clients. */
import { familyOf, type Ip, parseEndpoint, parseIp, printIp } from '#base/ip'
import type { Target, Trace } from '#model/trace'
import { type RulesetTraceInput, traceRuleset } from '#trace/trace-ruleset'
import { type SourceClass, type Sources, sourceClasses } from './choose-sources'
import { type Destination, standIn } from './list-destinations'

export type Answer = {
  readonly destination: Destination
  readonly from: SourceClass
  /** The example that was traced; absent for the node's own processes. */
  readonly source?: string
  readonly trace: Trace
  /** What the lines of rules are lines of; absent for computed rules, which nobody has as text. */
  readonly linesIn?: string
}

export type TracedRules = Pick<RulesetTraceInput, 'rulesets' | 'nft' | 'sets' | 'nodeIps' | 'isBrief'> &
  Pick<Answer, 'linesIn'>

export function traceNode(
  rules: TracedRules,
  destinations: readonly Destination[],
  sources: Sources,
): readonly Answer[] {
  return destinations.flatMap((destination) =>
    sourceClasses.flatMap((from) => traceOne(rules, destination, { from, sources })),
  )
}

function traceOne(
  { linesIn, ...rules }: TracedRules,
  destination: Destination,
  { from, sources }: { readonly from: SourceClass; readonly sources: Sources },
): readonly Answer[] {
  const ip = parseIp(destination.address)
  const source = from === 'node' ? nodeSource(rules.nodeIps ?? [], destination) : sources[from]
  if (ip === undefined || (source === undefined && from !== 'node')) return []
  const { value } = traceRuleset({
    ...rules,
    packet: {
      destination: ip,
      destinationPort: destination.port,
      protocol: destination.protocol,
      ...(source !== undefined && { source }),
    },
    isNodeLocal: destination.kind === 'node port',
    isLocalSource: from === 'node',
  })
  return [
    {
      destination,
      from,
      ...(source !== undefined && { source: printIp(source) }),
      trace: value,
      ...(linesIn !== undefined && { linesIn }),
    },
  ]
}

/** The kernel sends to an address of its own from that same one, and else from the node's primary address. */
function nodeSource(nodeIps: readonly string[], { address, family }: Destination): Ip | undefined {
  const own = nodeIps.filter((one) => familyOf(one) === family && one !== standIn[family])
  const chosen = own.includes(address) ? address : own[0]
  return chosen === undefined ? undefined : parseIp(chosen)
}

/** How the source is seen by the endpoint: `some` when that depends on what is not known, or on who is chosen. */
export function masqueradeOf({ trace, source }: Answer): 'always' | 'never' | 'some' {
  if (trace.masquerade.length === 0) return 'never'
  const isItself = ({ address }: Target): boolean => source !== undefined && hostOf(address) === source
  if (trace.targets.some(isItself)) return 'some'
  return trace.masquerade.some(({ condition }) => condition === 'always') ? 'always' : 'some'
}

function hostOf(address: string): string | undefined {
  const ip = parseEndpoint(address)?.ip
  return ip === undefined ? undefined : printIp(ip)
}

/** A rule of an endpoint that notes its client: iptables' list of the chain, or the affinity set of nftables mode. */
const notesClient = /-m recent --set --name KUBE-SEP-|update @affinity-/

/** Whether the rules remember clients, and for how long where they say it. */
export function memoryOf({ trace }: Answer): {
  readonly remembers: boolean
  readonly seconds?: number
  readonly rule?: string
} {
  const rule = trace.hops.find((hop) => hop.rule !== undefined && notesClient.test(hop.rule))?.rule
  if (rule === undefined) return { remembers: false }
  const seconds = (trace.branches ?? []).map(({ when }) => /of the last (\d+) s/.exec(when)?.[1]).find((one) => one)
  return { remembers: true, rule, ...(seconds !== undefined && { seconds: Number(seconds) }) }
}

/** kube-proxy in nftables mode stops what goes to cluster IPs or ports of no Service; in iptables mode nothing does. */
export function isStoppedAsUnknown({ trace }: Answer): boolean {
  return / chain cluster-ips-check/.test(trace.verdict.because[0].sentence)
}

/** What happened and why, with the rule's line where the rules were given. */
export function outcomeText({ trace, linesIn }: Answer): string {
  const [{ sentence, line }] = trace.verdict.because
  const kind = trace.verdict.kind === 'unknown' ? 'unknown: ' : ''
  return `${kind}${sentence}${lineText(line, linesIn)}`
}

/** ` (node.save:34)`, ` (line 34)` where several files make up the rules, nothing for computed ones. */
export function lineText(line: number | undefined, linesIn: string | undefined): string {
  if (line === undefined || linesIn === undefined) return ''
  return linesIn === '' ? ` (line ${line})` : ` (${linesIn}:${line})`
}

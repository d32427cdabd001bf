/** Traces every destination that a ruleset translates or refuses: the answer to "explain this iptables-save". */
import { parseIp, printEndpoint, printIp } from '#base/ip'
import { compareText, countOf } from '#base/text'
import { commentOf, type Rule, type Ruleset } from '#compile/iptables/rule'
import type { PacketProtocol } from '#model/packet'
import type { Trace } from '#model/trace'
import { parseMaskedAddress } from '#trace/masked-address'
import { type RulesetTraceInput, traceRuleset } from '#trace/trace-ruleset'

export type SurveyRow = {
  /** `shop/web:http`, or the comment or chain of the rule that takes it. */
  readonly name: string
  /** `10.96.0.20:80`, or `this node:30080`. */
  readonly destination: string
  readonly protocol: PacketProtocol
  readonly trace: Trace
  /** What is unusual about the answer, as sentences. */
  readonly anomalies: readonly string[]
}

type Entry = {
  readonly name: string
  /** Undefined: any address of the node. */
  readonly address: string | undefined
  readonly port: number
  readonly protocol: 'tcp' | 'udp' | 'sctp'
}

/** RFC 5737 and RFC 3849 addresses stand for the node where its own are not given. */
const standIn = { ipv4: '192.0.2.1', ipv6: '2001:db8::1' } as const

export type SurveyInput = Pick<RulesetTraceInput, 'rulesets' | 'sets' | 'nodeIps'>

/** Rows by name, then destination. Each costs what its own trace costs: long chains are entered by address and port. */
export function surveyServices(input: SurveyInput): readonly SurveyRow[] {
  const rows: SurveyRow[] = []
  for (const ruleset of input.rulesets) {
    for (const entry of entriesOf(ruleset)) rows.push(surveyEntry(input, ruleset, entry))
  }
  return rows.sort((a, b) => compareText(a.name, b.name) || compareText(a.destination, b.destination))
}

function surveyEntry(input: SurveyInput, ruleset: Ruleset, entry: Entry): SurveyRow {
  const own = input.nodeIps?.find((ip) => ip.includes(':') === (ruleset.family === 'ipv6'))
  const address = entry.address ?? own ?? standIn[ruleset.family]
  const destination = parseIp(address)
  const shown = entry.address === undefined ? `this node:${entry.port}` : printEndpoint(address, entry.port)
  const packet = {
    destination: destination ?? { family: ruleset.family, words: [] },
    destinationPort: entry.port,
    protocol: entry.protocol,
  }
  const trace = traceRuleset({ ...input, packet, isNodeLocal: entry.address === undefined, isBrief: true }).value
  return { name: entry.name, destination: shown, protocol: entry.protocol, trace, anomalies: anomaliesOf(trace) }
}

function anomaliesOf(trace: Trace): readonly string[] {
  const anomalies: string[] = []
  const [first] = trace.verdict.because
  if (trace.verdict.kind === 'unknown') anomalies.push(first.sentence)
  if (trace.verdict.kind === 'allowed' && trace.targets.length === 0) {
    anomalies.push('its rules translate nothing: an empty or stale chain')
  }
  const partly = trace.verdict.because.find((reason) => reason.code === 'trace.partly-untranslated')
  if (partly !== undefined) anomalies.push(partly.sentence)
  const shares = trace.targets.map((target) => target.share)
  if (shares.length > 1 && Math.max(...shares) - Math.min(...shares) > 0.002 * Math.max(...shares) + 0.0002) {
    anomalies.push(`uneven shares: ${Math.min(...shares)} to ${Math.max(...shares)}`)
  }
  return anomalies
}

/** Every destination once: exact addresses with a port, and ports of the node itself. */
function entriesOf(ruleset: Ruleset): readonly Entry[] {
  const entries = new Map<string, Entry>()
  for (const table of ['nat', 'filter']) {
    for (const chain of ruleset.tables.get(table)?.chains.values() ?? []) {
      if (table === 'filter' && !/^KUBE-(SERVICES|EXTERNAL-SERVICES)$/.test(chain.name)) continue
      if (/^KUBE-(SVC|SVL|SEP|EXT|FW|XLB)-/.test(chain.name)) continue
      for (const rule of chain.rules) for (const entry of entriesOfRule(rule, chain.name)) keepEntry(entries, entry)
    }
  }
  return [...entries.values()]
}

function keepEntry(entries: Map<string, Entry>, entry: Entry): void {
  const key = `${entry.address ?? ''} ${entry.protocol} ${entry.port}`
  if (!entries.has(key)) entries.set(key, entry)
}

const passing = new Set(['ACCEPT', 'RETURN', 'MASQUERADE', 'SNAT', 'MARK', 'KUBE-MARK-MASQ', 'LOG', 'NFLOG'])

function entriesOfRule(rule: Rule, chain: string): readonly Entry[] {
  const target = rule.action?.target
  if (target === undefined || passing.has(target)) return []
  const protocol = rule.clauses.find((clause) => clause.kind === 'protocol' && !clause.not)
  if (protocol?.kind !== 'protocol' || !isPortProtocol(protocol.value)) return []
  const ports = portsOf(rule)
  if (ports.length === 0) return []
  const destination = rule.clauses.find((clause) => clause.kind === 'destination')
  if (destination?.kind === 'destination' && destination.not) return []
  const address = destination?.kind === 'destination' ? exactAddress(destination.value) : undefined
  if (destination !== undefined && address === undefined) return []
  const name = nameOf(rule, chain)
  return ports.map((port) => ({ name, address, port, protocol: protocol.value as Entry['protocol'] }))
}

function isPortProtocol(text: string): boolean {
  return text === 'tcp' || text === 'udp' || text === 'sctp'
}

function exactAddress(text: string): string | undefined {
  const prefix = parseMaskedAddress(text)?.prefix
  const isHost = prefix !== undefined && prefix.length === (prefix.ip.family === 'ipv4' ? 32 : 128)
  return isHost ? printIp(prefix.ip) : undefined
}

/** Single ports of `--dport` and `--dports`; of a range, its first. */
function portsOf(rule: Rule): readonly number[] {
  for (const clause of rule.clauses) {
    if (clause.kind !== 'match') continue
    const option = clause.options.find((candidate) => candidate.flag === '--dport' || candidate.flag === '--dports')
    if (option === undefined || option.not) continue
    const texts = (option.values[0] ?? '').split(',')
    return texts.map((text) => Number.parseInt(text, 10)).filter((port) => Number.isInteger(port))
  }
  return []
}

function nameOf(rule: Rule, chain: string): string {
  const comment = commentOf(rule)
  if (comment === undefined) return chain
  return comment.replace(/ (cluster IP|external IP|loadbalancer IP|has no (local )?endpoints)$/, '')
}

/** `12 Services' ports, 1 rejected, 2 with anomalies`. */
export function summarizeSurvey(rows: readonly SurveyRow[]): string {
  const stopped = rows.filter(
    (row) => row.trace.verdict.kind === 'rejected' || row.trace.verdict.kind === 'dropped',
  ).length
  const odd = rows.filter((row) => row.anomalies.length > 0).length
  return `${countOf(rows.length, 'destination')}, ${stopped} rejected or dropped, ${odd} with anomalies`
}

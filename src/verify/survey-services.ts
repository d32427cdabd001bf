/** Traces every destination that a ruleset translates or refuses: the answer to "explain this iptables-save". */
import type { Finding } from '#base/finding'
import { type Family, parseIp, printEndpoint } from '#base/ip'
import { compareText, countOf } from '#base/text'
import { type Table, tableKey } from '#compile/nftables/ruleset'
import type { PacketProtocol } from '#model/packet'
import type { Trace } from '#model/trace'
import { type RulesetTraceInput, traceRuleset } from '#trace/trace-ruleset'
import { listEntries } from './list-entries'
import { listNftEntries } from './list-nft-entries'
import { type Entry, type HiddenRule, uniqueEntries } from './survey-entry'

export type SurveyRow = {
  /** `shop/web:http`, or in parentheses the chain of the rule that takes it. */
  readonly name: string
  /** `10.96.0.20:80`, `this node:30080`, or `any:25`. */
  readonly destination: string
  readonly family: Family
  readonly protocol: PacketProtocol
  readonly trace: Trace
  /** What is unusual about the answer, as sentences. */
  readonly anomalies: readonly string[]
}

/** RFC 5737 and RFC 3849 addresses stand for the node where its own are not given, and for any other address. */
const standIn = { ipv4: '192.0.2.1', ipv6: '2001:db8::1' } as const
const elsewhere = { ipv4: '198.51.100.1', ipv6: '2001:db8:1::1' } as const

export type SurveyInput = Pick<RulesetTraceInput, 'rulesets' | 'nft' | 'sets' | 'nodeIps'>

export type Survey = {
  /** By name, then destination. */
  readonly rows: readonly SurveyRow[]
  readonly hidden: readonly HiddenRule[]
  /** What the traces told, each kind once. */
  readonly findings: readonly Finding[]
}

export function surveyServices(input: SurveyInput): readonly SurveyRow[] {
  return surveyRules(input).rows
}

/** Each row costs what its own trace costs: long chains are entered by address and port. */
export function surveyRules(input: SurveyInput): Survey {
  const found = [...input.rulesets.map(listEntries), ...nftTablesOf(input).map(listNftEntries)]
  const findings = new Map<string, Finding>()
  const rows = uniqueEntries(found.flatMap(({ entries }) => entries)).map((entry) =>
    surveyEntry(input, entry, findings),
  )
  return {
    rows: rows.sort((a, b) => compareText(a.name, b.name) || compareText(a.destination, b.destination)),
    hidden: found.flatMap(({ hidden }) => hidden),
    findings: [...findings.values()],
  }
}

/** Without those that iptables-nft keeps and that the input has as iptables rules too. */
function nftTablesOf({ rulesets, nft }: SurveyInput): readonly Table[] {
  const twins = rulesets
    .filter((ruleset) => ruleset.variant !== 'legacy')
    .flatMap(({ family, tables }) => [...tables.keys()].map((name) => `${family === 'ipv4' ? 'ip' : 'ip6'} ${name}`))
  return [...(nft?.tables.values() ?? [])].filter((table) => !twins.includes(tableKey(table)))
}

function surveyEntry(input: SurveyInput, entry: Entry, findings: Map<string, Finding>): SurveyRow {
  const { name, at, family, port, protocol } = entry
  const own = input.nodeIps?.find((ip) => ip.includes(':') === (family === 'ipv6'))
  const address = at.kind === 'any' ? elsewhere[family] : (at.text ?? own ?? standIn[family])
  const place = { address: '', node: 'this node', any: 'any' }[at.kind]
  const destination = at.kind === 'address' ? printEndpoint(address, port) : `${place}:${port}`
  const traced = traceRuleset({
    ...input,
    packet: { destination: parseIp(address) ?? { family, words: [] }, destinationPort: port, protocol },
    isNodeLocal: at.kind === 'node',
    isBrief: true,
  })
  for (const finding of traced.findings) {
    if (finding.code !== 'trace.more-branches' && !findings.has(finding.code)) findings.set(finding.code, finding)
  }
  return { name, destination, family, protocol, trace: traced.value, anomalies: anomaliesOf(traced.value, entry) }
}

function anomaliesOf(trace: Trace, { isTranslation }: Entry): readonly string[] {
  const anomalies: string[] = []
  const [first] = trace.verdict.because
  if (trace.verdict.kind === 'unknown') anomalies.push(first.sentence)
  const answers = [trace, ...(trace.branches ?? [])]
  if (isTranslation && answers.every(({ verdict, targets }) => verdict.kind === 'allowed' && targets.length === 0)) {
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

/** `12 Services' ports, 1 rejected, 2 with anomalies`. */
export function summarizeSurvey(rows: readonly SurveyRow[]): string {
  const stopped = rows.filter(
    (row) => row.trace.verdict.kind === 'rejected' || row.trace.verdict.kind === 'dropped',
  ).length
  const odd = rows.filter((row) => row.anomalies.length > 0).length
  return `${countOf(rows.length, 'destination')}, ${stopped} rejected or dropped, ${odd} with anomalies`
}

/** `portolan trace --all`: every destination that the rules translate or refuse. */
import { type Family, familyOf } from '#base/ip'
import { listOf } from '#base/text'
import type { Trace } from '#model/trace'
import type { RulesetTraceInput } from '#trace/trace-ruleset'
import { recogniseNode } from '#verify/recognise-node'
import { surveyRules } from '#verify/survey-services'
import { reasonToDoubt, withholdVerdict } from '#verify/withhold-verdict'
import type { ExitCode } from './command'
import type { Io } from './io'
import { printFindings } from './print-findings'
import { printSurvey, surveyCode } from './print-survey'
import { type ClusterInput, refuseTooLarge } from './read-inputs'
import { readTraceRules, type TraceRules } from './trace-rules'
import { checkFamily, type IsGiven, type TraceOptions } from './trace-usage'

type All = {
  readonly options: TraceOptions
  readonly input: ClusterInput | undefined
  readonly isGiven: IsGiven
}

/** Measured: the answers to 150,000 destinations, 107 MB of rules, take 2.5 GB beside the rules. */
const heapPerCharacter = 25

/** Both families unless one is asked for. */
export async function traceAll(io: Io, { options, input, isGiven }: All): Promise<ExitCode> {
  const families: readonly Family[] = isGiven('family') ? [options.family] : ['ipv4', 'ipv6']
  const [cidr] = options.clusterCidr ?? []
  checkFamily(options, isGiven('family') || cidr === undefined ? options.family : familyOf(cidr), isGiven)
  const rules = await readTraceRules(io, options, { input, families })
  refuseTooLarge('--all', { size: rules.size ?? 0, heapPerCharacter })
  const known = knownOf(rules)
  const asked = { ...known, rulesets: known.rulesets.filter(({ family }) => families.includes(family)) }
  const survey = surveyRules(asked)
  const told = [...rules.findings, ...recogniseNode(rules)]
  const codes = new Set(told.map((finding) => finding.code))
  const rows = survey.rows.map((row) => {
    const family = row.family
    return { ...row, trace: withholdVerdict(markAssumed(row.trace, rules.assumed), { ...known, family, codes }) }
  })
  const doubts = families.map((family) => reasonToDoubt({ ...known, family, codes }))
  const doubt = rows.length === 0 && doubts.every((one) => one !== undefined) ? doubts[0]?.sentence : undefined
  printFindings(io, [...told, ...survey.findings])
  const notes = [
    ...(rules.computed === undefined ? [] : [rules.computed]),
    ...(rules.assumed.length === 0 ? [] : [`the rules rest on assumed values: ${listOf(rules.assumed, 5)}`]),
    ...(doubt === undefined ? [] : [`unknown: ${doubt}`]),
  ]
  printSurvey(io, { rows, hidden: survey.hidden, notes }, options.output)
  return doubt === undefined ? surveyCode(rows) : 3
}

/** An answer from computed rules says which of their Services rest on assumed values. */
export function markAssumed(trace: Trace, assumed: readonly string[]): Trace {
  if (assumed.length === 0) return trace
  const reason = { code: 'trace.assumed', sentence: `the rules rest on assumed values: ${listOf(assumed, 5)}` }
  const [first, ...rest] = trace.verdict.because
  return { ...trace, verdict: { ...trace.verdict, because: [first, ...rest, reason] } }
}

/** What a trace is told of the node. */
export function knownOf(rules: TraceRules): Pick<RulesetTraceInput, 'rulesets' | 'nft' | 'sets' | 'nodeIps'> {
  return {
    rulesets: rules.rulesets,
    ...(rules.nft === undefined ? {} : { nft: rules.nft }),
    sets: rules.sets,
    ...(rules.nodeIps.length === 0 ? {} : { nodeIps: rules.nodeIps }),
  }
}

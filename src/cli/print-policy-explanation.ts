/** What a traffic policy does with a packet, as six lines or as JSON. */
import type { PacketExplanation, PacketField } from '#compile/traffic-policy/explain-packet'
import type { Decision } from '#compile/traffic-policy/policy-packet'

export type PolicyExplanation = {
  readonly policy: string
  readonly path: string
  /** The names of the policy's rules. */
  readonly rules: readonly string[]
  readonly compiledEntries: number
  readonly outcome: PacketExplanation
}

export function printPolicyExplanation(explanation: PolicyExplanation, output: 'text' | 'json'): string {
  if (output === 'json') return `${JSON.stringify(shapeOf(explanation), undefined, 2)}\n`
  const { policy, path, compiledEntries } = explanation
  const lines = [
    ['policy', policy],
    ['path', path],
    ...answerLines(explanation),
    ['compiled entries', String(compiledEntries)],
  ]
  const width = Math.max(...lines.map(([key = '']) => key.length)) + 2
  return lines.map(([key = '', value = '']) => `${key.padEnd(width)}${value}\n`).join('')
}

function answerLines({ outcome, rules }: PolicyExplanation): readonly (readonly string[])[] {
  if (outcome.kind === 'disagreed') {
    const answers = outcome.answers.map(({ name, decision }) => [`by ${name}`, printDecision(decision, rules)])
    return [['verdict', 'unknown: the deciders disagree'], ...answers]
  }
  if (outcome.kind === 'open') {
    return [
      ['verdict', 'unknown'],
      ['reason', `too many packets fit; add ${flagsOf(outcome.missing)}`],
      ['rule', '-'],
    ]
  }
  const { decisions } = outcome
  const verdicts = unique(decisions.map(({ verdict }) => verdict))
  if (verdicts.length > 1) {
    return [
      ['verdict', 'unknown'],
      ['reason', `it depends on what is left out; add ${flagsOf(outcome.missing)}`],
      ['rule', decisions.map((one) => `${printRule(one, rules)} ${one.verdict}`).join(', ')],
    ]
  }
  return [
    ['verdict', verdicts.join('')],
    ['reason', unique(decisions.map(({ reason }) => reason)).join(' or ')],
    ['rule', unique(decisions.map((one) => printRule(one, rules))).join(' or ')],
  ]
}

function printDecision(decision: Decision, rules: readonly string[]): string {
  return `${decision.verdict}, ${decision.reason}, ${printRule(decision, rules)}`
}

function printRule({ rule }: Decision, rules: readonly string[]): string {
  return rule === undefined ? '-' : `${rules[rule] ?? 'no such rule'} (#${rule})`
}

const flags: Readonly<Record<PacketField, string>> = {
  sourcePort: '--sport',
  destinationPort: '--dport',
  icmpType: '--icmp-type',
  icmpCode: '--icmp-code',
}

function flagsOf(fields: readonly PacketField[]): string {
  return fields.map((field) => flags[field]).join(' and ')
}

function unique(texts: readonly string[]): readonly string[] {
  return [...new Set(texts)]
}

function shapeOf({ policy, path, rules, compiledEntries, outcome }: PolicyExplanation): object {
  const named = (decision: Decision): object => ({
    verdict: decision.verdict,
    reason: decision.reason,
    rule: decision.rule === undefined ? null : { name: rules[decision.rule] ?? null, index: decision.rule },
  })
  if (outcome.kind === 'disagreed') {
    const deciders = outcome.answers.map(({ name, decision }) => ({ name, ...named(decision) }))
    return { policy, path, verdict: 'unknown', reason: null, rule: null, compiledEntries, deciders }
  }
  if (outcome.kind === 'open') {
    return { policy, path, verdict: 'unknown', reason: null, rule: null, compiledEntries, missing: outcome.missing }
  }
  const [first, ...rest] = outcome.decisions
  const agreedBy = outcome.by
  if (rest.length === 0) return { policy, path, ...named(first), compiledEntries, agreedBy }
  const verdicts = unique(outcome.decisions.map(({ verdict }) => verdict))
  const verdict = verdicts.length > 1 ? 'unknown' : first.verdict
  return {
    policy,
    path,
    verdict,
    reason: null,
    rule: null,
    compiledEntries,
    agreedBy,
    possible: outcome.decisions.map(named),
  }
}

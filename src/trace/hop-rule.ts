/** A rule of either engine, as far as hops and verdicts tell of it. */
import { commentOf as commentOfIptables, type Rule as IptablesRule } from '#compile/iptables/rule'
import type { Rule as NftRule } from '#compile/nftables/statement'
import { describeRule as describeIptables } from './describe-rule'

export type HopRule = IptablesRule | NftRule

export function isIptablesRule(rule: HopRule): rule is IptablesRule {
  return 'clauses' in rule
}

export function commentOf(rule: HopRule): string | undefined {
  return isIptablesRule(rule) ? commentOfIptables(rule) : rule.comment
}

/** What a rule asks for, in words; an nftables rule says it itself. */
export function describeRule(rule: HopRule): string {
  if (isIptablesRule(rule)) return describeIptables(rule)
  return rule.text === undefined ? 'the packet meets it' : `it says ${rule.text.trim()}`
}

/** Whether the rule is for one destination or port: such a rule names the Service. */
export function asksDestination(rule: HopRule): boolean {
  if (!isIptablesRule(rule))
    return rule.statements.some((statement) => statement.kind === 'vmap') || /daddr|dport/.test(rule.text ?? '')
  return rule.clauses.some(
    (clause) =>
      clause.kind === 'destination' ||
      (clause.kind === 'match' && clause.options.some((option) => /^--dports?$/.test(option.flag))),
  )
}

/** A rule of either engine, as far as hops and verdicts tell of it. */
import { commentOf as commentOfIptables, type Rule as IptablesRule } from '#compile/iptables/rule'
import { printRule } from '#compile/nftables/print-statement'
import type { TableFamily } from '#compile/nftables/ruleset'
import type { Rule as NftRule } from '#compile/nftables/statement'
import { describeRule as describeIptables } from './describe-rule'

export type HopRule = IptablesRule | NftRule

export function isIptablesRule(rule: HopRule): rule is IptablesRule {
  return 'clauses' in rule
}

export function commentOf(rule: HopRule): string | undefined {
  return isIptablesRule(rule) ? commentOfIptables(rule) : rule.comment
}

/** As it was read; of a rule that was told in JSON, as a listing of its table would print it. */
export function textOfRule(rule: HopRule, table?: string): string | undefined {
  if (isIptablesRule(rule) || rule.text !== undefined) return rule.text
  const family = families.find((one) => table?.startsWith(`${one} `) === true) ?? 'inet'
  return printRule(rule, { family, indent: '', isScript: false })
}

const families: readonly TableFamily[] = ['ip', 'ip6', 'inet', 'arp', 'bridge', 'netdev']

/** What a rule asks for, in words; an nftables rule says it itself. */
export function describeRule(rule: HopRule, table?: string): string {
  if (isIptablesRule(rule)) {
    const known = described.get(rule) ?? describeIptables(rule)
    described.set(rule, known)
    return known
  }
  return `it says ${textOfRule(rule, table)?.trim()}`
}

const described = new WeakMap<IptablesRule, string>()

/** Whether the rule is for one destination or port: such a rule names the Service. */
export function asksDestination(rule: HopRule): boolean {
  if (!isIptablesRule(rule))
    return rule.statements.some((statement) => statement.kind === 'vmap') || /daddr|dport/.test(textOfRule(rule) ?? '')
  return rule.clauses.some(
    (clause) =>
      clause.kind === 'destination' ||
      (clause.kind === 'match' && clause.options.some((option) => /^--dports?$/.test(option.flag))),
  )
}

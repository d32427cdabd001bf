/** Rules that a dump should hold and that cannot be read: they stand in their chains as rules of unknown effect. */
import type { Finding } from '#base/finding'
import { rulesetFinding } from './findings'
import type { DraftChain, Group } from './group'
import { builtinChains, type Rule } from './rule'

/** Whether it matches is open, and so is what it does. */
export function unreadRule(line: number, text: string): Rule {
  return {
    clauses: [{ kind: 'match', name: 'unreadable', options: [{ flag: '--line', not: false, values: [String(line)] }] }],
    action: { kind: 'jump', target: '(unreadable)', options: [] },
    line,
    text,
  }
}

/** A chain whose policy cannot be read ends in a rule of unknown effect. */
export function markUnreadPolicies(group: Group): void {
  for (const chain of group.chains.values()) {
    if (chain.unreadLine !== undefined) chain.rules.push(unreadRule(chain.unreadLine, `:${chain.name}`))
  }
}

/** Where the text ends, for the group that was open there; a group cut in the middle ends with its last rule. */
type End = { readonly lastLine: number; readonly isHalf: boolean }

/** A saved table ends in COMMIT; one that does not was cut, and the last line of a text may be half a rule. */
export function markCut(group: Group, file: string, end: End | undefined): readonly Finding[] {
  if (group.isCommitted || group.table === undefined) return []
  const last = lastRule(group)
  const isHalf = end?.isHalf === true && last?.rule.line === end.lastLine
  if (isHalf) last?.chain.rules.pop()
  const line = end?.lastLine ?? last?.rule.line ?? group.line
  for (const chain of chainsAfter(group, last?.chain)) chain.rules.push(unreadRule(line, '(the rest of the chain)'))
  const left = isHalf ? '; its last rule, which may be half a rule, is left out' : ''
  const message = `table ${group.table} has no COMMIT: the dump was cut${left}, and rules after it are not known`
  const hint = 'take the dump again, into a file'
  return [rulesetFinding('ruleset.cut', { message, file, line, hint })]
}

/** Chains are saved in the order they are declared: the last that has rules may lack some, those behind it all. */
function chainsAfter(group: Group, last: DraftChain | undefined): readonly DraftChain[] {
  for (const name of builtinChains[group.table ?? ''] ?? []) {
    if (!group.chains.has(name)) group.chains.set(name, { name, line: group.line, rules: [], jumps: [] })
  }
  const chains = [...group.chains.values()]
  const from = last === undefined ? 0 : chains.indexOf(last)
  return chains.filter((chain, index) => index >= from && (chain === last || chain.rules.length === 0))
}

function lastRule(group: Group): { readonly chain: DraftChain; readonly rule: Rule } | undefined {
  let best: { chain: DraftChain; rule: Rule } | undefined
  for (const chain of group.chains.values()) {
    const rule = chain.rules.at(-1)
    if (rule !== undefined && (rule.line ?? 0) > (best?.rule.line ?? -1)) best = { chain, rule }
  }
  return best
}

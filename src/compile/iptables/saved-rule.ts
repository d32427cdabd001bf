/** A rule line kept as text and parsed when it is asked for: most rules of a large dump are never met. */
import { parseRuleWords, type RuleParse } from './parse-rule'
import type { Action, Clause, Counters, Rule } from './rule'
import { tokenize } from './tokenize'

/** The chain a rule line belongs to, and what the line says. */
export type RuleLine = { readonly chain: string | undefined; readonly parse: RuleParse }

export function parseRuleLine(text: string): RuleLine {
  const split = tokenize(text)
  if (split === undefined) return { chain: text.split(' ')[1], parse: { kind: 'bad', why: 'a quote is left open' } }
  return { chain: split.words[1], parse: parseRuleWords(split.words, { from: 2, literal: split.literal }) }
}

/** Closed over its text: `clauses` and `action` appear on first use. The text has been parsed once without fault. */
export class SavedRule implements Rule {
  readonly line: number
  readonly text: string
  declare readonly counters?: Counters
  /** The name after `-j` or `-g`. */
  readonly target: string | undefined

  constructor(
    line: RuleLine & { readonly text: string; readonly line: number; readonly counters: Counters | undefined },
  ) {
    this.text = line.text
    this.line = line.line
    this.target = line.parse.kind === 'rule' ? line.parse.action?.target : undefined
    if (line.counters !== undefined) this.counters = line.counters
  }

  get clauses(): readonly Clause[] {
    const { parse } = this
    return parse.kind === 'rule' ? parse.clauses : []
  }

  get action(): Action {
    const { parse } = this
    // A rule without a target has no action; the type of an optional getter cannot say so.
    return (parse.kind === 'rule' ? parse.action : undefined) as Action
  }

  private get parse(): RuleParse {
    const known = recent.get(this.text)
    if (known !== undefined) return known
    const { parse } = parseRuleLine(this.text)
    if (recent.size >= mostRecent) recent.clear()
    recent.set(this.text, parse)
    return parse
  }
}

/** The rules of one walk are asked again and again; keeping what every rule of a large dump says would fill the memory. */
const recent = new Map<string, RuleParse>()
const mostRecent = 2000

/** The target of any rule, without parsing one that was read. */
export function targetOf(rule: Rule): string | undefined {
  return rule instanceof SavedRule ? rule.target : rule.action?.target
}

/** A rule kept as text and parsed when it is asked for: most rules of a large listing are never met. */
import { parseStatements, type RuleParse } from './parse-statement'
import type { Rule, Statement } from './statement'
import { NftCursor, type Scope } from './tokenize-nft'

/** Closed over its text and the table it stands in. The text has been parsed once without fault. */
export class ListedRule implements Rule {
  readonly line: number
  readonly text: string
  declare readonly handle?: number
  /** Not for anyone who lists the rule's own fields: the table holds the rule. */
  readonly #scope: Scope
  #parsed: RuleParse | undefined

  constructor(told: { readonly text: string; readonly line: number; readonly scope: Scope; readonly handle?: number }) {
    this.line = told.line
    this.text = told.text
    this.#scope = told.scope
    if (told.handle !== undefined) this.handle = told.handle
  }

  get statements(): readonly Statement[] {
    return this.#parse().statements
  }

  get comment(): string {
    // A rule without a comment has none; the type of an optional getter cannot say so.
    return this.#parse().comment as string
  }

  #parse(): RuleParse {
    this.#parsed ??= parseStatements(new NftCursor(this.text, this.#scope))
    return this.#parsed
  }
}

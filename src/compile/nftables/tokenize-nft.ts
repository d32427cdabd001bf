/** Walks nft text word by word: words, quoted texts and signs, with line ends that count only outside of braces. */
import type { NamedSet, TableFamily } from './ruleset'

/** The table a text belongs to: its family decides defaults, its sets what their values are. */
export type Scope = { readonly family: TableFamily; readonly sets: ReadonlyMap<string, NamedSet> }

/** `unknown` is text of a newer nft, kept as it is; `syntax` is text that no nft prints. */
export type CursorFailure = { readonly kind: 'syntax' | 'unknown'; readonly why: string }

/** A place in the text, and how many braces are open there. */
export type Place = { readonly at: number; readonly depth: number }

const blank = 1
const sign = 2
const marks = new Uint8Array(128)
for (const text of ' \t\r\v\f') marks[text.charCodeAt(0)] = blank
for (const text of '\n{}()[],;:"#=!<>&|^@$') marks[text.charCodeAt(0)] = sign
const twoSigns = new Set(['==', '!=', '<=', '>=', '<<', '>>'])
const addressPart = /[0-9a-fA-F:./%*-]/
const newline = 10

export function isTableHead(text: string, at: number): boolean {
  if (at > 0 && !/\s/.test(text.charAt(at - 1))) return false
  const head = /[ \t]*table (?:(?:ip6?|inet|arp|bridge|netdev) )?\S+ \{/y
  head.lastIndex = at
  return head.test(text)
}

/**
 * Closed over one text. `word` is what stands here: a word, the inside of a quoted text, a sign, `\n`, or nothing at the
 * end. After a failure it stays at the end, so that every loop ends; `reset` makes it whole again.
 */
export class NftCursor {
  readonly text: string
  /** What stands here, and where it begins. */
  word = ''
  isQuoted = false
  at = 0
  /** Where the word before this one ended. */
  lastEnd = 0
  failure: CursorFailure | undefined
  scope: Scope
  /** What the text leads to; a reader of whole rulesets sets them to learn it. */
  jumps: string[] | undefined
  lookups: string[] | undefined
  private depth = 0
  private next: number

  constructor(text: string, scope: Scope, start = 0) {
    this.text = text
    this.scope = scope
    this.next = start
    this.advance()
    this.lastEnd = start
  }

  advance(): void {
    this.lastEnd = this.next
    const from = this.skipBlanks(this.next)
    this.at = from
    this.isQuoted = false
    if (from >= this.text.length || this.failure !== undefined) {
      this.word = ''
      this.next = from
      return
    }
    const code = this.text.charCodeAt(from)
    if (code === 34 || (code === 92 && this.text.charCodeAt(from + 1) === 34)) this.takeQuoted(from)
    else if (code < 128 && marks[code] === sign) this.takeSign(from, code)
    else this.takeWord(from)
  }

  /** Whether this word stands here, not in quotes. */
  is(word: string): boolean {
    return this.word === word && !this.isQuoted
  }

  /** Takes the word if it stands here. */
  take(word: string): boolean {
    if (!this.is(word)) return false
    this.advance()
    return true
  }

  expect(word: string): void {
    if (!this.take(word)) this.fail(`\`${word}\` is missing`)
  }

  /** Any word or quoted text, but no sign. */
  takeText(what: string): string {
    const { word } = this
    if (!this.isQuoted && !this.isWord()) this.fail(`${what} is missing`)
    else this.advance()
    return word
  }

  /** A name may hold signs (`cali-:x`): it goes on to a blank, a brace, a comma or a semicolon. */
  takeName(what: string): string {
    if (this.isQuoted || !this.isWord()) return this.takeText(what)
    let end = this.at
    while (end < this.text.length && !' \t\r\n{},;"'.includes(this.text.charAt(end))) end++
    const name = this.text.slice(this.at, end)
    this.next = end
    this.advance()
    return name
  }

  takeNumber(what: string): number {
    const { word } = this
    if (this.isQuoted || !/^(0x[0-9a-fA-F]+|\d+)$/.test(word)) {
      this.fail(`${what} is no number`)
      return 0
    }
    this.advance()
    return Number(word)
  }

  isWord(): boolean {
    if (this.isQuoted || this.word === '') return false
    const code = this.word.charCodeAt(0)
    return code >= 128 || marks[code] === 0 || (code === 58 && this.word.length > 1)
  }

  /** Inside of braces a line end is a blank and `#` begins a comment. */
  open(brace: '{' | '('): void {
    if (!this.is(brace)) {
      this.fail(`\`${brace}\` is missing`)
      return
    }
    this.depth++
    this.advance()
  }

  close(brace: '}' | ')'): void {
    if (!this.is(brace)) {
      this.fail(`\`${brace}\` is missing`)
      return
    }
    this.depth--
    this.advance()
  }

  /** Opens a brace inside of which line ends count; returns what `leaveLines` needs before the brace closes. */
  openLines(): number {
    const depth = this.depth + 1
    this.depth = 0
    this.advance()
    return depth
  }

  leaveLines(depth: number): void {
    this.depth = depth
  }

  fail(why: string): void {
    this.stop({ kind: 'syntax', why })
  }

  failUnknown(why: string): void {
    this.stop({ kind: 'unknown', why })
  }

  /** Goes back, or on, to a place in the text. */
  reset({ at, depth }: Place): void {
    this.failure = undefined
    this.depth = depth
    this.next = at
    this.advance()
    this.lastEnd = at
  }

  place(): Place {
    return { at: this.at, depth: this.depth }
  }

  /** `table ip x {` at the beginning of a line: nothing goes on over it. */
  isAtTable(): boolean {
    return isTableHead(this.text, this.at)
  }

  endOfLine(from: number): number {
    const end = this.text.indexOf('\n', from)
    return end < 0 ? this.text.length : end
  }

  private stop(failure: CursorFailure): void {
    this.failure ??= failure
    this.word = ''
    this.isQuoted = false
  }

  private skipBlanks(from: number): number {
    const { text } = this
    let index = from
    for (;;) {
      const code = text.charCodeAt(index)
      if (code === newline) {
        if (this.depth === 0) return index
        index++
      } else if (code === 35 && this.depth > 0) index = this.endOfLine(index)
      else if (code < 128 && marks[code] === blank) index++
      else if (code === 92 && /^\\\r?\n/.test(text.slice(index, index + 3))) index = this.endOfLine(index) + 1
      else if (code === 47 && text.charCodeAt(index + 1) === 42) {
        const end = text.indexOf('*/', index + 2)
        if (end < 0) return index
        index = end + 2
      } else return index
    }
  }

  /** nft knows no escapes; a translated iptables rule may have its quotes escaped, as for a shell. */
  private takeQuoted(from: number): void {
    const isEscaped = this.text.charCodeAt(from) === 92
    const begin = from + (isEscaped ? 2 : 1)
    const end = this.text.indexOf(isEscaped ? '\\"' : '"', begin)
    if (end < 0 || end > this.endOfLine(begin)) {
      this.fail('a quote is left open')
      return
    }
    this.word = this.text.slice(begin, end)
    this.isQuoted = true
    this.next = end + (isEscaped ? 2 : 1)
  }

  private takeSign(from: number, code: number): void {
    // `::1` is a word, `:80` a colon and a word.
    if (code === 58 && this.text.charCodeAt(from + 1) === 58) {
      this.takeWord(from)
      return
    }
    const two = this.text.slice(from, from + 2)
    this.word = twoSigns.has(two) ? two : two.slice(0, 1)
    this.next = from + this.word.length
  }

  private takeWord(from: number): void {
    const { text } = this
    let index = from
    for (; index < text.length; index++) {
      const code = text.charCodeAt(index)
      if (code < 128 && marks[code] !== 0) break
    }
    if (text.charCodeAt(index) === 58) index = Math.max(index, this.endOfAddress(from))
    this.word = text.slice(from, index)
    this.next = index
  }

  /** IPv6 and hardware addresses hold colons, two at least; `10.0.0.1:80` and `1:10` hold one and are three words. */
  private endOfAddress(from: number): number {
    const { text } = this
    let end = from
    let colons = 0
    while (end < text.length && addressPart.test(text.charAt(end))) {
      if (text.charCodeAt(end) === 58) colons++
      end++
    }
    if (text.charCodeAt(end - 1) === 58 && text.charCodeAt(end - 2) !== 58) {
      end--
      colons--
    }
    return colons < 2 ? from : end
  }
}

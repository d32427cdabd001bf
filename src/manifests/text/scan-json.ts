/** Where a JSON value ends, or where and why it breaks: `JSON.parse` tells neither alike on every version of Node. */

/** `isCut` is true when the text ended before the value did. */
export type JsonProblem = { readonly at: number; readonly reason: string; readonly isCut: boolean }

export type JsonScan = { readonly end: number } | JsonProblem

/** `isOpen` says that a bracket was opened and its first value is due. */
type Step = { readonly end: number; readonly isOpen?: boolean } | JsonProblem

/** Walks one value from `start`, which may stand before blanks; nothing after the value is looked at. */
export function scanJson(text: string, start: number): JsonScan {
  const closers: string[] = []
  let at = skipBlanks(text, start)
  for (;;) {
    const value = scanValueStart(text, at, closers)
    if ('reason' in value) return value
    at = value.end
    if (value.isOpen) continue
    const after = scanAfterValue(text, at, closers)
    if ('reason' in after || closers.length === 0) return after
    at = after.end
  }
}

export function skipBlanks(text: string, start: number): number {
  let at = start
  while (isBlank(text.charCodeAt(at))) at++
  return at
}

/** Counted from one, as editors do. */
export function lineAndColumn(text: string, at: number): { readonly line: number; readonly column: number } {
  let line = 1
  let lineStart = 0
  for (let next = text.indexOf('\n'); next >= 0 && next < at; next = text.indexOf('\n', next + 1)) {
    line++
    lineStart = next + 1
  }
  return { line, column: at - lineStart + 1 }
}

function scanValueStart(text: string, at: number, closers: string[]): Step {
  const char = text[at]
  if (char === '"') return scanString(text, at)
  if (char !== '{' && char !== '[') return scanWord(text, at)
  const closer = char === '{' ? '}' : ']'
  const first = skipBlanks(text, at + 1)
  if (text[first] === closer) return { end: first + 1 }
  closers.push(closer)
  const step = char === '{' ? scanKey(text, first) : { end: first }
  return 'reason' in step ? step : { end: step.end, isOpen: true }
}

/** Closes brackets until a comma, after which the next value is due, or until the outermost one is closed. */
function scanAfterValue(text: string, start: number, closers: string[]): JsonScan {
  let at = start
  while (closers.length > 0) {
    at = skipBlanks(text, at)
    const closer = closers[closers.length - 1]
    if (text[at] === ',') {
      const next = skipBlanks(text, at + 1)
      return closer === '}' ? scanKey(text, next) : { end: next }
    }
    if (text[at] !== closer) return problem(text, at, `"," or "${closer}" is missing`)
    closers.pop()
    at++
  }
  return { end: at }
}

/** A key and its colon, up to where the value begins. */
function scanKey(text: string, at: number): JsonScan {
  if (text[at] !== '"') return problem(text, at, 'a key in double quotes is missing')
  const key = scanString(text, at)
  if ('reason' in key) return key
  const colon = skipBlanks(text, key.end)
  return text[colon] === ':' ? { end: skipBlanks(text, colon + 1) } : problem(text, colon, '":" is missing after a key')
}

function scanString(text: string, start: number): JsonScan {
  for (let at = start + 1; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === 34) return { end: at + 1 }
    if (code < 32) return problem(text, at, 'a text in quotes holds a line break or another control character')
    if (code !== 92) continue
    const length = escapeLength(text, at + 1)
    if (length === 0) return problem(text, at, 'a backslash begins no known escape')
    at += length
  }
  return problem(text, text.length, 'a text in quotes is not closed')
}

/** Characters after the backslash: 1, 5 for `\uXXXX`, 0 when it is no escape. */
function escapeLength(text: string, at: number): number {
  if (text[at] === 'u') return at + 5 > text.length || /^[0-9a-f]{4}$/i.test(text.slice(at + 1, at + 5)) ? 5 : 0
  return '"\\/bfnrt'.includes(text[at] ?? '') ? 1 : 0
}

const word = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y

/** What a word or a number may look like when the text ends in the middle of it. */
const cutWord = /^(?:t(?:ru?)?|f(?:a(?:ls?)?)?|n(?:ul?)?|-?(?:\d+\.?(?:\d*[eE][+-]?)?)?)$/
const longestWord = 400

function scanWord(text: string, at: number): JsonScan {
  word.lastIndex = at
  const isWord = word.test(text)
  if (isWord && word.lastIndex < text.length && /[\s,\]}]/.test(text.charAt(word.lastIndex)))
    return { end: word.lastIndex }
  const rest = text.slice(at, at + longestWord)
  if (at + rest.length === text.length && rest !== '' && cutWord.test(rest) && !isJsonEnd(rest)) {
    return problem(text, text.length, 'a value is missing')
  }
  return isWord ? { end: word.lastIndex } : problem(text, at, 'a value is missing')
}

/** A whole number at the end of a text may be the value itself. */
function isJsonEnd(rest: string): boolean {
  return /\d$/.test(rest)
}

function problem(text: string, at: number, reason: string): JsonProblem {
  return { at, reason, isCut: at >= text.length }
}

function isBlank(code: number): boolean {
  return code === 32 || code === 10 || code === 13 || code === 9
}

/** What reads a whole text of nft: a cursor that knows its lines, and goes on behind what cannot be read. */

import type { FindingCode } from './findings'
import { createNotes, createTable, excerpt, type Notes, noteFinding } from './parse-draft'
import { isTableHead, NftCursor, type Place } from './tokenize-nft'

export type Reader = {
  readonly cursor: NftCursor
  readonly notes: Notes
  /** Of a place that is not before the last one asked for. */
  readonly lineAt: (at: number) => number
  readonly foreign: { count: number; line: number; text: string }
  /** Where the text ends although braces are open. */
  cutLine: number | undefined
  startLine: number | undefined
  /** How far the table in hand is indented. */
  column: number
}

export function createReader(text: string, file: string): Reader {
  return {
    cursor: new NftCursor(text, createTable('ip', '')),
    notes: createNotes(file),
    lineAt: countLines(text),
    foreign: { count: 0, line: 0, text: '' },
    cutLine: undefined,
    startLine: undefined,
    column: 0,
  }
}

function countLines(text: string): (at: number) => number {
  let counted = 0
  let line = 1
  return (at) => {
    if (at < counted) [counted, line] = [0, 1]
    for (let end = text.indexOf('\n', counted); end >= 0 && end < at; end = text.indexOf('\n', counted)) {
      line++
      counted = end + 1
    }
    return line
  }
}

export function isLineEnd(cursor: NftCursor): boolean {
  return cursor.is('\n') || cursor.is(';')
}

export function columnOf(text: string, at: number): number {
  return at - (text.lastIndexOf('\n', at - 1) + 1)
}

/** Lines that are not nft's are counted, and the first is shown. */
export function skipForeignLine(reader: Reader, from: Place): void {
  const { cursor, foreign } = reader
  const end = cursor.endOfLine(from.at)
  if (foreign.count === 0) {
    foreign.line = reader.lineAt(from.at)
    foreign.text = cursor.text.slice(from.at, end).trim()
  }
  foreign.count++
  cursor.reset({ ...from, at: Math.max(end, from.at + 1) })
}

/** Tells what cannot be read and goes on behind the statement, or behind the line where its braces do not close. */
export function skipBadStatement(reader: Reader, from: Place, code: FindingCode): void {
  const { cursor, notes } = reader
  const why = cursor.failure?.why ?? 'it is not understood'
  const end = endOfStatement(cursor.text, from.at)
  if (end < cursor.text.length || cursor.text.endsWith('\n')) {
    const what = code === 'nft.bad-rule' ? 'rule' : 'line'
    const message = `${what} left out, because ${why}: ${excerpt(cursor.text.slice(from.at, cursor.endOfLine(from.at)).trim())}`
    const hint = 'take the listing again; answers that would meet it may be wrong'
    noteFinding(notes, code, { message, line: reader.lineAt(from.at), hint })
  }
  cursor.reset({ ...from, at: end })
}

/** The next end of a line, `;` or closing brace outside of braces. */
function endOfStatement(text: string, from: number): number {
  const sign = /["{}\n;]/g
  sign.lastIndex = from
  let open = 0
  let lineEnd = -1
  for (let found = sign.exec(text); found !== null; found = sign.exec(text)) {
    const { index } = found
    if (found[0] === '"') {
      const close = text.indexOf('"', index + 1)
      const end = text.indexOf('\n', index)
      if (close >= 0 && (end < 0 || close < end)) sign.lastIndex = close + 1
    } else if (found[0] === '{') open++
    else if (found[0] === '}') {
      if (open === 0) return index
      open--
    } else if (open === 0) return index
    else if (found[0] === '\n') {
      if (lineEnd < 0) lineEnd = index
      if (!goesOn(text, index) || isTableHead(text, index + 1)) return lineEnd
    }
  }
  return lineEnd < 0 ? text.length : lineEnd
}

/** Only a script breaks a statement over lines, behind a brace or a comma. */
function goesOn(text: string, lineEnd: number): boolean {
  return /[{,\\][ \t\r]*$/.test(text.slice(Math.max(0, lineEnd - 20), lineEnd))
}

/** `# handle 5` behind an opening brace or a rule. */
export function handleAt(text: string, at: number): number | undefined {
  const handle = /\s*\{?[ \t]*# handle (\d+)/y
  handle.lastIndex = at
  const match = handle.exec(text)
  return match === null ? undefined : Number(match[1])
}

/** Constants as text: `80`, `1024-65535`, `10.0.0.0/8`, `"eth0"`, `echo-request`. */
import type { Expression } from './expression'
import { parseDurationMilliseconds } from './parse-duration'
import { symbolTableOf } from './parse-symbols'
import { buildConstant, buildWord, isNumeral } from './parse-value'
import type { NftCursor } from './tokenize-nft'

/** Types that hold more names than the table: those of the machine's own files. */
const openTypes = new Set(['inet_service', 'inet_proto', 'devgroup', 'ether_type'])
const address = /^[0-9a-fA-F:.]*[.:][0-9a-fA-F:.]*$/

export function parseConstant(cursor: NftCursor, datatype: string): Expression {
  const { isQuoted } = cursor
  const from = parseEnd(cursor, datatype)
  if (cursor.take('-')) return { kind: 'range', from, to: parseEnd(cursor, datatype) }
  // `"lo"-5` is one range, a text and a word.
  if (!isQuoted || cursor.isQuoted || !cursor.word.startsWith('-') || cursor.at !== cursor.lastEnd) return from
  const to = buildWord(cursor.word.slice(1), datatype)
  cursor.advance()
  return { kind: 'range', from, to }
}

function parseEnd(cursor: NftCursor, datatype: string): Expression {
  const { word } = cursor
  if (cursor.isQuoted) {
    cursor.advance()
    return buildConstant(word, datatype)
  }
  if (!cursor.isWord()) {
    cursor.fail('a value is missing')
    return buildConstant(word, '')
  }
  if (isForeignName(word, datatype)) cursor.failUnknown(`\`${word}\` is no value of type ${datatype}`)
  cursor.advance()
  if (datatype === 'classid' && cursor.is(':') && cursor.at === cursor.lastEnd) {
    cursor.advance()
    return buildConstant(`${word}:${cursor.takeText('the class')}`, 'string')
  }
  // nft says so of a value whose type it has lost, and prints the number.
  if (cursor.take('[')) for (const more of ['invalid', 'type', ']']) cursor.expect(more)
  return parseWord(word, datatype)
}

/** One word may hold two ends or a length: `0-2`, `10.0.0.1-10.0.0.9`, `fd00::/8`; but `echo-request` is one name. */
function parseWord(word: string, datatype: string): Expression {
  const dash = word.indexOf('-')
  const slash = word.indexOf('/')
  if ((dash < 0 && slash < 0) || isName(word, datatype) || datatype === 'ifname') return buildWord(word, datatype)
  for (let at = dash; at > 0; at = word.indexOf('-', at + 1)) {
    const [from, to] = [word.slice(0, at), word.slice(at + 1)]
    if (isEnd(from, datatype) && isEnd(to, datatype)) {
      return { kind: 'range', from: buildWord(from, datatype), to: buildWord(to, datatype) }
    }
  }
  const [start, length] = [word.slice(0, slash), word.slice(slash + 1)]
  if (slash > 0 && isEnd(start, datatype) && /^\d+$/.test(length)) {
    return { kind: 'prefix', address: buildWord(start, datatype), length: Number(length) }
  }
  return buildWord(word, datatype)
}

function isEnd(text: string, datatype: string): boolean {
  if (datatype === 'time') return parseDurationMilliseconds(text) !== undefined
  return isNumeral(text) || address.test(text) || isName(text, datatype)
}

function isName(word: string, datatype: string): boolean {
  return symbolTableOf(datatype)?.numbers.has(word) === true
}

function isForeignName(word: string, datatype: string): boolean {
  const names = symbolTableOf(datatype)
  if (names === undefined || openTypes.has(datatype)) return false
  return !names.numbers.has(word) && !/^\d/.test(word) && !/^[a-z]+\d*-[a-z]+\d*$/.test(word)
}

/** The blocks of a listing: a table with its objects, sets, flowtables and chains. */
import { parseBaseChain, parsePriority } from './parse-base-chain'
import { chainOf, type DraftChain, type DraftTable, noteFinding } from './parse-draft'
import { parseFlowtable, parseObject, takeObjectKind, takeWords } from './parse-object'
import { columnOf, handleAt, isLineEnd, type Reader, skipBadStatement, skipForeignLine } from './parse-reader'
import { ListedRule } from './parse-rule'
import { createSet, parseElements, parseSetBody } from './parse-set'
import { parseStatements } from './parse-statement'
import type { Rule, Statement } from './statement'
import type { NftCursor } from './tokenize-nft'

/** From `{` on. A brace that does not close is told of the whole text. */
export function parseTableBody(reader: Reader, table: DraftTable): void {
  const { cursor } = reader
  const handle = handleAt(cursor.text, cursor.at)
  if (handle !== undefined) table.handle = handle
  cursor.open('{')
  while (!cursor.is('}') && !isAtEnd(reader)) parseTablePart(reader, table)
  closeBlock(reader)
}

function parseTablePart(reader: Reader, table: DraftTable): void {
  const { cursor } = reader
  const start = cursor.place()
  if (cursor.take(';')) return
  if (cursor.take('chain')) parseChain(reader, table, { name: cursor.takeName('the chain'), at: start.at })
  else if (cursor.take('set') || cursor.take('map')) parseNamedSet(reader, table)
  else if (cursor.take('flowtable')) parseNamedFlowtable(reader, table)
  else if (cursor.take('comment')) table.comment = cursor.takeText('the comment')
  else if (cursor.take('flags')) table.flags = takeWords(cursor, 'the flag')
  else parseNamedObject(reader, table)
  if (cursor.failure === undefined) return
  const isLastLine = cursor.endOfLine(cursor.at) >= cursor.text.length
  if (isLastLine || cursor.isAtTable()) cutBlock(reader)
  else skipBadStatement(reader, start, 'nft.bad-line')
}

/** At the end of the text, or at a table that begins inside of this one. */
function isAtEnd(reader: Reader): boolean {
  const { cursor } = reader
  return (cursor.word === '' && cursor.failure === undefined) || cursor.isAtTable()
}

function closeBlock(reader: Reader): void {
  if (reader.cursor.is('}')) reader.cursor.close('}')
  else cutBlock(reader)
}

function cutBlock(reader: Reader): void {
  const { cursor } = reader
  reader.cutLine ??= reader.lineAt(cursor.at)
  cursor.reset({ at: cursor.isAtTable() ? cursor.at : cursor.endOfLine(cursor.at), depth: 0 })
}

/** From its name on. */
export function parseNamedSet(reader: Reader, table: DraftTable): void {
  const { cursor } = reader
  const line = reader.lineAt(cursor.at)
  const name = cursor.takeName('the name of the set')
  const handle = handleAt(cursor.text, cursor.at)
  const known = table.sets.get(name)
  const head = { ...(known ?? createSet(name)), line, ...(handle !== undefined && { handle }) }
  if (!cursor.is('{')) cursor.fail('`{` is missing')
  const set = parseSetBody(cursor, head, (from) => skipBadElement(reader, from))
  if (set.key.kind === 'type' && set.key.names.length === 0) cursor.fail('the type of the set is missing')
  else table.sets.set(name, set)
}

export function addElements(reader: Reader, table: DraftTable, name: string): void {
  const { cursor } = reader
  const set = table.sets.get(name)
  if (set === undefined) cursor.failUnknown(`there is no set ${name}`)
  else parseElements(cursor, set, (from) => skipBadElement(reader, from))
}

/** To the next comma or brace. */
function skipBadElement(reader: Reader, from: number): void {
  const { cursor, notes } = reader
  const why = cursor.failure?.why ?? ''
  const { depth } = cursor.place()
  const sign = /["{},]|\n[ \t]*table \S+ \S+ \{/g
  sign.lastIndex = from
  let open = 0
  let found = sign.exec(cursor.text)
  for (; found !== null; found = sign.exec(cursor.text)) {
    if (found[0] === '"') sign.lastIndex = Math.max(cursor.text.indexOf('"', found.index + 1) + 1, found.index + 1)
    else if (found[0] === '{') open++
    else if (open === 0 || found[0].startsWith('\n')) break
    else if (found[0] === '}') open--
  }
  const at = found?.index ?? cursor.text.length
  if (found !== null) {
    const message = `element left out, because ${why}: \`${cursor.text.slice(from, at).trim().slice(0, 80)}\``
    const hint = 'take the listing again; packets that this element is for are judged as if it were not there'
    noteFinding(notes, 'nft.bad-element', { message, line: reader.lineAt(from), hint })
  }
  cursor.reset({ at, depth })
}

function parseNamedFlowtable(reader: Reader, table: DraftTable): void {
  const { cursor } = reader
  const line = reader.lineAt(cursor.at)
  const name = cursor.takeName('the flowtable')
  const handle = handleAt(cursor.text, cursor.at)
  table.flowtables.set(name, { ...parseFlowtable(cursor, name), line, ...(handle !== undefined && { handle }) })
}

/** What is no object that is known is one of a newer nft, if it has braces, or a line that is not nft's. */
function parseNamedObject(reader: Reader, table: DraftTable): void {
  const { cursor, notes } = reader
  const start = cursor.place()
  const kind = takeObjectKind(cursor)
  if (kind !== undefined) {
    addObject(reader, table, kind)
    return
  }
  const end = cursor.endOfLine(start.at)
  const line = cursor.text.slice(start.at, end)
  if (end === cursor.text.length) {
    // Half a word, where the text was cut.
    cursor.reset({ ...start, at: end })
    return
  }
  if (!/^[a-z][\w-]* .*\{(?: # handle \d+)?\s*$/.test(line)) {
    skipForeignLine(reader, start)
    return
  }
  const message = `an object of an unknown kind is left out: \`${line.trim()}\``
  noteFinding(notes, 'nft.unknown-object', { message, line: reader.lineAt(start.at) })
  skipBraces(reader, start.at + line.lastIndexOf('{'))
}

export function addObject(
  reader: Reader,
  table: DraftTable,
  kind: NonNullable<ReturnType<typeof takeObjectKind>>,
): void {
  const { cursor } = reader
  const line = reader.lineAt(cursor.at)
  const name = cursor.takeName('the name of the object')
  const handle = handleAt(cursor.text, cursor.at)
  const object = { ...parseObject(cursor, name, kind), line, ...(handle !== undefined && { handle }) }
  if (cursor.failure === undefined) table.objects.push(object)
}

function skipBraces(reader: Reader, at: number): void {
  const { cursor } = reader
  const { depth } = cursor.place()
  let open = 0
  const sign = /[{}]/g
  sign.lastIndex = at
  for (let found = sign.exec(cursor.text); found !== null; found = sign.exec(cursor.text)) {
    open += found[0] === '{' ? 1 : -1
    if (open === 0) break
  }
  cursor.reset({ at: open === 0 && sign.lastIndex > 0 ? sign.lastIndex : cursor.text.length, depth })
}

/** From `{` on: what makes it a base chain, and rules, a line each. */
export function parseChain(
  reader: Reader,
  table: DraftTable,
  { name, at }: { readonly name: string; readonly at: number },
): void {
  const { cursor } = reader
  if (!cursor.is('{')) {
    cursor.fail('`{` is missing')
    return
  }
  const chain = chainOf(table, name)
  chain.line ??= reader.lineAt(at)
  const handle = handleAt(cursor.text, cursor.at)
  if (handle !== undefined) chain.handle = handle
  const isIndented = columnOf(cursor.text, at) > reader.column
  const depth = cursor.openLines()
  while (!cursor.is('}') && !isAtEnd(reader)) {
    if (isLineEnd(cursor)) cursor.advance()
    else if (cursor.is('#') && !isLeftover(cursor)) cursor.reset({ at: cursor.endOfLine(cursor.at), depth: 0 })
    else if (isIndented && columnOf(cursor.text, cursor.at) <= reader.column) skipForeignLine(reader, cursor.place())
    else parseChainLine(reader, table, chain)
  }
  cursor.leaveLines(depth)
  closeBlock(reader)
}

/** nft 0.9 begins a rule with `#` when its first match is one of iptables that it cannot translate. */
function isLeftover(cursor: NftCursor): boolean {
  return cursor.text.slice(cursor.at, cursor.endOfLine(cursor.at)).includes(' counter packets ')
}

function parseChainLine(reader: Reader, table: DraftTable, chain: DraftChain): void {
  const { cursor } = reader
  const start = cursor.place()
  if (!isChainWord(cursor.word) || cursor.isQuoted) {
    const rule = parseListedRule(reader, table, chain.name)
    if (rule !== undefined) chain.rules.push(rule)
    return
  }
  const { base } = chain
  if (cursor.is('type')) chain.base = { ...parseBaseChain(cursor), ...(base?.policy && { policy: base.policy }) }
  else if (cursor.take('comment')) chain.comment = cursor.takeText('the comment')
  else if (base === undefined) cursor.fail('the type of the chain is missing')
  else if (cursor.take('policy'))
    chain.base = { ...base, policy: cursor.takeText('the policy') === 'drop' ? 'drop' : 'accept' }
  else if (cursor.take('flags')) chain.base = { ...base, flags: takeWords(cursor, 'the flag') }
  else if (cursor.take('priority')) chain.base = { ...base, priority: parsePriority(cursor, base.hook) }
  if (cursor.failure === undefined && !isLineEnd(cursor) && !cursor.is('}') && cursor.word !== '')
    cursor.fail('`;` is missing')
  if (cursor.failure !== undefined) skipBadStatement(reader, start, 'nft.bad-line')
}

function isChainWord(word: string): boolean {
  return word === 'type' || word === 'policy' || word === 'comment' || word === 'flags' || word === 'priority'
}

/** Parsed to know that it can be, and where it leads; kept as text. */
export function parseListedRule(reader: Reader, table: DraftTable, chain: string): Rule | undefined {
  const { cursor, notes } = reader
  const start = cursor.place()
  cursor.jumps = []
  cursor.lookups = []
  const { statements } = parseStatements(cursor)
  const { jumps, lookups } = cursor
  cursor.jumps = undefined
  cursor.lookups = undefined
  const isWhole = cursor.word !== '' || cursor.text.endsWith('\n') || notes.signs.has('nft-script')
  if (cursor.failure !== undefined) {
    skipBadStatement(reader, start, 'nft.bad-rule')
    return undefined
  }
  // Half a rule could say anything.
  if (!isWhole) return undefined
  const line = reader.lineAt(start.at)
  for (const to of jumps) notes.jumps.push({ table, chain, to, line })
  for (const to of lookups) notes.lookups.push({ table, chain, to, line })
  if (statements.some(isForeign)) notes.signs.add('iptables-nft')
  const text = cursor.text.slice(start.at, cursor.lastEnd)
  const handle = cursor.is('#') ? handleAt(cursor.text, cursor.at) : undefined
  return new ListedRule({ text, line, scope: table, ...(handle !== undefined && { handle }) })
}

/** What only iptables-nft writes. */
function isForeign(statement: Statement): boolean {
  return statement.kind === 'xt' || (statement.kind === 'other' && statement.text.startsWith('#'))
}

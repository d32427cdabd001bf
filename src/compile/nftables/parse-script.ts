/** The commands of a script for `nft -f`, done to the tables that are read: `add rule …`, `flush chain …`, `delete element …`. */
import type { Element } from './expression'
import { chainOf, createTable, type DraftTable, noteFinding, tableOf } from './parse-draft'
import { parseFlowtable, takeObjectKind } from './parse-object'
import { type Reader, skipBadStatement } from './parse-reader'
import { createSet, parseElements } from './parse-set'
import { addElements, addObject, parseChain, parseListedRule, parseNamedSet, parseTableBody } from './parse-table'
import { type TableFamily, tableKey } from './ruleset'
import type { NftCursor } from './tokenize-nft'

const families: readonly TableFamily[] = ['ip', 'ip6', 'inet', 'arp', 'bridge', 'netdev']

type Command = (reader: Reader) => void

const commands: ReadonlyMap<string, Command> = new Map<string, Command>([
  ['add', add],
  ['create', add],
  ['insert', (reader) => placeRule(reader, 'insert')],
  ['replace', (reader) => placeRule(reader, 'replace')],
  ['delete', remove],
  ['destroy', remove],
  ['flush', flush],
  ['rename', rename],
  ['include', include],
  ['list', pass],
  ['reset', pass],
  ['undefine', pass],
])

export function isCommand(word: string): boolean {
  return commands.has(word)
}

export function parseCommand(reader: Reader): void {
  const { cursor, notes } = reader
  const start = cursor.place()
  const command = commands.get(cursor.word)
  if (command !== pass) notes.signs.add('nft-script')
  cursor.advance()
  command?.(reader)
  if (cursor.failure !== undefined) skipBadStatement(reader, start, 'nft.bad-line')
}

/** `ip kube-proxy`; without a family, `ip`. */
export function takeTableName(cursor: NftCursor): { family: TableFamily; name: string } {
  const family = families.find((one) => cursor.is(one))
  if (family !== undefined) cursor.advance()
  return { family: family ?? 'ip', name: cursor.takeName('the table') }
}

function takeTable(reader: Reader): DraftTable {
  const { family, name } = takeTableName(reader.cursor)
  if (reader.cursor.failure !== undefined) return createTable(family, name)
  const table = tableOf(reader.notes, family, name)
  reader.cursor.scope = table
  return table
}

function pass({ cursor }: Reader): void {
  cursor.reset({ at: cursor.endOfLine(cursor.at), depth: 0 })
}

function include(reader: Reader): void {
  const { cursor, notes } = reader
  const file = cursor.word
  const message = `the script includes ${file}, which is not read`
  const hint = 'give the kernel’s own listing, `nft list ruleset`, instead'
  noteFinding(notes, 'nft.include', { message, line: reader.lineAt(cursor.at), hint })
  pass(reader)
}

function add(reader: Reader): void {
  const { cursor } = reader
  const { at } = cursor
  if (cursor.take('table')) {
    const table = takeTable(reader)
    table.line ??= reader.lineAt(at)
    if (cursor.is('{')) parseTableBody(reader, table)
  } else if (cursor.take('rule')) addRule(reader, 'add')
  else if (cursor.take('chain')) addChain(reader, at)
  else if (cursor.take('set') || cursor.take('map')) parseNamedSet(reader, takeTable(reader))
  else if (cursor.take('element')) {
    const table = takeTable(reader)
    addElements(reader, table, cursor.takeName('the set'))
  } else if (cursor.take('flowtable')) {
    const table = takeTable(reader)
    const name = cursor.takeName('the flowtable')
    table.flowtables.set(name, { ...parseFlowtable(cursor, name), line: reader.lineAt(at) })
  } else addNamedObject(reader)
}

function addChain(reader: Reader, at: number): void {
  const { cursor } = reader
  const table = takeTable(reader)
  const name = cursor.takeName('the chain')
  if (cursor.failure !== undefined) return
  chainOf(table, name).line ??= reader.lineAt(at)
  if (!cursor.is('{')) return
  reader.column = Number.POSITIVE_INFINITY
  parseChain(reader, table, { name, at })
}

function addNamedObject(reader: Reader): void {
  const kind = takeObjectKind(reader.cursor)
  if (kind === undefined) reader.cursor.fail('this is no command that Portolan knows')
  else addObject(reader, takeTable(reader), kind)
}

function placeRule(reader: Reader, how: 'insert' | 'replace'): void {
  reader.cursor.expect('rule')
  addRule(reader, how)
}

/** `ip t c [handle 5 | index 2 | position 5] …`. */
function addRule(reader: Reader, how: 'add' | 'insert' | 'replace'): void {
  const { cursor } = reader
  const table = takeTable(reader)
  const name = cursor.takeName('the chain')
  if (cursor.failure !== undefined) return
  const { rules } = chainOf(table, name)
  const place = takePlace(cursor, rules)
  const rule = parseListedRule(reader, table, name)
  if (rule === undefined) return
  const at = place ?? (how === 'insert' ? 0 : rules.length - 1)
  if (how === 'add') rules.splice(at + 1, 0, rule)
  else rules.splice(at, how === 'replace' ? 1 : 0, rule)
}

function takePlace(cursor: NftCursor, rules: readonly { readonly handle?: number }[]): number | undefined {
  if (cursor.take('index')) return cursor.takeNumber('the index')
  if (!cursor.take('handle') && !cursor.take('position')) return undefined
  const handle = cursor.takeNumber('the handle')
  const at = rules.findIndex((rule) => rule.handle === handle)
  return at < 0 ? undefined : at
}

function flush(reader: Reader): void {
  const { cursor, notes } = reader
  if (cursor.take('ruleset')) {
    const family = families.find((one) => cursor.take(one))
    for (const [key, table] of notes.tables)
      if (family === undefined || table.family === family) notes.tables.delete(key)
  } else if (cursor.take('table')) {
    for (const chain of takeTable(reader).chains.values()) chain.rules = []
  } else if (cursor.take('chain')) {
    const table = takeTable(reader)
    chainOf(table, cursor.takeName('the chain')).rules = []
  } else if (cursor.take('set') || cursor.take('map') || cursor.take('meter')) {
    const set = takeTable(reader).sets.get(cursor.takeName('the set'))
    if (set !== undefined) set.elements = []
  } else cursor.fail('this is no command that Portolan knows')
}

function remove(reader: Reader): void {
  const { cursor, notes } = reader
  if (cursor.take('table')) {
    notes.tables.delete(tableKey(takeTableName(cursor)))
    return
  }
  if (cursor.take('rule')) removeRule(reader)
  else if (cursor.take('element')) removeElements(reader)
  else if (cursor.take('chain')) removeNamed(reader, 'chains')
  else if (cursor.take('set') || cursor.take('map')) removeNamed(reader, 'sets')
  else if (cursor.take('flowtable')) removeNamed(reader, 'flowtables')
  else {
    const kind = takeObjectKind(cursor)
    if (kind === undefined) cursor.fail('this is no command that Portolan knows')
    const table = takeTable(reader)
    const name = cursor.takeName('the name of the object')
    table.objects = table.objects.filter((object) => object.kind !== kind || object.name !== name)
  }
}

function removeNamed(reader: Reader, what: 'chains' | 'sets' | 'flowtables'): void {
  const table = takeTable(reader)
  table[what].delete(reader.cursor.takeName('the name'))
}

function removeRule(reader: Reader): void {
  const { cursor } = reader
  const table = takeTable(reader)
  const chain = chainOf(table, cursor.takeName('the chain'))
  cursor.expect('handle')
  const handle = cursor.takeNumber('the handle')
  chain.rules = chain.rules.filter((rule) => rule.handle !== handle)
}

function removeElements(reader: Reader): void {
  const { cursor } = reader
  const set = takeTable(reader).sets.get(cursor.takeName('the set'))
  if (set === undefined) {
    cursor.fail('there is no such set')
    return
  }
  const gone = { ...createSet(set.name), key: set.key, ...(set.data && { data: set.data }) }
  parseElements(cursor, gone, () => undefined)
  const keys = new Set(gone.elements.map(keyOfElement))
  set.elements = set.elements.filter((element) => !keys.has(keyOfElement(element)))
}

function keyOfElement({ key }: Element): string {
  return JSON.stringify(key)
}

function rename(reader: Reader): void {
  const { cursor } = reader
  cursor.expect('chain')
  const table = takeTable(reader)
  const chain = table.chains.get(cursor.takeName('the chain'))
  const name = cursor.takeName('the name')
  if (chain === undefined || cursor.failure !== undefined) return
  table.chains.delete(chain.name)
  table.chains.set(name, { ...chain, name })
}

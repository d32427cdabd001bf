/** Named sets and maps: their heads, and elements over as many lines as there are. */
import type { Element, State } from './expression'
import { valueTypesOf } from './parse-datatype'
import type { DraftSet } from './parse-draft'
import { type ElementWant, parseElement, parseLeft } from './parse-expression'
import { takeObjectKind, takeWords } from './parse-object'
import { parseState, takeDuration } from './parse-state'
import type { DataType, SetFlag } from './ruleset'
import type { NftCursor } from './tokenize-nft'

const flagOrder: readonly SetFlag[] = ['constant', 'dynamic', 'interval', 'timeout']

export function createSet(name: string): DraftSet {
  return {
    name,
    key: { kind: 'type', names: [] },
    isDataInterval: false,
    flags: [],
    isAutoMerged: false,
    statements: [],
    elements: [],
  }
}

/** What hears of an element that cannot be read, and leads the cursor behind it. */
export type OnBadElement = (from: number) => void

/** In braces. `set` grows as it is read, for its elements are read by its types. */
export function parseSetBody(cursor: NftCursor, set: DraftSet, onBadElement: OnBadElement): DraftSet {
  let draft = set
  cursor.open('{')
  while (!cursor.is('}') && cursor.word !== '') {
    if (cursor.take('elements')) {
      cursor.take('=')
      parseElements(cursor, draft, onBadElement)
    } else if (!cursor.take(';')) draft = parsePart(cursor, draft)
  }
  cursor.close('}')
  return draft
}

function parsePart(cursor: NftCursor, set: DraftSet): DraftSet {
  if (cursor.take('type')) return parseTypes(cursor, set, takeTypeNames)
  if (cursor.take('typeof')) return parseTypes(cursor, set, takeTypeof)
  if (cursor.take('flags')) return { ...set, flags: sortSetFlags([...set.flags, ...takeWords(cursor, 'the flag')]) }
  if (cursor.take('timeout')) return withTimeout(set, takeDuration(cursor))
  if (cursor.take('gc-interval')) return { ...set, gcIntervalMilliseconds: takeDuration(cursor) }
  if (cursor.take('size')) return { ...set, size: cursor.takeNumber('the size') }
  if (cursor.take('comment')) return { ...set, comment: cursor.takeText('the comment') }
  if (cursor.take('auto-merge')) return { ...set, isAutoMerged: true }
  if (cursor.take('policy'))
    return { ...set, policy: cursor.takeText('the policy') === 'memory' ? 'memory' : 'performance' }
  const state: State | undefined = parseState(cursor)
  if (state === undefined) cursor.fail(`\`${cursor.word}\` is no part of a set`)
  return state === undefined ? set : { ...set, statements: [...set.statements, state] }
}

/** Listings leave the flag out where the timeout itself stands. */
export function withTimeout(set: DraftSet, timeoutMilliseconds: number): DraftSet {
  return { ...set, timeoutMilliseconds, flags: sortSetFlags([...set.flags, 'timeout']) }
}

export function sortSetFlags(given: readonly string[]): SetFlag[] {
  return flagOrder.filter((flag) => given.includes(flag))
}

function parseTypes(cursor: NftCursor, set: DraftSet, take: (cursor: NftCursor) => DataType): DraftSet {
  const key = take(cursor)
  if (!cursor.take(':')) return { ...set, key }
  const isDataInterval = cursor.take('interval')
  const data: DataType = cursor.is('verdict') || isObjectWord(cursor.word) ? takeTypeNames(cursor) : take(cursor)
  return { ...set, key, data, isDataInterval }
}

function isObjectWord(word: string): boolean {
  return word === 'counter' || word === 'quota' || word === 'limit' || word === 'synproxy' || word === 'secmark'
}

/** `ipv4_addr . inet_service`, `verdict`, `ct helper`. */
function takeTypeNames(cursor: NftCursor): DataType {
  const object = takeObjectKind(cursor)
  if (object !== undefined) return { kind: 'type', names: [object] }
  const names = [cursor.takeText('the type')]
  while (cursor.take('.')) names.push(cursor.takeText('the type'))
  return { kind: 'type', names }
}

function takeTypeof(cursor: NftCursor): DataType {
  return { kind: 'typeof', expression: parseLeft(cursor) }
}

/** `{ a, b, … }`, after which the cursor goes on whatever was in it. */
export function parseElements(cursor: NftCursor, set: DraftSet, onBadElement: OnBadElement): void {
  const want = elementWant(set)
  cursor.open('{')
  while (!cursor.is('}') && cursor.word !== '' && !cursor.isAtTable()) {
    const { at } = cursor
    const element: Element = parseElement(cursor, want)
    if (cursor.failure === undefined && !cursor.is(',') && !cursor.is('}')) cursor.fail(`\`,\` is missing`)
    if (cursor.failure !== undefined) onBadElement(at)
    else if (cursor.word !== '') set.elements.push(element)
    if (!cursor.take(',')) break
  }
  cursor.close('}')
}

function elementWant(set: DraftSet): ElementWant {
  return {
    key: { datatypes: valueTypesOf(set.key), hasSelectors: false },
    data: { datatypes: valueTypesOf(set.data), hasSelectors: false },
  }
}

/** Expressions as text: what to compare with, values made of selectors, bit operations and maps, and sets of elements. */
import type { AnonymousSet, BinaryOperator, Element, Expression, State, Verdict } from './expression'
import { parseConstant } from './parse-constant'
import { datatypesOf } from './parse-datatype'
import { parseSelector } from './parse-selector'
import { parseState, takeDuration } from './parse-state'
import type { NftCursor } from './tokenize-nft'

/** Which types the parts of a value have, and whether it may be taken from the packet. */
export type Want = { readonly datatypes: readonly string[]; readonly hasSelectors: boolean }

export type ElementWant = { readonly key: Want; readonly data: Want }

const operators: ReadonlyMap<string, { readonly operator: BinaryOperator; readonly level: number }> = new Map([
  ['|', { operator: '|', level: 0 }],
  ['or', { operator: '|', level: 0 }],
  ['^', { operator: '^', level: 1 }],
  ['xor', { operator: '^', level: 1 }],
  ['&', { operator: '&', level: 2 }],
  ['and', { operator: '&', level: 2 }],
  ['<<', { operator: '<<', level: 3 }],
  ['lshift', { operator: '<<', level: 3 }],
  ['>>', { operator: '>>', level: 3 }],
  ['rshift', { operator: '>>', level: 3 }],
])

const unknownSelector: Want = { datatypes: [''], hasSelectors: true }

/** What stands on the left of a match: `ip saddr . tcp dport`, `meta mark & 0xff`. */
export function parseLeft(cursor: NftCursor): Expression {
  return parseConcat(cursor, unknownSelector)
}

/** What stands on the right of a match: a constant, several flags, a set or the name of one. */
export function parseRight(cursor: NftCursor, datatypes: readonly string[]): Expression {
  const want = { datatypes, hasSelectors: false }
  if (cursor.is('{')) return parseSet(cursor, { key: want, data: { datatypes: [''], hasSelectors: false } })
  if (cursor.is('@')) return parseReference(cursor)
  const first = parseConcat(cursor, want)
  if (!cursor.is(',')) return first
  const items = first.kind === 'list' ? [...first.items] : [first]
  while (cursor.take(',')) items.push(parseConcat(cursor, want))
  return { kind: 'list', items }
}

/** A value to write: also of the packet, of a map, or reckoned. */
export function parseValue(cursor: NftCursor, datatypes: readonly string[]): Expression {
  if (cursor.is('{')) return parseRight(cursor, datatypes)
  const key = parseConcat(cursor, { datatypes, hasSelectors: true })
  if (cursor.is(',')) return parseFlagRest(cursor, key, datatypes)
  return cursor.take('map') ? { kind: 'map', key, data: parseMapData(cursor, key, datatypes) } : key
}

/** After `map` or `vmap`: `@name`, or elements. */
export function parseMapData(cursor: NftCursor, key: Expression, datatypes: readonly string[]): Expression {
  if (cursor.is('@')) return parseReference(cursor)
  const keys = datatypesOf(key, cursor.scope.sets)
  return parseSet(cursor, {
    key: { datatypes: keys, hasSelectors: false },
    data: { datatypes, hasSelectors: false },
  })
}

function parseFlagRest(cursor: NftCursor, first: Expression, datatypes: readonly string[]): Expression {
  const items = [first]
  while (cursor.take(',')) items.push(parseConcat(cursor, { datatypes, hasSelectors: false }))
  return { kind: 'list', items }
}

export function parseReference(cursor: NftCursor): Expression {
  cursor.advance()
  const set = cursor.takeName('the name of a set')
  cursor.lookups?.push(set)
  return { kind: 'reference', set }
}

function parseConcat(cursor: NftCursor, want: Want): Expression {
  const { datatypes, hasSelectors } = want
  const first = parseBits(cursor, { datatype: datatypes[0] ?? '', hasSelectors }, 0)
  if (!cursor.is('.')) return first
  const parts = [first]
  while (cursor.take('.')) parts.push(parseBits(cursor, { datatype: datatypes[parts.length] ?? '', hasSelectors }, 0))
  return { kind: 'concat', parts }
}

type PartWant = { readonly datatype: string; readonly hasSelectors: boolean }

function parseBits(cursor: NftCursor, want: PartWant, least: number): Expression {
  let left = parseAtom(cursor, want)
  for (;;) {
    const found = cursor.isQuoted ? undefined : operators.get(cursor.word)
    if (found === undefined || found.level < least) return left
    cursor.advance()
    const datatype = datatypesOf(left, cursor.scope.sets)[0] || want.datatype
    const known = { datatype, hasSelectors: want.hasSelectors }
    left = { kind: 'binary', operator: found.operator, left, right: parseBits(cursor, known, found.level + 1) }
  }
}

function parseAtom(cursor: NftCursor, want: PartWant): Expression {
  if (cursor.is('(')) {
    cursor.open('(')
    const inside = parseBits(cursor, want, 0)
    cursor.close(')')
    return inside
  }
  const selector = want.hasSelectors ? parseSelector(cursor, parseLeft) : undefined
  return selector ?? parseConstant(cursor, want.datatype)
}

/** `{ 22, 80-90 }`, with `: data` in maps; sets inside of sets are those of variables. */
export function parseSet(cursor: NftCursor, want: ElementWant): AnonymousSet {
  const elements: Element[] = []
  cursor.open('{')
  while (!cursor.is('}') && cursor.failure === undefined) {
    if (cursor.is('{')) elements.push(...parseSet(cursor, want).elements)
    else elements.push(parseElement(cursor, want))
    if (!cursor.take(',')) break
  }
  cursor.close('}')
  return { kind: 'set', elements: isTwiceTheSame(elements) ? elements.slice(1) : elements }
}

/** Scripts say an element twice to have a set of one, which nft would else make a value. */
function isTwiceTheSame(elements: readonly Element[]): boolean {
  const [first, second, third] = elements
  if (first === undefined || second === undefined || third !== undefined) return false
  return first.data === undefined && JSON.stringify(first) === JSON.stringify(second)
}

export function parseElement(cursor: NftCursor, want: ElementWant): Element {
  const key: Expression = cursor.take('*') ? { kind: 'wildcard' } : parseConcat(cursor, want.key)
  const before = parseAttributes(cursor, {})
  if (!cursor.take(':')) return { key, ...before }
  const data = parseVerdict(cursor) ?? parseConcat(cursor, want.data)
  return { key, data, ...parseAttributes(cursor, before) }
}

type Attributes = {
  comment?: string
  timeoutMilliseconds?: number
  expiresMilliseconds?: number
  statements?: State[]
}

/** In any order: `counter packets 0 bytes 0 timeout 1h expires 59m comment "x"`. */
function parseAttributes(cursor: NftCursor, attributes: Attributes): Attributes {
  for (;;) {
    const state = parseState(cursor)
    if (state !== undefined) attributes.statements = [...(attributes.statements ?? []), state]
    else if (cursor.take('timeout')) attributes.timeoutMilliseconds = takeDuration(cursor)
    else if (cursor.take('expires')) attributes.expiresMilliseconds = takeDuration(cursor)
    else if (cursor.take('comment')) attributes.comment = cursor.takeText('the comment')
    else return attributes
  }
}

/** Undefined, and nothing taken, when none stands here. */
export function parseVerdict(cursor: NftCursor): Verdict | undefined {
  if (cursor.isQuoted) return undefined
  const { word } = cursor
  switch (word) {
    case 'accept':
    case 'drop':
    case 'continue':
    case 'return':
      cursor.advance()
      return { kind: word }
    case 'jump':
    case 'goto': {
      cursor.advance()
      const target = cursor.takeName('the chain')
      cursor.jumps?.push(target)
      return { kind: word, target }
    }
    default:
      return undefined
  }
}

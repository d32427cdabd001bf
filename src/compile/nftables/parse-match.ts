/** Comparisons and assignments as text (`tcp dport 80`, `meta mark set 1`, `ct state vmap {…}`), and the one form of each. */
import type { Expression } from './expression'
import { datatypesOf } from './parse-datatype'
import { parseLeft, parseMapData, parseRight, parseValue } from './parse-expression'
import { flagTypes } from './parse-symbols'
import { listFlags } from './parse-value'
import type { NamedSet } from './ruleset'
import type { Match, ObjectKind, Statement } from './statement'
import type { NftCursor } from './tokenize-nft'

type Operator = Match['operator']

const operatorWords: ReadonlyMap<string, Operator> = new Map<string, Operator>([
  ['==', '=='],
  ['eq', '=='],
  ['!=', '!='],
  ['ne', '!='],
  ['<', '<'],
  ['lt', '<'],
  ['>', '>'],
  ['gt', '>'],
  ['<=', '<='],
  ['le', '<='],
  ['>=', '>='],
  ['ge', '>='],
  ['!', '!'],
])

/** What `ct helper set "ftp"` and its like name. */
const objectKeys: ReadonlyMap<string, ObjectKind> = new Map<string, ObjectKind>([
  ['helper', 'ct helper'],
  ['timeout', 'ct timeout'],
  ['expectation', 'ct expectation'],
])

/** A statement that begins with what it looks at. */
export function parseMatch(cursor: NftCursor): Statement {
  const object = parseObjectSet(cursor)
  if (object !== undefined) return object
  const left = parseLeft(cursor)
  const { sets } = cursor.scope
  if (!looksAtPacket(left)) cursor.failUnknown('this is no statement that Portolan knows')
  const datatypes = datatypesOf(left, sets)
  if (cursor.take('vmap')) return { kind: 'vmap', key: left, data: parseMapData(cursor, left, ['verdict']) }
  if (cursor.take('set')) return parseAssignment(cursor, left, datatypes)
  const found = cursor.isQuoted ? undefined : operatorWords.get(cursor.word)
  if (found !== undefined) cursor.advance()
  const right = parseRight(cursor, datatypes)
  if (!cursor.take('/')) return buildMatch({ operator: found, left, right }, sets)
  const mask = parseRight(cursor, datatypes)
  return buildMatch(
    { operator: found ?? '==', left: { kind: 'binary', operator: '&', left, right: mask }, right },
    sets,
  )
}

function looksAtPacket(left: Expression): boolean {
  if (left.kind === 'concat') return left.parts.every(looksAtPacket)
  if (left.kind === 'binary') return looksAtPacket(left.left)
  return left.kind !== 'value' && left.kind !== 'range' && left.kind !== 'prefix' && left.kind !== 'list'
}

/** `ct helper set "ftp"`, `ct timeout set tcp dport map @timeouts`. */
function parseObjectSet(cursor: NftCursor): Statement | undefined {
  if (!cursor.is('ct')) return undefined
  const start = cursor.place()
  cursor.advance()
  const object = objectKeys.get(cursor.word)
  cursor.advance()
  if (object !== undefined && cursor.take('set'))
    return { kind: 'object', object, name: parseValue(cursor, ['string']) }
  cursor.reset(start)
  return undefined
}

function parseAssignment(cursor: NftCursor, key: Expression, datatypes: readonly string[]): Statement {
  const value = parseValue(cursor, datatypes)
  const isSecmark = key.kind === 'meta' && key.key === 'secmark'
  if (isSecmark && (value.kind === 'map' || (value.kind === 'value' && typeof value.value === 'string'))) {
    return { kind: 'object', object: 'secmark', name: value }
  }
  return { kind: 'mangle', key, value }
}

/**
 * Listings differ in how they tell of flags. One form for each question: `in` for any of them, `!` for none of them, a mask
 * for some of them (`syn / fin,syn`, `& (fin | syn) == syn`).
 */
export function buildMatch(
  told: { readonly operator: Operator | undefined; readonly left: Expression; readonly right: Expression },
  sets: ReadonlyMap<string, NamedSet>,
): Match {
  const { operator, left, right } = told
  const datatype = datatypesOf(left, sets)[0] ?? ''
  const isFlags = flagTypes.has(datatype) || datatype === 'ct_label'
  if (isFlags && left.kind === 'binary' && left.operator === '&') {
    const masked = { left: left.left, mask: listFlags(left.right, datatype), right: listFlags(right, datatype) }
    return buildMasked({ operator: operator ?? '==', ...masked })
  }
  if (operator !== undefined) return { kind: 'match', operator, left, right }
  const isPlain = right.kind === 'value' || right.kind === 'list' || right.kind === 'binary'
  if (!isFlags || !isPlain) return { kind: 'match', operator: '==', left, right }
  return { kind: 'match', operator: 'in', left, right: listFlags(right, datatype) }
}

function buildMasked(told: {
  readonly operator: Operator
  readonly left: Expression
  readonly mask: Expression
  readonly right: Expression
}): Match {
  const { operator, left, mask, right } = told
  if (isZero(right) && operator === '==') return { kind: 'match', operator: '!', left, right: mask }
  if (isZero(right) && operator === '!=') return { kind: 'match', operator: 'in', left, right: mask }
  return {
    kind: 'match',
    operator,
    left: { kind: 'binary', operator: '&', left, right: mask },
    right,
  }
}

function isZero(expression: Expression): boolean {
  return expression.kind === 'value' && expression.value === 0
}

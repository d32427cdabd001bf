/** Expressions out of nft's JSON. Undefined stands for what is not the JSON of an expression. */
import type { BinaryOperator, Element, Expression, State, Verdict } from './expression'
import type { Json, JsonObject } from './json-text'
import { datatypesOf } from './parse-datatype'
import { fieldOf, isArray, isObject, numberOf, onlyEntry, textOf } from './parse-json-entries'
import { parseJsonSelector } from './parse-json-selector'
import { parseJsonState } from './parse-json-state'
import { buildJsonConstant } from './parse-value'
import type { Scope } from './tokenize-nft'

export type JsonContext = { readonly scope: Scope; readonly datatypes: readonly string[] }

const operators: ReadonlyMap<string, BinaryOperator> = new Map([
  ['&', '&'],
  ['|', '|'],
  ['^', '^'],
  ['<<', '<<'],
  ['>>', '>>'],
])

export function parseJsonExpression(json: Json | undefined, context: JsonContext): Expression | undefined {
  if (json === undefined || json === null) return undefined
  if (typeof json === 'string') return parseText(json, context)
  if (typeof json === 'number' || typeof json === 'boolean') return buildJsonConstant(json, context.datatypes[0] ?? '')
  if (isArray(json)) {
    const items = all(json.map((item) => parseJsonExpression(item, context)))
    return items && { kind: 'list', items }
  }
  const entry = onlyEntry(json)
  if (entry === undefined) return undefined
  return parseEntry(entry, json as JsonObject, context)
}

function parseText(text: string, { datatypes }: JsonContext): Expression {
  if (text.startsWith('@')) return { kind: 'reference', set: text.slice(1) }
  return buildJsonConstant(text, datatypes[0] ?? '')
}

function parseEntry(
  [key, inside]: readonly [string, Json],
  json: JsonObject,
  context: JsonContext,
): Expression | undefined {
  const operator = operators.get(key)
  if (operator !== undefined) return parseBinary(operator, inside, context)
  switch (key) {
    case 'concat': {
      const parts = isArray(inside)
        ? all(inside.map((part, at) => parseJsonExpression(part, partOf(context, at))))
        : undefined
      return parts && { kind: 'concat', parts }
    }
    case 'set':
      return parseSet(inside, context)
    case 'prefix': {
      const address = parseJsonExpression(fieldOf(inside, 'addr'), context)
      const length = numberOf(fieldOf(inside, 'len'))
      return address && length !== undefined ? { kind: 'prefix', address, length } : undefined
    }
    case 'range': {
      const [from, to] = isArray(inside) ? inside.map((end) => parseJsonExpression(end, context)) : []
      return from && to && { kind: 'range', from, to }
    }
    case 'map':
      return parseMap(inside, context)
    case 'elem':
      return parseJsonExpression(fieldOf(inside, 'val'), context)
    default:
      return parseJsonSelector(key, inside, { context, parse: parseJsonExpression }) ?? other(json)
  }
}

export function other(json: Json): Extract<Expression, { readonly kind: 'other' }> {
  return { kind: 'other', syntax: 'json', text: JSON.stringify(json) }
}

function partOf(context: JsonContext, at: number): JsonContext {
  return { ...context, datatypes: [context.datatypes[at] ?? ''] }
}

/** Newer ones of nft have more than two sides in one list. */
function parseBinary(operator: BinaryOperator, json: Json, context: JsonContext): Expression | undefined {
  if (!isArray(json) || json.length < 2) return undefined
  let left = parseJsonExpression(json[0], context)
  for (const side of json.slice(1)) {
    const known = left === undefined ? [] : datatypesOf(left, context.scope.sets)
    const right = parseJsonExpression(
      side,
      known.some((type) => type !== '') ? { ...context, datatypes: known } : context,
    )
    left = left && right && { kind: 'binary', operator, left, right }
  }
  return left
}

function parseSet(json: Json, context: JsonContext): Expression | undefined {
  const want = { key: context, data: { ...context, datatypes: [''] } }
  const elements = all((isArray(json) ? json : [json]).map((element) => parseJsonElement(element, want)))
  return elements && { kind: 'set', elements }
}

/** `datatypes` are those of the values. */
function parseMap(json: Json, context: JsonContext): Expression | undefined {
  const key = parseJsonExpression(fieldOf(json, 'key'), { ...context, datatypes: [''] })
  const data = key && parseJsonMapData(fieldOf(json, 'data'), key, context)
  return key && data && { kind: 'map', key, data }
}

export function parseJsonMapData(
  json: Json | undefined,
  key: Expression,
  context: JsonContext,
): Expression | undefined {
  const set = fieldOf(json, 'set')
  if (set === undefined) return parseJsonExpression(json, context)
  const want = { key: { ...context, datatypes: datatypesOf(key, context.scope.sets) }, data: context }
  const elements = all((isArray(set) ? set : [set]).map((element) => parseJsonElement(element, want)))
  return elements && { kind: 'set', elements }
}

export type JsonElementWant = { readonly key: JsonContext; readonly data: JsonContext }

/** A key, or a pair of a key and its value; the key may be wrapped: `{"elem": {"val": …, "comment": …}}`. */
export function parseJsonElement(json: Json, want: JsonElementWant): Element | undefined {
  if (!isArray(json)) return parseKey(json, want.key)
  const element = parseKey(json[0], want.key)
  const data = parseJsonData(json[1], want.data)
  return element && data && { ...element, data }
}

export function parseJsonData(json: Json | undefined, context: JsonContext): Expression | Verdict | undefined {
  return parseJsonVerdict(json) ?? parseJsonExpression(json, context)
}

function parseKey(json: Json | undefined, context: JsonContext): Element | undefined {
  const wrapped = fieldOf(json, 'elem')
  if (!isObject(wrapped)) return keyOnly(json, context)
  const element = keyOnly(wrapped.val, context)
  const comment = textOf(wrapped.comment)
  const timeout = numberOf(wrapped.timeout)
  const expires = numberOf(wrapped.expires)
  const statements = Object.entries(wrapped).flatMap(([key, inside]): readonly State[] => {
    const state = parseJsonState(key, inside ?? null)
    return state === undefined ? [] : [state]
  })
  return (
    element && {
      ...element,
      ...(comment !== undefined && { comment }),
      ...(timeout !== undefined && { timeoutMilliseconds: timeout * 1000 }),
      ...(expires !== undefined && { expiresMilliseconds: expires * 1000 }),
      ...(statements.length > 0 && { statements }),
    }
  )
}

function keyOnly(json: Json | undefined, context: JsonContext): Element | undefined {
  const key: Expression | undefined = json === '*' ? { kind: 'wildcard' } : parseJsonExpression(json, context)
  return key && { key }
}

export function parseJsonVerdict(json: Json | undefined): Verdict | undefined {
  const [key, inside] = onlyEntry(json) ?? []
  switch (key) {
    case 'accept':
    case 'drop':
    case 'continue':
    case 'return':
      return { kind: key }
    case 'jump':
    case 'goto': {
      const target = textOf(fieldOf(inside, 'target'))
      return target === undefined ? undefined : { kind: key, target }
    }
    default:
      return undefined
  }
}

/** Undefined when one of them is. */
export function all<T>(items: readonly (T | undefined)[]): T[] | undefined {
  const found = items.filter((item) => item !== undefined)
  return found.length === items.length ? found : undefined
}

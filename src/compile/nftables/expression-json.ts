/** Expressions as the JSON of nft 1.0.6, in its own order of keys. */
import type { Element, Expression, Selector, State, Verdict } from './expression'
import type { Json, JsonObject } from './json-text'
import { isVerdict } from './print-expression'
import { stateJson } from './state-json'

export function expressionJson(expression: Expression): Json {
  switch (expression.kind) {
    case 'value':
      return expression.value
    case 'wildcard':
      return '*'
    case 'list':
      return expression.items.map(expressionJson)
    case 'concat':
      return { concat: expression.parts.map(expressionJson) }
    case 'prefix':
      return { prefix: { addr: expressionJson(expression.address), len: expression.length } }
    case 'range':
      return { range: [expressionJson(expression.from), expressionJson(expression.to)] }
    case 'set':
      return { set: expression.elements.map(elementJson) }
    case 'reference':
      return `@${expression.set}`
    case 'map':
      return { map: { key: expressionJson(expression.key), data: expressionJson(expression.data) } }
    case 'binary':
      return { [expression.operator]: [expressionJson(expression.left), expressionJson(expression.right)] }
    case 'other':
      return expression.syntax === 'json' ? JSON.parse(expression.text) : expression.text
    default:
      return selectorJson(expression)
  }
}

export function verdictJson(verdict: Verdict): JsonObject {
  return { [verdict.kind]: 'target' in verdict ? { target: verdict.target } : null }
}

export function dataJson(data: Expression | Verdict): Json {
  return isVerdict(data) ? verdictJson(data) : expressionJson(data)
}

/** A key alone, or with its value, or wrapped where there is more to tell of it. */
export function elementJson(element: Element): Json {
  const key = keyJson(element)
  return element.data === undefined ? key : [key, dataJson(element.data)]
}

export function keyJson(element: Element): Json {
  const { timeoutMilliseconds, expiresMilliseconds, comment, statements = [] } = element
  const val = expressionJson(element.key)
  const isPlain = timeoutMilliseconds === undefined && expiresMilliseconds === undefined && comment === undefined
  if (isPlain && statements.length === 0) return val
  return {
    elem: {
      val,
      timeout: secondsOf(timeoutMilliseconds),
      expires: secondsOf(expiresMilliseconds),
      comment,
      ...statesJson(statements),
    },
  }
}

/** nft tells whole seconds. */
export function secondsOf(milliseconds: number | undefined): number | undefined {
  return milliseconds === undefined ? undefined : Math.floor(milliseconds / 1000)
}

function statesJson(statements: readonly State[]): JsonObject {
  return Object.assign({}, ...statements.map(stateJson))
}

function selectorJson(selector: Selector): JsonObject {
  switch (selector.kind) {
    case 'payload':
      return { payload: { protocol: selector.protocol, field: selector.field } }
    case 'raw-payload':
      return { payload: { base: selector.base, offset: selector.offset, len: selector.length } }
    case 'meta':
      return { meta: { key: selector.key } }
    case 'ct':
      return { ct: { key: selector.key, dir: selector.direction } }
    case 'rt':
      return { rt: { key: selector.key, family: selector.family } }
    case 'socket':
      return { socket: { key: selector.key, level: selector.level } }
    case 'osf':
      return { osf: { key: selector.key, ttl: selector.ttl } }
    case 'ipsec':
      return {
        ipsec: { key: selector.key, family: selector.family, dir: selector.direction, spnum: selector.policy },
      }
    case 'fib':
      return { fib: { result: selector.result, flags: selector.flags } }
    case 'exthdr':
      return { exthdr: { name: selector.name, field: selector.field } }
    case 'tcp-option':
      return { 'tcp option': { name: selector.name, field: selector.field } }
    case 'raw-tcp-option':
      return { 'tcp option': { base: selector.option, offset: selector.offset, len: selector.length } }
    case 'ip-option':
      return { 'ip option': { name: selector.name, field: selector.field } }
    case 'sctp-chunk':
      return { 'sctp chunk': { name: selector.name, field: selector.field } }
    case 'dccp-option':
      return { 'dccp option': { type: selector.type } }
    case 'numgen':
      return { numgen: { mode: selector.mode, mod: selector.modulus, offset: selector.offset } }
    case 'jhash': {
      const { modulus, seed, offset, of } = selector
      return { jhash: { mod: modulus, seed, offset: offsetJson(offset), expr: expressionJson(of) } }
    }
    case 'symhash':
      return { symhash: { mod: selector.modulus, offset: offsetJson(selector.offset) } }
    default:
      return selector satisfies never
  }
}

function offsetJson(offset: number): number | undefined {
  return offset === 0 ? undefined : offset
}

/** nft writes a list of flags, and a single flag alone. */
export function oneOrMany(flags: readonly string[]): Json | undefined {
  return flags.length > 1 ? flags : flags[0]
}

/** The values an expression has for a packet: one, or several with their shares and conditions where a map decides. */

import { parseIp } from '#base/ip'
import type { Expression } from '#compile/nftables/expression'
import { lookup } from './lookup'
import { elementsOf } from './match-statement'
import type { NftPlace } from './nft-place'
import { nftView } from './nft-place'
import { operandsOf } from './operand'
import { isIp, type Pattern, parsePattern, type Scalar } from './scalar'
import type { Part } from './split'

/** `values` are the parts of a concatenation, `undefined` where the packet does not tell. */
export type Evaluated = { readonly part: Part; readonly values: readonly (Pattern | undefined)[] }

export type Evaluation = {
  readonly found: readonly Evaluated[]
  /** A map that has nothing for the packet ends the rule. */
  readonly misses: readonly Part[]
}

export function evaluate(expression: Expression, part: Part, place: NftPlace): Evaluation {
  if (expression.kind === 'map') {
    const elements = elementsOf(expression.data, place.sets)
    if (elements === undefined || elements === 'missing') return { found: [{ part, values: [undefined] }], misses: [] }
    const { hits, misses } = lookup(part, expression.key, { elements, viewOf: nftView(place) })
    const found = hits.map((hit) => ({ part: hit.part, values: valuesOf(hit.element.data) }))
    return { found, misses }
  }
  const direct = valuesOf(expression)
  if (direct.every((value) => value !== undefined)) return { found: [{ part, values: direct }], misses: [] }
  const subjects = operandsOf(expression, nftView(place)(part.path))
  const values = subjects.map((subject): Pattern | undefined =>
    subject.kind === 'known' ? { kind: 'one', value: subject.value } : undefined,
  )
  return { found: [{ part, values }], misses: [] }
}

function valuesOf(expression: Expression | { readonly kind: string } | undefined): readonly (Pattern | undefined)[] {
  if (expression === undefined || !isExpression(expression)) return [undefined]
  if (expression.kind === 'concat') return expression.parts.map(literal)
  return [literal(expression)]
}

const literalKinds = new Set(['value', 'prefix', 'range', 'concat'])

function isExpression(expression: Expression | { readonly kind: string }): expression is Expression {
  return literalKinds.has(expression.kind)
}

/** An address where the text is one, else a number, else the text. */
function literal(expression: Expression): Pattern | undefined {
  const isAddress = (value: unknown): boolean => typeof value === 'string' && parseIp(value) !== undefined
  const first =
    expression.kind === 'range' ? expression.from : expression.kind === 'prefix' ? expression.address : expression
  if (first.kind !== 'value') return undefined
  if (isAddress(first.value)) return parsePattern(expression, { kind: 'address' })
  return (
    parsePattern(expression, { kind: 'number', type: 'inet_service' }) ?? parsePattern(expression, { kind: 'text' })
  )
}

export function singleNumber(pattern: Pattern | undefined): number | undefined {
  return pattern?.kind === 'one' && typeof pattern.value === 'number' ? pattern.value : undefined
}

export function singleScalar(pattern: Pattern | undefined): Scalar | undefined {
  return pattern?.kind === 'one' ? pattern.value : undefined
}

export function hasAddress(pattern: Pattern | undefined): boolean {
  if (pattern === undefined) return false
  if (pattern.kind === 'one') return isIp(pattern.value)
  return pattern.kind === 'prefix' || (pattern.kind === 'range' && isIp(pattern.from))
}

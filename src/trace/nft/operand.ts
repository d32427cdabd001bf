/** An expression that a statement compares, looks up or writes: a selector, or arithmetic on what one tells. */
import type { BinaryOperator, Expression } from '#compile/nftables/expression'
import type { View } from '../view'
import { askPacket } from './ask-packet'
import { parseScalar, printPattern, type ScalarKind } from './scalar'
import { select, textOfSelector } from './select'
import { number, type Subject, text } from './subject'

/** The operand with its parts apart where it is a concatenation. */
export function operandsOf(expression: Expression, view: View): readonly Subject[] {
  return expression.kind === 'concat'
    ? expression.parts.map((part) => operandOf(part, view))
    : [operandOf(expression, view)]
}

function operandOf(expression: Expression, view: View): Subject {
  const selected = select(expression, view)
  if (selected !== undefined) return selected
  if (expression.kind === 'binary') return calculate(expression, view)
  if (expression.kind === 'value') {
    const value = parseScalar(expression.value, number('integer')) ?? expression.value
    return { kind: 'known', of: number('integer'), value: typeof value === 'boolean' ? Number(value) : value }
  }
  return unknownOperand(expression)
}

function unknownOperand(expression: Expression): Subject {
  const what = expression.kind === 'other' ? expression.text : expression.kind
  return {
    kind: 'open',
    of: text,
    ask: (view, pattern) => askPacket(view, { what: `${what} ${printPattern(pattern)}`, subject: 'fact' }),
  }
}

type Binary = Extract<Expression, { readonly kind: 'binary' }>

function calculate(expression: Binary, view: View): Subject {
  const left = operandOf(expression.left, view)
  const right = constantOf(expression.right, left.kind === 'absent' ? number('integer') : left.of)
  if (left.kind === 'absent') return left
  if (left.kind === 'known' && typeof left.value === 'number' && right !== undefined) {
    return { kind: 'known', of: left.of, value: compute(expression.operator, left.value, right) }
  }
  // `meta random & 0x7fffffff`: the low bits of an even spread are spread evenly.
  if (left.kind === 'chance' && expression.operator === '&' && right !== undefined && (right & (right + 1)) === 0) {
    return { ...left, modulus: right + 1 }
  }
  const name = expression.left.kind === 'value' || !('kind' in expression.left) ? 'value' : nameOf(expression.left)
  return {
    kind: 'open',
    of: left.of,
    ask: (asked, pattern) =>
      askPacket(asked, { what: `${name} ${expression.operator} … ${printPattern(pattern)}`, subject: 'fact' }),
  }
}

function nameOf(expression: Expression): string {
  switch (expression.kind) {
    case 'payload':
    case 'meta':
    case 'ct':
    case 'rt':
    case 'socket':
      return textOfSelector(expression)
    default:
      return expression.kind
  }
}

/** A number, or flags side by side such as `fin,syn,rst,ack`. */
export function constantOf(expression: Expression, kind: ScalarKind): number | undefined {
  if (expression.kind === 'value') {
    const value = parseScalar(expression.value, kind)
    return typeof value === 'number' ? value : undefined
  }
  if (expression.kind === 'list') {
    let sum = 0
    for (const item of expression.items) {
      const value = constantOf(item, kind)
      if (value === undefined) return undefined
      sum |= value
    }
    return sum >>> 0
  }
  if (expression.kind !== 'binary') return undefined
  const left = constantOf(expression.left, kind)
  const right = constantOf(expression.right, kind)
  return left === undefined || right === undefined ? undefined : compute(expression.operator, left, right)
}

export function compute(operator: BinaryOperator, left: number, right: number): number {
  switch (operator) {
    case '&':
      return (left & right) >>> 0
    case '|':
      return (left | right) >>> 0
    case '^':
      return (left ^ right) >>> 0
    case '<<':
      return (left << right) >>> 0
    case '>>':
      return left >>> right
    default:
      return operator satisfies never
  }
}

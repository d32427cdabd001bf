/** Label selectors with matchLabels and matchExpressions: reading them, and asking whether labels match. */
import { type Labels, selects } from '#model/meta'
import { type Fields, has, mapAt, mapsAt, nameAt, textsAt, wordAt } from './fields'
import { labelsAt } from './meta'

const operators = ['In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt', 'Lt'] as const

export type Expression = {
  readonly key: string
  readonly operator: (typeof operators)[number]
  readonly values: readonly string[]
}

export type LabelSelector = { readonly matchLabels: Labels; readonly matchExpressions: readonly Expression[] }

/** Absent when the object has none: what that means differs from kind to kind. */
export function selectorAt(fields: Fields, key: string): LabelSelector | undefined {
  if (!has(fields, key)) return undefined
  const selector = mapAt(fields, key)
  return {
    matchLabels: labelsAt(selector, 'matchLabels'),
    matchExpressions: expressionsAt(selector, 'matchExpressions'),
  }
}

/** Node affinity writes its terms in the same form. An expression without key or operator is told and left out. */
export function expressionsAt(fields: Fields, key: string): readonly Expression[] {
  return mapsAt(fields, key).flatMap((entry) => {
    const label = nameAt(entry, 'key')
    const operator = wordAt(entry, 'operator', operators)
    if (label === undefined || operator === undefined) return []
    return [{ key: label, operator, values: textsAt(entry, 'values') }]
  })
}

export function matchesSelector(selector: LabelSelector, labels: Labels): boolean {
  return selects(selector.matchLabels, labels) && matchesAll(selector.matchExpressions, labels)
}

export function matchesAll(expressions: readonly Expression[], labels: Labels): boolean {
  return expressions.every((expression) => matches(expression, labels))
}

function matches({ key, operator, values }: Expression, labels: Labels): boolean {
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value)
    case 'NotIn':
      return value === undefined || !values.includes(value)
    case 'Exists':
      return value !== undefined
    case 'DoesNotExist':
      return value === undefined
    case 'Gt':
      return value !== undefined && Number(value) > Number(values[0])
    case 'Lt':
      return value !== undefined && Number(value) < Number(values[0])
    default:
      return operator satisfies never
  }
}

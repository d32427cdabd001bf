/** Label selectors with matchLabels and matchExpressions, and whether labels match them. */
import { type Labels, selects } from './meta'

/** `Gt` and `Lt` stand in node affinity alone; a label selector never holds them. */
export const selectorOperators = ['In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt', 'Lt'] as const

export type Expression = {
  readonly key: string
  readonly operator: (typeof selectorOperators)[number]
  readonly values: readonly string[]
}

export type LabelSelector = { readonly matchLabels: Labels; readonly matchExpressions: readonly Expression[] }

/** An empty selector selects everything; In and Exists want the key, NotIn and DoesNotExist match where it is absent. */
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

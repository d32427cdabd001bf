/** Reading label selectors: matchLabels and matchExpressions. */
import { type Expression, type LabelSelector, selectorOperators } from '#model/selector'
import { type Fields, has, mapAt, mapsAt, nameAt, textsAt, wordAt } from './fields'
import { labelsAt } from './meta'

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
    const operator = wordAt(entry, 'operator', selectorOperators)
    if (label === undefined || operator === undefined) return []
    return [{ key: label, operator, values: textsAt(entry, 'values') }]
  })
}

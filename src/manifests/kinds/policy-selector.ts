/** Label selectors of policies, held to what the API server asks of them (apimachinery meta/v1/validation, 1.34). */
import { describeValue } from '#manifests/text/raw-object'
import type { Labels } from '#model/meta'
import type { Expression, LabelSelector } from '#model/selector'
import { type Fields, has, mapAt, mapsAt, nameAt, textAt, textsAt } from './fields'
import { explainBadName } from './names'
import { checkKnown } from './policy-refusal'

const operators = ['In', 'NotIn', 'Exists', 'DoesNotExist'] as const

/** Told of the field `key` of `fields`. */
export type SelectorProblem = {
  readonly fields: Fields
  readonly key: string
  readonly problem: string
  readonly hint: string
}

export type ReadSelector = { readonly selector: LabelSelector; readonly problems: readonly SelectorProblem[] }

/** Absent when the field is. The problems are for the caller to tell: a CRD's schema does not refuse them. */
export function readSelector(fields: Fields, key: string): ReadSelector | undefined {
  if (!has(fields, key)) return undefined
  const map = mapAt(fields, key)
  checkKnown(map, ['matchLabels', 'matchExpressions'])
  const problems: SelectorProblem[] = []
  const selector = {
    matchLabels: readLabels(mapAt(map, 'matchLabels'), problems),
    matchExpressions: mapsAt(map, 'matchExpressions').flatMap((entry) => readExpression(entry, problems) ?? []),
  }
  return { selector, problems }
}

function readLabels(map: Fields, problems: SelectorProblem[]): Labels {
  const labels: Record<string, string> = {}
  for (const key of Object.keys(map.values)) {
    const value = textAt(map, key) ?? ''
    labels[key] = value
    tell(problems, map, key, explainBadKey(key) ?? explainBadValue(value))
  }
  return labels
}

function readExpression(entry: Fields, problems: SelectorProblem[]): Expression | undefined {
  checkKnown(entry, ['key', 'operator', 'values'])
  const key = nameAt(entry, 'key')
  const word = textAt(entry, 'operator')
  const values = textsAt(entry, 'values')
  tell(problems, entry, 'key', key === undefined ? 'an expression has no key' : explainBadKey(key))
  const operator = operators.find((known) => known === word)
  if (operator === undefined) {
    const problem = `${describeValue(word)} is no operator of a label selector: it takes ${operators.join(', ')}`
    tell(problems, entry, 'operator', problem)
    return undefined
  }
  const isAboutValues = operator === 'In' || operator === 'NotIn'
  if (isAboutValues && values.length === 0) tell(problems, entry, 'values', `${operator} needs one value at least`)
  if (!isAboutValues && values.length > 0) tell(problems, entry, 'values', `${operator} takes no values`)
  for (const [at, value] of values.entries()) tell(problems, entry, `values[${at}]`, explainBadValue(value))
  return key === undefined ? undefined : { key, operator, values }
}

function tell(problems: SelectorProblem[], fields: Fields, key: string, problem: string | undefined): void {
  if (problem !== undefined) problems.push({ fields, key, problem, hint: 'mend the selector' })
}

const word = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?$/

function explainBadKey(key: string): string | undefined {
  const parts = key.split('/')
  const name = parts.at(-1) ?? ''
  const prefix = parts.length === 2 ? parts[0] : undefined
  const isGood = parts.length <= 2 && word.test(name) && name.length <= 63
  if (isGood && (prefix === undefined || explainBadName('label', prefix) === undefined)) return undefined
  return `${describeValue(key)} is no key of a label: it takes up to 63 letters, digits, "-", "_" and ".", and a DNS name with "/" before them at most`
}

function explainBadValue(value: string): string | undefined {
  if (value === '' || (word.test(value) && value.length <= 63)) return undefined
  return `${describeValue(value)} is no value of a label: it takes up to 63 letters, digits, "-", "_" and "."`
}

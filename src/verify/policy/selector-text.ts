/** Label selectors for people, and labels that a selector matches. */
import type { Labels } from '#model/meta'
import { type Expression, type LabelSelector, matchesSelector } from '#model/selector'

/** `app=web,tier In (a,b)`; empty for a selector of everything. */
export function printSelector({ matchLabels, matchExpressions }: LabelSelector): string {
  const pairs = Object.entries(matchLabels).map(([key, value]) => `${key}=${value}`)
  return [...pairs.sort(), ...matchExpressions.map(printExpression)].join(',')
}

function printExpression({ key, operator, values }: Expression): string {
  return values.length === 0 ? `${key} ${operator}` : `${key} ${operator} (${[...values].sort().join(',')})`
}

export function isEverything({ matchLabels, matchExpressions }: LabelSelector): boolean {
  return matchExpressions.length === 0 && Object.keys(matchLabels).length === 0
}

/** Labels with only what the selector asks for; undefined where its own requirements rule each other out. */
export function labelsFor(selector: LabelSelector, start: Labels = {}): Labels | undefined {
  const labels: Record<string, string> = { ...start, ...selector.matchLabels }
  for (const expression of selector.matchExpressions) {
    const { key, operator, values } = expression
    if (operator === 'In' && !values.includes(labels[key] ?? '\n')) labels[key] = values[0] ?? ''
    if (operator === 'Exists' && labels[key] === undefined) labels[key] = valueBeside(selector, key)
  }
  return matchesSelector(selector, labels) ? labels : undefined
}

/** Exists and NotIn of one key ask for a value that is not among those. */
function valueBeside({ matchExpressions }: LabelSelector, key: string): string {
  const taken = new Set(matchExpressions.flatMap((one) => (one.key === key ? one.values : [])))
  let value = 'any'
  while (taken.has(value)) value += '-other'
  return value
}

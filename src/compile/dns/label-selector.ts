/** Label selectors as text, as the kubernetes plugin's `labels` and `namespace_labels` take them. */
import type { Labels } from '#model/meta'

export type LabelTest = (labels: Labels) => boolean

/** `app=web`, `app!=web`, `tier in (a,b)`, `tier notin (a)`, `app`, `!app`, joined by commas; undefined when it is none. */
export function parseLabelSelector(text: string): LabelTest | undefined {
  const tests = text
    .split(/,(?![^(]*\))/)
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .map(parseRequirement)
  if (tests.length === 0 || tests.includes(undefined)) return undefined
  return (labels) => tests.every((test) => test?.(labels) === true)
}

const key = '([A-Za-z0-9][-A-Za-z0-9_./]*)'

function parseRequirement(text: string): LabelTest | undefined {
  const set = new RegExp(`^${key}\\s+(in|notin)\\s*\\(([^()]*)\\)$`).exec(text)
  if (set !== null) {
    const [, name = '', word, list = ''] = set
    const values = list.split(',').map((value) => value.trim())
    return word === 'in' ? (labels) => isOneOf(labels[name], values) : (labels) => !isOneOf(labels[name], values)
  }
  const equal = new RegExp(`^${key}\\s*(==|=|!=)\\s*([-A-Za-z0-9_.]*)$`).exec(text)
  if (equal !== null) {
    const [, name = '', operator, value = ''] = equal
    return operator === '!=' ? (labels) => labels[name] !== value : (labels) => labels[name] === value
  }
  const bare = new RegExp(`^(!?)\\s*${key}$`).exec(text)
  if (bare === null) return undefined
  const [, not, name = ''] = bare
  return not === '!' ? (labels) => labels[name] === undefined : (labels) => labels[name] !== undefined
}

function isOneOf(value: string | undefined, values: readonly string[]): boolean {
  return value !== undefined && values.includes(value)
}

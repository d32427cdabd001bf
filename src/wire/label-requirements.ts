/** A label selector as kubectl takes it: `app=web,tier in (a,b),!canary`. */
import type { LabelRequirement } from '#flows/filter'

export type ParsedRequirements = readonly LabelRequirement[] | undefined

const key = '[A-Za-z0-9](?:[A-Za-z0-9._/-]*[A-Za-z0-9])?'
const value = '[A-Za-z0-9._-]*'
const forms: readonly (readonly [RegExp, (match: RegExpExecArray) => LabelRequirement])[] = [
  [new RegExp(`^!\\s*(${key})$`), ([, name]) => requirement(name, 'DoesNotExist')],
  [new RegExp(`^(${key})$`), ([, name]) => requirement(name, 'Exists')],
  [new RegExp(`^(${key})\\s*==?\\s*(${value})$`), ([, name, one]) => requirement(name, 'In', [one ?? ''])],
  [new RegExp(`^(${key})\\s*!=\\s*(${value})$`), ([, name, one]) => requirement(name, 'NotIn', [one ?? ''])],
  [
    new RegExp(`^(${key})\\s+(in|notin)\\s*\\(\\s*(${value}(?:\\s*,\\s*${value})*)\\s*\\)$`),
    ([, name, operator, list]) =>
      requirement(
        name,
        operator === 'in' ? 'In' : 'NotIn',
        (list ?? '').split(',').map((one) => one.trim()),
      ),
  ],
]

/** Undefined when the text is no selector. */
export function parseLabelRequirements(text: string): ParsedRequirements {
  const found: LabelRequirement[] = []
  for (const part of splitOutsideParentheses(text)) {
    const parsed = parseRequirement(part.trim())
    if (parsed === undefined) return undefined
    found.push(parsed)
  }
  return found
}

function parseRequirement(text: string): LabelRequirement | undefined {
  for (const [form, build] of forms) {
    const match = form.exec(text)
    if (match !== null) return build(match)
  }
  return undefined
}

function requirement(
  name: string | undefined,
  operator: LabelRequirement['operator'],
  values: readonly string[] = [],
): LabelRequirement {
  return { key: name ?? '', operator, values }
}

function splitOutsideParentheses(text: string): readonly string[] {
  return text.split(/,(?![^(]*\))/)
}

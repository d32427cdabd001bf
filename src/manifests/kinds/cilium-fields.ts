/**
 * Reading fields of Cilium's objects as the schema of their CRD does: what it would not take is a refusal, and an absent
 * list differs from an empty one.
 */
import { describeValue, isRecord } from '#manifests/text/raw-object'
import type { CiliumSelector, CiliumText } from '#model/cilium-policy'
import type { Expression, LabelSelector } from '#model/selector'
import { type Fields, has, mapAt, pathOf, report } from './fields'

export const refusedCode = 'policy.refused'

export function refuse(fields: Fields, key: string, why: string, hint?: string): void {
  const message = `the API server refuses this object: ${why}; it is left out`
  report(fields, key, { code: refusedCode, message, ...(hint !== undefined && { hint }) })
}

/** Whether anything was refused since `from`, the number of findings there were when reading began. */
export function isRefusedSince(root: Fields, from: number): boolean {
  return root.reading.findings.slice(from).some(({ code }) => code === refusedCode)
}

/** The API server drops a field that the CRD does not know, and kubectl refuses to send it. */
export function tellUnknown(fields: Fields, known: readonly string[]): void {
  for (const key of Object.keys(fields.values)) {
    if (known.includes(key) || !has(fields, key)) continue
    const meant = known.find((name) => name.toLowerCase() === key.toLowerCase())
    report(fields, key, {
      code: 'policy.unknown-field',
      message: 'the CRD knows no such field: kubectl refuses it, and the API server drops it; it is left out',
      ...(meant !== undefined && { hint: `write ${meant}` }),
    })
  }
}

export function ciliumMapAt(fields: Fields, key: string): Fields | undefined {
  if (!has(fields, key)) return undefined
  if (!isRecord(fields.values[key])) {
    refuse(fields, key, `${describeValue(fields.values[key])} stands where a map is wanted`)
    return undefined
  }
  return mapAt(fields, key)
}

/** Absent stays absent. */
export function ciliumItemsAt(fields: Fields, key: string): readonly unknown[] | undefined {
  if (!has(fields, key)) return undefined
  const value = fields.values[key]
  if (Array.isArray(value)) return value
  refuse(fields, key, `${describeValue(value)} stands where a list is wanted`)
  return undefined
}

export function ciliumMapsAt(fields: Fields, key: string): readonly Fields[] | undefined {
  return ciliumItemsAt(fields, key)?.flatMap((values, index) => {
    if (isRecord(values)) return [{ reading: fields.reading, values, parent: fields, key, index }]
    refuse(fields, `${key}[${index}]`, `${describeValue(values)} stands where a map is wanted`)
    return []
  })
}

export function ciliumTextAt(fields: Fields, key: string): string | undefined {
  if (!has(fields, key)) return undefined
  const value = fields.values[key]
  if (typeof value === 'string') return value
  const isPlain = typeof value === 'number' || typeof value === 'boolean'
  const why = `${describeValue(value)} stands where text is wanted`
  refuse(fields, key, why, isPlain ? `put it in quotes: "${value}"` : undefined)
  return isPlain ? String(value) : undefined
}

export function ciliumTextsAt(fields: Fields, key: string): readonly CiliumText[] | undefined {
  return ciliumItemsAt(fields, key)?.flatMap((item, index) => {
    const at = `${key}[${index}]`
    if (typeof item === 'string') return [{ path: pathOf(fields, at), text: item }]
    refuse(fields, at, `${describeValue(item)} stands where text is wanted`)
    return []
  })
}

export function ciliumNumberAt(fields: Fields, key: string, from: number, to: number): number | undefined {
  if (!has(fields, key)) return undefined
  const value = fields.values[key]
  if (typeof value === 'number' && Number.isInteger(value) && value >= from && value <= to) return value
  const isText = typeof value === 'string' && /^\d+$/.test(value)
  const why = `${describeValue(value)} is no whole number from ${from} to ${to}`
  refuse(fields, key, why, isText ? 'write it without quotes' : undefined)
  return undefined
}

export function ciliumFlagAt(fields: Fields, key: string): boolean | undefined {
  if (!has(fields, key)) return undefined
  const value = fields.values[key]
  if (typeof value === 'boolean') return value
  refuse(fields, key, `${describeValue(value)} stands where true or false is wanted`)
  return undefined
}

export function ciliumWordAt<T extends string>(fields: Fields, key: string, words: readonly T[]): T | undefined {
  const text = ciliumTextAt(fields, key)
  if (text === undefined) return undefined
  const word = words.find((one) => one === text)
  if (word !== undefined) return word
  const meant = words.find((one) => one.toLowerCase() === text.toLowerCase())
  refuse(fields, key, `"${text}" is none of ${words.join(', ')}`, meant === undefined ? undefined : `write ${meant}`)
  return undefined
}

const operators = ['In', 'NotIn', 'Exists', 'DoesNotExist'] as const
const labelValue = /^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/

/** Keys keep their source; what the agent alone would refuse in them is checked where the version is known. */
export function ciliumLabelSelectorAt(fields: Fields, key: string): LabelSelector | undefined {
  const selector = ciliumMapAt(fields, key)
  return selector === undefined ? undefined : selectorIn(selector)
}

export function ciliumSelectorAt(fields: Fields, key: string): CiliumSelector | undefined {
  const selector = ciliumLabelSelectorAt(fields, key)
  return selector === undefined ? undefined : { path: pathOf(fields, key), selector }
}

export function ciliumSelectorsAt(fields: Fields, key: string): readonly CiliumSelector[] | undefined {
  return ciliumMapsAt(fields, key)?.map((entry) => ({ path: pathOf(entry, ''), selector: selectorIn(entry) }))
}

function selectorIn(selector: Fields): LabelSelector {
  tellUnknown(selector, ['matchLabels', 'matchExpressions'])
  const matchLabels: Record<string, string> = {}
  const labels = ciliumMapAt(selector, 'matchLabels')
  for (const key of Object.keys(labels?.values ?? {})) {
    const value = labels === undefined ? undefined : ciliumTextAt(labels, key)
    if (value === undefined || labels === undefined) continue
    if (value.length > 63 || !labelValue.test(value)) refuse(labels, key, `"${value}" is no value of a label`)
    matchLabels[key] = value
  }
  return { matchLabels, matchExpressions: (ciliumMapsAt(selector, 'matchExpressions') ?? []).flatMap(expressionOf) }
}

function expressionOf(entry: Fields): readonly Expression[] {
  tellUnknown(entry, ['key', 'operator', 'values'])
  const key = ciliumTextAt(entry, 'key')
  const operator = ciliumWordAt(entry, 'operator', operators)
  const values = (ciliumTextsAt(entry, 'values') ?? []).map(({ text }) => text)
  if (key === undefined) refuse(entry, 'key', 'an expression without key')
  if (!has(entry, 'operator')) refuse(entry, 'operator', 'an expression without operator')
  return key === undefined || operator === undefined ? [] : [{ key, operator, values }]
}

/** Reading one map of an object: each reader gives a value of the wanted type, or a finding that names the field. */
import type { Finding, Origin } from '#base/finding'
import { type ManifestFindingCode, manifestFinding } from '#manifests/findings'
import { describeValue, isRecord, type RawRecord } from '#manifests/text/raw-object'
import { isImpossibleName } from './names'

/** The object that is being read; its name is filled in as soon as it is known. */
export type Reading = {
  readonly kind: string
  readonly origin: Origin
  readonly findings: Finding[]
  /** What was said of it: a field may be read twice, but is told once. */
  told?: Set<string>
  namespace: string
  name: string
}

/** A map inside an object. Its path is worked out only for a finding: `key` and `index` say where it stands in `parent`. */
export type Fields = {
  readonly reading: Reading
  readonly values: RawRecord
  readonly parent: Fields | undefined
  readonly key: string
  readonly index: number
}

const noValues: RawRecord = {}
const noEntries: readonly Fields[] = []
const noItems: readonly unknown[] = []

export function rootFields(reading: Reading, values: RawRecord): Fields {
  return { reading, values, parent: undefined, key: '', index: -1 }
}

export function has(fields: Fields, key: string): boolean {
  return (fields.values[key] ?? undefined) !== undefined
}

/** True for a status that tells something; `kubectl create --dry-run` writes an empty one. */
export function hasStatus(root: Fields): boolean {
  const { status } = root.values
  return isRecord(status) && Object.keys(status).length > 0
}

/** The map under a key; an empty one when it is absent, null or no map. */
export function mapAt(fields: Fields, key: string): Fields {
  const value = fields.values[key] ?? noValues
  if (isRecord(value)) return { reading: fields.reading, values: value, parent: fields, key, index: -1 }
  reportType(fields, key, 'a map')
  return { reading: fields.reading, values: noValues, parent: fields, key, index: -1 }
}

/** The maps of the list under a key; entries that are no maps are told and left out. */
export function mapsAt(fields: Fields, key: string): readonly Fields[] {
  const items = itemsAt(fields, key)
  if (items.length === 0) return noEntries
  const entries: Fields[] = []
  for (let index = 0; index < items.length; index++) {
    const values = items[index]
    if (isRecord(values)) entries.push({ reading: fields.reading, values, parent: fields, key, index })
    else report(fields, `${key}[${index}]`, { message: wrongType(values, 'a map') })
  }
  return entries
}

/** The items of the list under a key, as they are. */
export function itemsAt(fields: Fields, key: string): readonly unknown[] {
  const value = fields.values[key] ?? noItems
  if (Array.isArray(value)) return value
  reportType(fields, key, 'a list')
  return noItems
}

/** Entries of a list that are texts; others are told and left out. */
export function textsAt(fields: Fields, key: string): readonly string[] {
  return itemsAt(fields, key).flatMap((item, index) => {
    if (typeof item === 'string') return [item]
    report(fields, `${key}[${index}]`, { message: wrongType(item, 'text') })
    return []
  })
}

/** A number or a truth value is read as its text, which the API server would not do. */
export function textAt(fields: Fields, key: string): string | undefined {
  const value = fields.values[key]
  if (typeof value === 'string') return value
  if (value === undefined || value === null) return undefined
  if (typeof value !== 'number' && typeof value !== 'boolean') {
    reportType(fields, key, 'text')
    return undefined
  }
  const message = `${value} stands where text is wanted; it is read as "${value}"`
  report(fields, key, { message, hint: `put it in quotes: "${value}"` })
  return String(value)
}

/** Text that is not empty. */
export function nameAt(fields: Fields, key: string): string | undefined {
  const text = textAt(fields, key)
  return text === '' ? undefined : text
}

/** The name of another object or a part of one; one that no cluster can hold is told and left out. */
export function plainNameAt(fields: Fields, key: string): string | undefined {
  const name = nameAt(fields, key)
  if (name === undefined || !isImpossibleName(name)) return name
  reportImpossible(fields, key, 'it is left out')
  return undefined
}

/** `outcome` says what is left out with the name. */
export function reportImpossible(fields: Fields, key: string, outcome: string): void {
  const message = `${describeValue(fields.values[key])} has control characters, blanks, quotes or slashes in it, as no name has; ${outcome}`
  report(fields, key, { code: 'manifest.impossible-name', message, hint: 'rename it' })
}

/** What cannot be read as true or false is told with what `otherwise` says. */
export function flagAt(fields: Fields, key: string, otherwise = 'it is left out'): boolean | undefined {
  const value = fields.values[key]
  if (typeof value === 'boolean') return value
  if (value === undefined || value === null) return undefined
  const word = typeof value === 'string' ? value.toLowerCase() : ''
  const meant = ['true', 'yes', 'on'].includes(word) ? true : ['false', 'no', 'off'].includes(word) ? false : undefined
  if (meant === undefined) {
    const message = `${describeValue(value)} stands where true or false is wanted; ${otherwise}`
    report(fields, key, { message })
    return undefined
  }
  report(fields, key, {
    message: `the text "${value}" is read as ${meant}`,
    hint: `write ${meant} without quotes`,
  })
  return meant
}

export type Bounds = { readonly from: number; readonly to: number; readonly noun: string }

export const portBounds: Bounds = { from: 1, to: 65535, noun: 'a port number from 1 to 65535' }

/**
 * A whole number within bounds; a text of digits is read as its number, which the API server would not do. Anything else
 * is told with what `otherwise` says.
 */
export function numberAt(
  fields: Fields,
  key: string,
  bounds: Bounds,
  otherwise = 'it is left out',
): number | undefined {
  const value = fields.values[key]
  if (value === undefined || value === null) return undefined
  const digits = typeof value === 'string' && /^\d{1,15}$/.test(value)
  const number = digits ? Number(value) : value
  if (typeof number !== 'number' || !Number.isInteger(number) || number < bounds.from || number > bounds.to) {
    const code = typeof number === 'number' ? 'manifest.bad-value' : 'manifest.wrong-type'
    report(fields, key, { code, message: `${describeValue(value)} is not ${bounds.noun}; ${otherwise}` })
    return undefined
  }
  if (digits) {
    report(fields, key, { message: `the text "${value}" is read as ${number}`, hint: 'write it without quotes' })
  }
  return number
}

/** 0 stands for none, as in the API, and so does a port that cannot be read. */
export function portOrZeroAt(fields: Fields, key: string): number {
  return fields.values[key] === 0 ? 0 : (numberAt(fields, key, portBounds) ?? 0)
}

/** One of a few words; another spelling of one is told and read as it, anything else is told with what `otherwise` says. */
export function wordAt<T extends string>(
  fields: Fields,
  key: string,
  words: readonly T[],
  otherwise = 'it is left out',
): T | undefined {
  const value = fields.values[key]
  if (value === undefined || value === null || value === '') return undefined
  for (const word of words) if (word === value) return word
  const text = typeof value === 'string' ? value.trim().toLowerCase() : undefined
  const meant = words.find((word) => word.toLowerCase() === text)
  const outcome = meant === undefined ? otherwise : `it is read as ${meant}`
  const message = `${describeValue(value)} is none of ${words.join(', ')}; ${outcome}`
  report(fields, key, { code: 'manifest.bad-value', message })
  return meant
}

const conditionWords = ['True', 'False', 'Unknown'] as const

/** Whether a condition of a status holds; undefined when the status has none of that type. */
export function conditionAt(status: Fields, type: string): boolean | undefined {
  for (const condition of mapsAt(status, 'conditions')) {
    if (condition.values.type === type) return isTrue(condition)
  }
  return undefined
}

/** YAML makes a truth value of True without quotes, which the API server refuses, as it wants a text. */
function isTrue(condition: Fields): boolean {
  const { status } = condition.values
  if (typeof status !== 'boolean') return wordAt(condition, 'status', conditionWords, 'it counts as False') === 'True'
  const word = status ? 'True' : 'False'
  const message = `${status} stands where text is wanted; it is read as "${word}"`
  report(condition, 'status', { message, hint: `put it in quotes: "${word}"` })
  return status
}

export type Report = {
  readonly message: string
  readonly code?: ManifestFindingCode
  readonly hint?: string
  /** Where `key` cannot say it. */
  readonly path?: string
}

/** A finding about a field; the message need not name it. */
export function report(fields: Fields, key: string, told: Report): void {
  const { message, code = 'manifest.wrong-type', hint, path = pathOf(fields, key) } = told
  const { kind, namespace, name, origin, findings } = fields.reading
  fields.reading.told ??= new Set()
  const earlier = fields.reading.told
  if (earlier.has(`${path}\n${message}`)) return
  earlier.add(`${path}\n${message}`)
  const object = namespace === '' ? { kind, name } : { kind, namespace, name }
  findings.push(
    manifestFinding(code, {
      message,
      ...(name !== '' && { object }),
      path,
      origin,
      ...(hint !== undefined && { hint }),
    }),
  )
}

function reportType(fields: Fields, key: string, wanted: string): void {
  report(fields, key, { message: wrongType(fields.values[key], wanted) })
}

/** The sentence about a value of the wrong type that is left out. */
export function wrongType(value: unknown, wanted: string): string {
  return `${describeValue(value)} stands where ${wanted} is wanted; it is left out`
}

/** The path of a key in the object, `spec.ports[0].port`; of the map itself for an empty key. */
export function pathOf(fields: Fields, key: string): string {
  let path = key === '' ? '' : pathPart(key)
  for (let at: Fields | undefined = fields; at?.parent !== undefined; at = at.parent) {
    path = `${pathPart(at.key)}${at.index < 0 ? '' : `[${at.index}]`}${path}`
  }
  return path.startsWith('.') ? path.slice(1) : path
}

/** Keys of labels hold dots and slashes, so they stand in brackets. */
function pathPart(key: string): string {
  return key.includes('/') || key.includes('.') ? `["${key}"]` : `.${key}`
}

/** A value held to its schema: a clean copy of what the schema knows, and each thing that the API server would refuse. */
import { describeValue, isRecord, type RawRecord } from '#manifests/text/raw-object'
import type { Fault, ListSchema, MapSchema, NumberSchema, Schema, TextSchema, ValidationRule } from '#model/api-schema'
import type { Problem } from '#model/traffic-policy'

/** `told` gathers problems; `isStrict` makes one of each field that the schema does not know. */
export type Hold = { readonly told: Problem[]; readonly isStrict: boolean }

/** Undefined when the value is of the wrong kind; parts that are refused are left out of the copy, and told. */
export function readValue(schema: Schema, value: unknown, path: string, hold: Hold): unknown {
  if (schema.kind === 'optional') return readValue(schema.of, value, path, hold)
  const start = hold.told.length
  const read = readPlain(schema, value, path, hold)
  // The API server asks the rules of values that fit their schema only.
  if (read !== undefined && hold.told.length === start) askRules(schema.rules ?? [], read, path, hold)
  return read
}

export function askRules(rules: readonly ValidationRule[], value: unknown, path: string, { told }: Hold): void {
  for (const rule of rules) {
    const fault: Fault | undefined = rule.fault(value as never)
    if (fault !== undefined) told.push({ path: join(path, fault.at ?? ''), message: fault.message, hint: rule.hint })
  }
}

function readPlain(schema: Exclude<Schema, { kind: 'optional' }>, value: unknown, path: string, hold: Hold): unknown {
  switch (schema.kind) {
    case 'text':
      return readText(schema, value, path, hold)
    case 'number':
      return readNumber(schema, value, path, hold)
    case 'flag':
      if (typeof value === 'boolean') return value
      return refuse(hold, path, { value, wanted: 'true or false', hint: 'write true or false without quotes' })
    case 'list':
      return readList(schema, value, path, hold)
    case 'map':
      return readMap(schema, value, path, hold)
  }
  return schema satisfies never
}

type Wrong = { readonly value: unknown; readonly wanted: string; readonly hint: string }

function refuse({ told }: Hold, path: string, { value, wanted, hint }: Wrong): undefined {
  told.push({ path, message: `${describeValue(value)} stands where ${wanted} is wanted`, hint })
  return undefined
}

function readText(schema: TextSchema, value: unknown, path: string, hold: Hold): string | undefined {
  const { words, pattern, noun, minLength = 0, maxLength = Number.POSITIVE_INFINITY } = schema
  if (words !== undefined) {
    if (words.some((word) => word === value)) return String(value)
    const text = typeof value === 'string' ? value.trim().toLowerCase() : ''
    const meant = words.find((word) => word.toLowerCase() === text)
    hold.told.push({
      path,
      message: `${describeValue(value)} is none of ${words.join(', ')}`,
      hint: meant === undefined ? `write one of them` : `write ${meant}`,
    })
    return undefined
  }
  if (typeof value !== 'string') return refuse(hold, path, { value, wanted: 'text', hint: 'put it in quotes' })
  if (value.length < minLength)
    hold.told.push({ path, message: 'it is empty', hint: 'write it, or leave the field out' })
  else if (value.length > maxLength) {
    const message = `it has ${value.length} characters, where at most ${maxLength} are taken`
    hold.told.push({ path, message, hint: 'shorten it' })
  } else if (pattern !== undefined && !new RegExp(pattern, 'u').test(value)) {
    hold.told.push({ path, message: `${describeValue(value)} is not ${noun}`, hint: 'rename it' })
  } else if (schema.format === 'date-time' && Number.isNaN(Date.parse(value))) {
    hold.told.push({ path, message: `${describeValue(value)} is no time`, hint: 'write it as 2026-01-31T12:00:00Z' })
  }
  return value
}

function readNumber({ from, to }: NumberSchema, value: unknown, path: string, hold: Hold): number | undefined {
  const wanted = `a whole number from ${from} to ${to}`
  if (typeof value !== 'number') {
    return refuse(hold, path, { value, wanted, hint: 'write the number without quotes' })
  }
  if (Number.isInteger(value) && value >= from && value <= to) return value
  hold.told.push({ path, message: `${value} is not ${wanted}`, hint: `write ${wanted}` })
  return undefined
}

function readList(schema: ListSchema, value: unknown, path: string, hold: Hold): readonly unknown[] | undefined {
  if (!Array.isArray(value)) return refuse(hold, path, { value, wanted: 'a list', hint: 'write each item after "- "' })
  if (value.length > schema.maxItems) {
    const message = `it has ${value.length} items, where at most ${schema.maxItems} are taken`
    hold.told.push({ path, message, hint: 'split it' })
    // A list of a million rules is told once, not a million times.
    return undefined
  }
  if (value.length < (schema.minItems ?? 0)) hold.told.push({ path, message: 'it is empty', hint: 'add an item' })
  const items = value.map((item, index) => readValue(schema.item, item, `${path}[${index}]`, hold))
  if (schema.merge !== 'atomic') tellTwice(items, schema, path, hold)
  return items.filter((item) => item !== undefined)
}

function tellTwice(items: readonly unknown[], { merge }: ListSchema, path: string, hold: Hold): void {
  const seen = new Set<string>()
  for (const [index, item] of items.entries()) {
    const key =
      merge === 'set'
        ? item
        : (merge as { keys: readonly string[] }).keys.map((name) => (isRecord(item) ? item[name] : item))
    const text = JSON.stringify(key)
    if (item !== undefined && seen.has(text)) {
      const message = `${describeValue(merge === 'set' ? item : text)} stands in the list twice`
      hold.told.push({ path: `${path}[${index}]`, message, hint: 'leave one of the two out' })
    }
    seen.add(text)
  }
}

function readMap(schema: MapSchema, value: unknown, path: string, hold: Hold): RawRecord | undefined {
  if (!isRecord(value)) return refuse(hold, path, { value, wanted: 'a map', hint: 'write its fields as "name: value"' })
  const copy: Record<string, unknown> = {}
  for (const [name, field] of Object.entries(schema.fields)) {
    const given = Object.hasOwn(value, name) ? value[name] : undefined
    const at = join(path, name)
    if (given === undefined || given === null) {
      const fallback = defaultOf(field)
      if (fallback !== undefined) copy[name] = fallback
      else if (field.kind !== 'optional')
        hold.told.push({ path: at, message: 'the field is missing', hint: `add ${name}` })
      continue
    }
    const read = readValue(field, given, at, hold)
    if (read !== undefined) copy[name] = read
  }
  if (hold.isStrict && schema.isOpen !== true) tellUnknown(schema, value, path, hold)
  return copy
}

function defaultOf(schema: Schema): boolean | undefined {
  if (schema.kind === 'optional') return defaultOf(schema.of)
  return schema.kind === 'flag' ? schema.default : undefined
}

/** The API server drops such a field from most clients' objects, and a rule without it would match more than was meant. */
function tellUnknown({ fields }: MapSchema, value: RawRecord, path: string, { told }: Hold): void {
  const known = Object.keys(fields)
  for (const name of Object.keys(value)) {
    if (known.includes(name)) continue
    const meant = known.find((one) => one.toLowerCase() === name.toLowerCase() || one === `${name}s`)
    const hint = meant === undefined ? `known here: ${known.join(', ')}` : `write ${meant}`
    told.push({ path: join(path, printable(name)), message: 'there is no such field', hint })
  }
}

/** Keys come from files: as in paths of other findings, odd ones stand in brackets. */
function printable(name: string): string {
  return /^[\w-]+$/.test(name) ? name : `[${describeValue(name)}]`
}

function join(path: string, name: string): string {
  if (name === '') return path
  return path === '' || name.startsWith('[') ? `${path}${name}` : `${path}.${name}`
}

/** Objects as they stand in a text, before their kind is read: plain values, with where each was found. */
import type { Origin } from '#base/finding'

export type RawRecord = { readonly [key: string]: unknown }

/** `kind` and `apiVersion` may come from the List that held the object; `apiVersion` is empty when nothing tells it. */
export type RawObject = {
  readonly kind: string
  readonly apiVersion: string
  readonly value: RawRecord
  readonly origin: Origin
}

export function isRecord(value: unknown): value is RawRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A value in a sentence: short texts and numbers as written, larger things by what they are. */
export function describeValue(value: unknown): string {
  if (value === null || value === undefined) return 'nothing'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object') return 'a map'
  if (typeof value !== 'string') return String(value)
  // As JSON, so that line breaks and terminal codes stay harmless.
  return JSON.stringify(value.length > 60 ? `${value.slice(0, 57)}…` : value)
}

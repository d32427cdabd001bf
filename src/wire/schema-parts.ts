/** Small schemas that the messages are made of: values that may be null, words of a closed set, texts with a bound. */
import Type, { type TSchema } from 'typebox'

/** As one schema with two types, so that a wrong value gets one sentence and not one for each branch. */
export function nullableText(description: string): Type.TUnsafe<string | null> {
  return Type.Unsafe<string | null>({ type: ['string', 'null'], description })
}

export function nullableFlag(description: string): Type.TUnsafe<boolean | null> {
  return Type.Unsafe<boolean | null>({ type: ['boolean', 'null'], description })
}

export function nullableObject(description: string): Type.TUnsafe<JsonObject | null> {
  return Type.Unsafe<JsonObject | null>({ type: ['object', 'null'], description })
}

export function nullableWord<const Word extends string>(
  words: readonly Word[],
  description: string,
): Type.TUnsafe<Word | null> {
  return Type.Unsafe<Word | null>({ enum: [...words, null], description })
}

export function word<const Word extends string>(words: readonly Word[], description: string): Type.TUnsafe<Word> {
  return Type.Unsafe<Word>({ type: 'string', enum: [...words], description })
}

/** Ports are texts on the compatible paths; clients that send numbers are understood. */
export function portText(description: string): Type.TUnsafe<string | number | null> {
  return Type.Unsafe<string | number | null>({ type: ['string', 'integer', 'null'], description })
}

export function listPage<Row extends TSchema>(row: Row, description: string) {
  return Type.Object(
    {
      items: Type.Array(row),
      next: nullableText('give it as cursor to get the next page; null at the end'),
    },
    { description },
  )
}

/** Of a manifest, which may hold anything. */
export function isPort(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 65_535
}

export type JsonObject = { readonly [name: string]: unknown }

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

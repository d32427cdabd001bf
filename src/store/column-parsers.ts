/** How columns are read, the same from both databases: times as instants, whole numbers as numbers, dates as text. */
import { type Instant, parseInstant } from '#flows/instant'

/** By the type's number in pg_type. */
export const columnParsers: Readonly<Record<number, (text: string) => unknown>> = {
  20: Number,
  1082: (text) => text,
  1184: readTime,
}

/** `2026-07-23 09:14:02.118377+00`; infinity, which no column here holds but `allowed_until`, is not read. */
function readTime(text: string): Instant | null {
  return parseInstant(text) ?? null
}

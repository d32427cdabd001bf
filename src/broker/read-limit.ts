/** Limits of lists: read from a query, kept within bounds, and applied to rows that come page by page. */
import Type from 'typebox'

export type LimitRule = { readonly fallback: number; readonly least: number; readonly most: number }

/** A whole number as a query has it: text, so that `5.5` and an empty value are refused rather than rounded. */
export function wholeNumber(description: string) {
  return Type.Optional(Type.String({ pattern: '^[+-]?\\d{1,15}$', description: `a whole number, ${description}` }))
}

/** Below the least it is the least, above the most the most. */
export function readLimit(text: string | undefined, { fallback, least, most }: LimitRule): number {
  return text === undefined ? fallback : Math.min(Math.max(Number(text), least), most)
}

export async function takeRows<Row>(pages: AsyncIterable<readonly Row[]>, most: number): Promise<readonly Row[]> {
  const rows: Row[] = []
  for await (const page of pages) {
    rows.push(...page.slice(0, most - rows.length))
    if (rows.length >= most) break
  }
  return rows
}

/** Pages by keyset: a cursor holds the place of the last row, so that a page costs the same wherever it begins. */
import { Failure } from '#base/failure'
import type { Cursor, Page, PageRequest } from './store'

/** More rows than this in one page would be a read without bounds. */
export const mostRows = 20_000
const streamRows = 2000

export type Place = readonly (string | number | boolean | null)[]

export function writeCursor(place: Place): Cursor {
  return Buffer.from(JSON.stringify(place)).toString('base64url')
}

/** Undefined for the first page. `length` is how many parts the order has. */
export function readCursor(cursor: Cursor | undefined, length: number): Place | undefined {
  if (cursor === undefined) return undefined
  const place = parse(cursor)
  if (place === undefined || place.length !== length) {
    throw new Failure('usage.bad-argument', 'the cursor is not one that an earlier page gave')
  }
  return place
}

export function limitOf(page: PageRequest): number {
  return Math.min(mostRows, Math.max(1, Math.trunc(page.limit)))
}

/** `rows` has one more than `limit` when there is a next page. */
export function pageOf<From, To>(
  rows: readonly From[],
  limit: number,
  read: { readonly row: (from: From) => To; readonly place: (from: From) => Place },
): Page<To> {
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  const answer = { rows: shown.map(read.row) }
  return rows.length > limit && last !== undefined ? { ...answer, next: writeCursor(read.place(last)) } : answer
}

/** All pages, one after the other; only one is held at a time. */
export async function* streamPages<Row>(
  ask: (page: PageRequest) => Promise<Page<Row>>,
): AsyncGenerator<readonly Row[], void, undefined> {
  let cursor: Cursor | undefined
  do {
    const page: Page<Row> = await ask({ limit: streamRows, ...(cursor === undefined ? {} : { cursor }) })
    if (page.rows.length > 0) yield page.rows
    cursor = page.next
  } while (cursor !== undefined)
}

function parse(cursor: string): Place | undefined {
  try {
    const place: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    return Array.isArray(place) && place.every(isPart) ? place : undefined
  } catch {
    return undefined
  }
}

function isPart(part: unknown): part is Place[number] {
  return part === null || ['string', 'number', 'boolean'].includes(typeof part)
}

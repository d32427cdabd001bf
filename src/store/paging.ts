/** Pages by keyset: a cursor holds the place of the last row, so that a page costs the same wherever it begins. */
import { Failure } from '#base/failure'
import { isInstant } from '#flows/instant'
import type { Cursor, Page, PageRequest } from './store'

/** More rows than this in one page would be a read without bounds. */
export const mostRows = 20_000
const streamRows = 2000

export type Place = readonly (string | number | boolean)[]

export function writeCursor(place: Place): Cursor {
  return Buffer.from(JSON.stringify(place)).toString('base64url')
}

/** What each part of an order is; a cursor comes back from outside, so its parts are held to it. */
export type PartKind = keyof typeof partChecks

const partChecks = {
  instant: (part: unknown) => typeof part === 'number' && Number.isInteger(part) && isInstant(part),
  whole: (part: unknown) => Number.isSafeInteger(part),
  small: (part: unknown) => Number.isInteger(part) && Math.abs(part as number) < 2 ** 31,
  flag: (part: unknown) => typeof part === 'boolean',
  text: (part: unknown) => typeof part === 'string' && !part.includes('\0'),
  uuid: (part: unknown) => typeof part === 'string' && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(part),
} as const

/** Undefined for the first page. */
export function readCursor(cursor: Cursor | undefined, kinds: readonly PartKind[]): Place | undefined {
  if (cursor === undefined) return undefined
  const place = parse(cursor)
  if (place?.length !== kinds.length || !kinds.every((kind, part) => partChecks[kind](place[part]))) {
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
    return Array.isArray(place) ? place : undefined
  } catch {
    return undefined
  }
}

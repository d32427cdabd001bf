/** What counts and bounds, as text: `counter packets 1 bytes 60`, `limit rate 10/second burst 5 packets`, `ct count over 3`. */
import type { Limit, State } from './expression'
import { parseDurationMilliseconds } from './parse-duration'
import type { NftCursor } from './tokenize-nft'

const unitBytes: Readonly<Record<string, number>> = { bytes: 1, kbytes: 1024, mbytes: 1024 * 1024 }
const periods = ['second', 'minute', 'hour', 'day', 'week'] as const
/** The kernel's own burst, which nft leaves out. */
const usualBurst = { packets: 5, bytes: 0 } as const

/** Undefined, and nothing taken, when no state stands here: `counter name "x"` and `ct state` are none. */
export function parseState(cursor: NftCursor): State | undefined {
  if (cursor.isQuoted || !/^(?:counter|limit|quota|last|ct)$/.test(cursor.word)) return undefined
  const start = cursor.place()
  const { word } = cursor
  cursor.advance()
  if (!cursor.is('name') && (word !== 'ct' || cursor.is('count')) && (word !== 'limit' || cursor.is('rate'))) {
    return parseStateOf(cursor, word)
  }
  cursor.reset(start)
  return undefined
}

function parseStateOf(cursor: NftCursor, word: string): State {
  if (word === 'counter') return parseCounter(cursor)
  if (word === 'quota') return parseQuota(cursor)
  if (word === 'last') return parseLast(cursor)
  cursor.advance()
  if (word === 'limit') return parseLimit(cursor)
  const isOver = takeOver(cursor)
  return { kind: 'ct-count', isOver, count: cursor.takeNumber('the count') }
}

/** After `counter`. */
export function parseCounter(cursor: NftCursor): Extract<State, { readonly kind: 'counter' }> {
  const packets = cursor.take('packets') ? cursor.takeNumber('the count of packets') : 0
  const bytes = cursor.take('bytes') ? cursor.takeNumber('the count of bytes') : 0
  return { kind: 'counter', packets, bytes }
}

/** After `quota`. */
export function parseQuota(cursor: NftCursor): Extract<State, { readonly kind: 'quota' }> {
  const isOver = takeOver(cursor)
  const bytes = takeBytes(cursor)
  const usedBytes = cursor.take('used') ? takeBytes(cursor) : 0
  return { kind: 'quota', isOver, bytes, usedBytes }
}

function parseLast(cursor: NftCursor): State {
  if (!cursor.take('used') || cursor.take('never')) return { kind: 'last' }
  return { kind: 'last', usedMilliseconds: takeDuration(cursor) }
}

/** After `rate`: `over 10/second`, `10 mbytes/second burst 100 kbytes`. */
export function parseLimit(cursor: NftCursor): Limit {
  const isOver = takeOver(cursor)
  const run = takeRate(cursor)
  const match = /^(\d+)([a-z]*)\/([a-z]+)$/.exec(run)
  const per = periods.find((period) => period === match?.[3])
  const unit = match?.[2] || 'packets'
  if (per === undefined || (unit !== 'packets' && unitBytes[unit] === undefined)) cursor.fail(`\`${run}\` is no rate`)
  const kind = unit === 'packets' ? 'packets' : 'bytes'
  const rate = Number(match?.[1]) * (unitBytes[unit] ?? 1)
  const burst = cursor.take('burst') ? takeAmount(cursor) : usualBurst[kind]
  return { kind: 'limit', isOver, rate, unit: kind, per: per ?? 'second', burst }
}

/** `10/second`, `10 mbytes/second`, `10 / second` as one text. */
function takeRate(cursor: NftCursor): string {
  let run = ''
  while (!/\/[a-z]+$/.test(run) && cursor.isWord() && run.length < 40) run += cursor.takeText('the rate')
  return run
}

function takeAmount(cursor: NftCursor): number {
  const amount = cursor.takeNumber('the burst')
  if (cursor.take('packets')) return amount
  const factor = cursor.isQuoted ? undefined : unitBytes[cursor.word]
  if (factor !== undefined) cursor.advance()
  return amount * (factor ?? 1)
}

function takeBytes(cursor: NftCursor): number {
  const amount = cursor.takeNumber('the amount')
  const factor = unitBytes[cursor.word]
  if (factor === undefined) cursor.fail('the unit is missing')
  else cursor.advance()
  return amount * (factor ?? 1)
}

/** `until` is the plain form. */
function takeOver(cursor: NftCursor): boolean {
  const isOver = cursor.take('over')
  if (!isOver) cursor.take('until')
  return isOver
}

export function takeDuration(cursor: NftCursor): number {
  const milliseconds = parseDurationMilliseconds(cursor.word)
  if (milliseconds === undefined) cursor.fail(`\`${cursor.word}\` is no span of time`)
  else cursor.advance()
  return milliseconds ?? 0
}
